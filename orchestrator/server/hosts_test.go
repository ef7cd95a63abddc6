package server_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/identity"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// asker asks a server in a browser's way, under a name that resolves to its address.
type asker struct {
	t    *testing.T
	base string
	http *http.Client
}

// asked is a response whose body has been read.
type asked struct {
	StatusCode int
	Header     http.Header
}

func newAsker(t *testing.T, base, serverName string) *asker {
	h := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{ServerName: serverName, InsecureSkipVerify: true}}, //nolint:gosec // what is sent is no secret
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(h.CloseIdleConnections)
	return &asker{t, base, h}
}

func (a *asker) ask(method, path, host string, header ...string) (asked, string) {
	a.t.Helper()
	body := ""
	if method == http.MethodPost {
		body = "{}"
	}
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, strings.NewReader(body))
	require.NoError(a.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Host = host
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := a.http.Do(req)
	require.NoError(a.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(a.t, err)
	return asked{res.StatusCode, res.Header}, string(b)
}

// A page whose name resolves to the orchestrator's address reaches nothing of it:
// neither pages nor metrics nor calls, with TLS and without.
func TestForeignHosts(t *testing.T) {
	paths := map[string]string{
		"/": http.MethodGet, "/runs": http.MethodGet, "/healthz": http.MethodGet, "/metrics": http.MethodGet,
		"/linktrial.v1.AccessService/WhoAmI": http.MethodPost, "/linktrial.v1.NodeService/GetAuthority": http.MethodPost, "/linktrial.v1.TrustService/RotateSigningKey": http.MethodPost,
		"/linktrial.v1.LabService/LabUp": http.MethodPost, "/linktrial.v1.AgentService/Register": http.MethodPost,
	}
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", secure), func(t *testing.T) {
			s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) {
				c.TLS, c.AllowHosts, c.TLSNames = secure, []string{"trial.example"}, []string{"by-certificate.example"}
			})
			a := newAsker(t, s.server.URL(), "rebound.example")
			_, port, _ := strings.Cut(s.server.Addr(), ":")
			for path, method := range paths {
				res, text := a.ask(method, path, "rebound.example:"+port, "Origin", s.server.URL()[:strings.Index(s.server.URL(), "/")]+"//rebound.example:"+port, "Sec-Fetch-Site", "same-origin")
				want := http.StatusMisdirectedRequest
				if method == http.MethodPost {
					want = http.StatusForbidden
				}
				require.Equal(t, want, res.StatusCode, "%s: %s", path, text)
				require.Contains(t, text, `rebound.example`, path)
				require.Contains(t, text, "--allow-host", path)
				require.Empty(t, res.Header.Get("Strict-Transport-Security"))
			}
			for _, host := range []string{"127.0.0.1:" + port, "[::1]:" + port, "192.0.2.7:" + port, "localhost:" + port, "trial.example:" + port, "trial.example", "by-certificate.example"} {
				res, text := a.ask(http.MethodGet, "/healthz", host)
				require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", host, text)
				held := secure && strings.Contains(host, "example")
				require.Equal(t, held, res.Header.Get("Strict-Transport-Security") != "", host)
				res, text = a.ask(http.MethodPost, "/linktrial.v1.AccessService/WhoAmI", host)
				require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", host, text)
			}
			if !secure {
				return
			}
			// Nodes reach it by whatever name a site has for it.
			res, text := newAsker(t, s.server.URL(), identity.OrchestratorName).ask(http.MethodPost, "/linktrial.v1.NodeService/GetAuthority", "site.example")
			require.Equal(t, http.StatusOK, res.StatusCode, text)
			// Whoever speaks without TLS is sent on to the same name only where it is ours.
			plain := newAsker(t, "http://"+s.server.Addr(), "")
			res, _ = plain.ask(http.MethodGet, "/runs?x=1", "trial.example:"+port)
			require.Equal(t, http.StatusPermanentRedirect, res.StatusCode)
			require.Equal(t, "https://trial.example:"+port+"/runs?x=1", res.Header.Get("Location"))
			require.Empty(t, res.Header.Get("Strict-Transport-Security"), "RFC 6797, section 7.2: never without TLS")
			res, text = plain.ask(http.MethodGet, "/runs?x=1", "rebound.example:"+port)
			require.Equal(t, http.StatusMisdirectedRequest, res.StatusCode, text)
			require.Empty(t, res.Header.Get("Location"))
		})
	}
}

// The page of another site changes nothing where nobody logs in.
func TestForeignOrigins(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), nil)
	a := newAsker(t, s.server.URL(), "")
	keys := func() []string {
		res, text := a.ask(http.MethodPost, "/linktrial.v1.TrustService/ListSigningKeys", "")
		require.Equal(t, http.StatusOK, res.StatusCode, text)
		return strings.Split(text, `"keyId"`)
	}
	before := keys()
	for _, header := range [][]string{
		{"Origin", "http://evil.example"},
		{"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"},
		{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"},
		{"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site"},
	} {
		for _, path := range []string{"/linktrial.v1.TrustService/RotateSigningKey", "/linktrial.v1.LibraryService/SavePlan", "/linktrial.v1.LabService/LabUp", "/linktrial.v1.AgentService/Register"} {
			res, text := a.ask(http.MethodPost, path, "", header...)
			require.Equal(t, http.StatusForbidden, res.StatusCode, "%s %v: %s", path, header, text)
			require.Contains(t, text, "a page of another origin")
		}
	}
	require.Equal(t, before, keys())

	// Our own pages, those that the development server passes on, and programs.
	for _, header := range [][]string{
		{"Origin", s.server.URL(), "Sec-Fetch-Site", "same-origin"}, {"Origin", s.server.URL()}, {},
	} {
		res, text := a.ask(http.MethodPost, "/linktrial.v1.TrustService/RotateSigningKey", "", header...)
		require.Equal(t, http.StatusOK, res.StatusCode, "%v: %s", header, text)
	}
	res, text := a.ask(http.MethodPost, "/linktrial.v1.TrustService/RotateSigningKey", "localhost:5173", "Origin", "http://localhost:5173", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	_, err := s.operator.ListNodes(t.Context(), connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	require.NoError(t, err)
	require.NotEqual(t, before, keys())
}

func TestAllowedHostsAreNames(t *testing.T) {
	_, err := server.Start(t.Context(), server.Config{Listen: "127.0.0.1:0", DatabaseURL: storetest.URL(t), Catalog: testCatalog(t), AllowHosts: []string{"http://trial.example:7700"}})
	require.ErrorContains(t, err, `--allow-host: host "http://trial.example:7700", expected a name such as trial.example, without scheme and port`)
}
