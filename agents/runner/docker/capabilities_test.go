package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"linktrial/agents/runner/docker"
	"linktrial/protocols/contract"
)

// olderEngine is the test's engine as one that knows none of the capabilities that came
// with Docker Engine 23.0, and the wrong one of a manifest neither: it answers as 20.10 does.
func olderEngine(t *testing.T) string {
	t.Helper()
	socket := strings.TrimPrefix(engine.Host, "unix://")
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/containers/create") {
			b, err := io.ReadAll(q.Body)
			if err != nil {
				t.Error(err)
			}
			for _, c := range []string{"BPF", "PERFMON", "NET_ADMIM"} {
				if bytes.Contains(b, []byte(c+`"`)) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprintf(w, `{"message":"invalid CapAdd: unknown capability: \"CAP_%s\""}`, c)
					return
				}
			}
			q.Body = io.NopCloser(bytes.NewReader(b))
		}
		proxy.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	return "tcp://" + s.Listener.Addr().String()
}

// An engine of Debian 12 does not know what the drivers of TCP may ask for: they run
// without it. A capability that no engine knows is a fault of the manifest.
func TestEngineWithoutNewCapabilities(t *testing.T) {
	if engine == nil {
		t.Skip(reason)
	}
	r, err := docker.New(t.Context(), docker.Config{Agent: "older", Host: olderEngine(t), Holder: []string{holder}, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	importImage(t, "newer:latest", "newer", manifest("newer", "capabilities: [CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON]\n"), program(confined))
	importImage(t, "wrong:latest", "wrong", manifest("wrong", "capabilities: [CAP_NET_ADMIM]\n"), program(confined))
	p, err := r.Start(t.Context(), "newer", parameters(contract.RoleServer, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	events(t, p, func(*contract.Event) {})
	await(t, p)
	if !strings.Contains(p.Log(), "CapEff: 0000000000001000") {
		t.Errorf("the driver has other capabilities than CAP_NET_ADMIN:\n%s", p.Log())
	}
	if _, err := r.Start(t.Context(), "wrong", parameters(contract.RoleServer, 1), nil); err == nil || !strings.Contains(err.Error(), `unknown capability: "CAP_NET_ADMIM"`) {
		t.Errorf("a capability that does not exist: %v", err)
	}
}
