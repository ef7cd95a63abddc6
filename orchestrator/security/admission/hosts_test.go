package admission_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/identity"
	"linktrial/orchestrator/security/admission"
)

func hosts(names ...string) *admission.Hosts {
	certified := func(name string) bool { return name == "in-certificate.example" }
	return admission.NewHosts(names, certified, slog.New(slog.DiscardHandler))
}

func TestHosts(t *testing.T) {
	h := hosts("Listened.example:7700", "0.0.0.0:7700", ":7700", "trial")
	for host, passes := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:7700": true, "127.8.9.1:1": true, "[::1]:7700": true, "[::1]": true, "192.0.2.7:7700": true, "[2001:db8::1]:7700": true, "0.0.0.0:7700": true,
		"localhost": true, "LOCALHOST:7700": true, "localhost.:7700": true,
		"listened.example": true, "listened.example:443": true, "LISTENED.example.": true, "trial:7700": true, "in-certificate.example:7700": true,
		"": false, ":7700": false, "evil.example": false, "evil.example:7700": false, "x.localhost": false, "x.trial": false, "trial.evil.example": false, "127.0.0.1.evil.example": false,
		"0x7f.1": false, "2130706433": false, "[evil.example]:7700": false, "localhost@evil.example": false, "null": false,
	} {
		if err := h.Check(host); (err == nil) != passes {
			t.Errorf("%q: %v", host, err)
		}
	}
	require.EqualError(t, h.Check("evil.example:7700"), `the request is for the host "evil.example", expected an IP address, localhost or a name of the orchestrator: if this is one, start 'linktrial serve' with --allow-host NAME`)
	require.Less(t, len(h.Check(strings.Repeat("x", 10_000)).Error()), 500)
	require.Error(t, admission.NewHosts(nil, nil, nil).Check("in-certificate.example"), "without TLS there is no certificate")
}

func TestHostNamesOfPeople(t *testing.T) {
	for name, good := range map[string]bool{"trial": true, "trial.example": true, "192.0.2.1": true, "": false, "trial:7700": false, "http://trial": false, "*.example": false, "a b": false, "::1": false} {
		if err := admission.CheckHostName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What is refused reaches nothing, in every protocol; the log says so.
func TestForeignHostReachesNothing(t *testing.T) {
	var log bytes.Buffer
	reached := 0
	h := admission.NewHosts([]string{"trial"}, nil, slog.New(slog.NewTextHandler(&log, nil))).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	ask := func(host, kind string, state *tls.ConnectionState) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/linktrial.v1.LibraryService/SavePlan", strings.NewReader("{}"))
		r.Host, r.TLS = host, state
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	page := ask("evil.example", "text/plain", nil)
	require.Equal(t, http.StatusMisdirectedRequest, page.Code)
	require.Contains(t, page.Body.String(), "--allow-host")
	call := ask("evil.example", "application/json", nil)
	require.Equal(t, http.StatusForbidden, call.Code)
	require.Contains(t, call.Body.String(), `"code":"permission_denied"`)
	require.Contains(t, ask("evil.example", "application/grpc", nil).Header().Get("Grpc-Message"), "evil.example")
	require.Equal(t, http.StatusMisdirectedRequest, ask("evil.example", "text/plain", &tls.ConnectionState{ServerName: "evil.example"}).Code)
	require.Zero(t, reached)
	require.Equal(t, 1, strings.Count(log.String(), "evil.example"), "%s", &log)

	ask("trial:7700", "text/plain", nil)
	// A node has verified that this is its orchestrator, whatever it calls it.
	ask("site-name.example", "application/json", &tls.ConnectionState{ServerName: identity.OrchestratorName})
	require.Equal(t, 2, reached)
}

// Browsers are held to TLS under names that are the orchestrator's alone.
func TestStrictTransport(t *testing.T) {
	h := hosts("trial").Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, x := range map[string]struct {
		tls  bool
		want string
	}{
		"trial:7700": {true, "max-age=2592000"}, "in-certificate.example": {true, "max-age=2592000"},
		"trial": {false, ""}, "localhost:7700": {true, ""}, "127.0.0.1:7700": {true, ""}, "[::1]": {true, ""}, "evil.example": {true, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		if x.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, x.want, w.Header().Get("Strict-Transport-Security"), host)
	}
}
