package access_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/access/accessdb"
)

// Where nobody is asked, programs and our own pages may do everything, and pages of
// others nothing.
func TestOpen(t *testing.T) {
	h := build(t, func(c *access.Config) { c.Required, c.OpenToNetwork = false, true })
	res, err := h.as().WhoAmI(t.Context(), connect.NewRequest(&linktrialv1.WhoAmIRequest{}))
	require.NoError(t, err)
	require.False(t, res.Msg.LoginRequired)
	require.True(t, res.Msg.OpenToNetwork)
	_, err = h.as().operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{}))
	require.NoError(t, err)
	_, err = h.as("Cookie", "linktrial=x", "Authorization", "Bearer x", "Origin", h.url).operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{}))
	require.NoError(t, err)
	_, err = h.as("Cookie", "linktrial=x", "Authorization", "Bearer x", "Origin", "http://elsewhere").operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{}))
	fails(t, err, connect.CodePermissionDenied, "a page of another origin (http://elsewhere)")
	fails(t, add(h.as(), "anna", admin), connect.CodeFailedPrecondition, "requires no login")
	_, err = h.as().try("anna", password)
	fails(t, err, connect.CodeFailedPrecondition, "nothing to log in to")
	entries, err := accessdb.New(h.store).ActiveAdmins(t.Context())
	require.NoError(t, err)
	require.Zero(t, entries)
}

func TestPages(t *testing.T) {
	h := build(t, nil)
	h.people()
	token := "Bearer " + h.token(h.login("vera"), "prometheus", 0).Text
	for _, c := range []struct {
		method, path, authorization string
		want                        int
	}{
		{"GET", "/", "", 200},
		{"GET", "/assets/x.js", "", 200},
		{"GET", "/runs/c1?a=b", "", 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/handbook/docs/plans.html", "", 200},
		{"GET", "/metrics", "", 401},
		{"GET", "//metrics", "", 401},
		{"GET", "/metrics", "Bearer ltp_x", 401},
		{"GET", "/metrics", "Bearer " + access.NewTokenText(), 401},
		{"GET", "/metrics", token, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, h.url+c.path, nil)
		require.NoError(t, err)
		if c.authorization != "" {
			req.Header.Set("Authorization", c.authorization)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, c.want, res.StatusCode, "%s %s: %s", c.method, c.path, b)
		if res.StatusCode == 401 {
			require.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
			require.Equal(t, 1, strings.Count(string(b), "\n"), "one sentence: %s", b)
		}
	}
}

// Where the database is away nobody is told that they may not: they may try
// again. Page and call say it alike, in whatever form they come.
func TestWithoutDatabase(t *testing.T) {
	h := build(t, nil)
	h.store.Close()
	for name, c := range map[string]struct {
		method, path, kind string
		want               int
	}{
		"page":            {"GET", "/metrics", "", http.StatusServiceUnavailable},
		"call":            {"POST", "/linktrial.v1.OperatorService/ListRuns", "application/json", http.StatusServiceUnavailable},
		"a form as call":  {"POST", "/linktrial.v1.OperatorService/ListRuns", "text/plain", http.StatusServiceUnavailable},
		"a call by a GET": {"GET", "/linktrial.v1.OperatorService/ListRuns", "", http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, h.url+c.path, strings.NewReader("{}"))
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+access.NewTokenText())
			if c.kind != "" {
				req.Header.Set("Content-Type", c.kind)
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			require.NoError(t, err)
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, c.want, res.StatusCode, "%s", b)
			require.Contains(t, string(b), "the database does not answer")
			require.Empty(t, res.Header.Get("WWW-Authenticate"))
		})
	}
}

// A caller whose time is over before it is known who it is did not meet a database that
// does not answer.
func TestCallerEnded(t *testing.T) {
	h := build(t, nil)
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for want, ctx := range map[string]context.Context{"deadline_exceeded": expired, "canceled": cancelled} {
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/linktrial.v1.OperatorService/ListRuns", strings.NewReader("{}"))
		req.Header.Set("Authorization", "Bearer "+access.NewTokenText())
		req.Header.Set("Content-Type", "application/json")
		res := httptest.NewRecorder()
		h.server.Config.Handler.ServeHTTP(res, req)
		require.Contains(t, res.Body.String(), `"`+want+`"`)
	}
}

// A page of another site cannot have a logged-in browser do anything.
func TestOtherOrigins(t *testing.T) {
	h := build(t, nil)
	h.people()
	c := h.login("dirk")
	for name, x := range map[string]struct {
		origin, site, kind string
		passes             bool
	}{
		"this page":              {h.url, "same-origin", "application/json", true},
		"a program":              {"", "", "application/json", true},
		"another site":           {"http://evil.example", "cross-site", "application/json", false},
		"another port":           {"http://127.0.0.1:1", "same-site", "application/json", false},
		"an older browser":       {"http://evil.example", "", "application/json", false},
		"a form of another site": {"http://evil.example", "cross-site", "text/plain", false},
		"a form of this page":    {h.url, "same-origin", "text/plain", false}, // Connect takes no forms
		"a sandboxed frame":      {"null", "cross-site", "application/json", false},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/linktrial.v1.OperatorService/StartPlan", strings.NewReader("{}"))
			require.NoError(t, err)
			req.Header.Set("Content-Type", x.kind)
			if x.origin != "" {
				req.Header.Set("Origin", x.origin)
			}
			if x.site != "" {
				req.Header.Set("Sec-Fetch-Site", x.site)
			}
			res, err := c.http.Do(req)
			require.NoError(t, err)
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, x.passes, res.StatusCode == http.StatusOK, "%d %s", res.StatusCode, b)
			if !x.passes && x.kind == "application/json" {
				require.Contains(t, string(b), "a page of another origin")
			}
			require.Empty(t, res.Header.Get("Access-Control-Allow-Origin"))
		})
	}
	// What only reads by its method changes nothing: no procedure takes GET.
	res, err := c.http.Get(h.url + "/linktrial.v1.OperatorService/StartPlan?connect=v1&encoding=json&message=%7B%7D")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
}

// The guard stands before the body: what is refused is not read.
func TestRefusedUnread(t *testing.T) {
	h := build(t, nil)
	r, w := io.Pipe()
	defer w.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/linktrial.v1.OperatorService/StartPlan", r)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
}

// A stream ends with what it was allowed by.
func TestStreamsEnd(t *testing.T) {
	h := build(t, nil)
	h.people()
	ctx := t.Context()
	anna := h.login("anna")
	for name, x := range map[string]struct {
		by  func() *caller
		end func(c *caller) error
	}{
		"logout": {func() *caller { return h.login("vera") }, func(c *caller) error {
			_, err := c.Logout(ctx, connect.NewRequest(&linktrialv1.LogoutRequest{}))
			return err
		}},
		"token revoked": {func() *caller { return h.withToken(h.token(h.login("vera"), "watch", 0).Text) }, func(*caller) error {
			_, err := h.login("vera").RevokeToken(ctx, connect.NewRequest(&linktrialv1.RevokeTokenRequest{Id: "watch"}))
			return err
		}},
		"password set": {func() *caller { return h.login("vera") }, func(*caller) error {
			_, err := anna.SetUserPassword(ctx, connect.NewRequest(&linktrialv1.SetUserPasswordRequest{Name: "vera", Password: password}))
			return err
		}},
		"disabled": {func() *caller { return h.login("dirk") }, func(*caller) error {
			_, err := anna.SetUserDisabled(ctx, connect.NewRequest(&linktrialv1.SetUserDisabledRequest{Name: "dirk", Disabled: true}))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, other := x.by(), h.login("anna")
			limit, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			watch := func(c *caller) *connect.ServerStreamForClient[linktrialv1.WatchResponse] {
				s, err := c.operator.Watch(limit, connect.NewRequest(&linktrialv1.WatchRequest{}))
				require.NoError(t, err)
				require.True(t, s.Receive(), s.Err())
				return s
			}
			s, stays := watch(c), watch(other)
			require.NoError(t, x.end(c))
			require.False(t, s.Receive())
			require.NoError(t, limit.Err(), "the stream went on")
			require.Error(t, s.Err())
			require.NotEmpty(t, h.a.StreamUsers())
			for _, user := range h.a.StreamUsers() {
				require.Equal(t, "anna", user)
			}
			cancel()
			require.False(t, stays.Receive())
			require.Eventually(t, func() bool {
				return len(h.a.StreamUsers()) == 0
			}, 20*time.Second, 10*time.Millisecond)
		})
	}
}

// In every protocol that the API is spoken in, a refusal is one.
func TestProtocols(t *testing.T) {
	h := build(t, nil)
	h.people()
	token := "Bearer " + h.token(h.login("vera"), "x", 0).Text
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	server := httptest.NewUnstartedServer(h.server.Config.Handler)
	server.Config.Protocols = &p
	server.Start()
	defer server.Close()
	tr := &http.Transport{Protocols: &p}
	defer tr.CloseIdleConnections()
	for name, o := range map[string]connect.ClientOption{"grpc": connect.WithGRPC(), "grpc-web": connect.WithGRPCWeb(), "connect": connect.WithProtoJSON()} {
		t.Run(name, func(t *testing.T) {
			nobody := linktrialv1connect.NewOperatorServiceClient(&http.Client{Transport: tr}, server.URL, o)
			_, err := nobody.ListRuns(t.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{}))
			fails(t, err, connect.CodeUnauthenticated, "log in first")
			vera := linktrialv1connect.NewOperatorServiceClient(&http.Client{Transport: &header{tr, http.Header{"Authorization": {token}}}}, server.URL, o)
			_, err = vera.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{}))
			fails(t, err, connect.CodePermissionDenied, "this takes a director")
			_, err = vera.ListRuns(t.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{}))
			fails(t, err, connect.CodeUnimplemented)
			s, err := nobody.Watch(t.Context(), connect.NewRequest(&linktrialv1.WatchRequest{}))
			require.NoError(t, err)
			require.False(t, s.Receive())
			fails(t, s.Err(), connect.CodeUnauthenticated, "log in first")
		})
	}
}

// Over TLS the cookie is one that only this host, and only over TLS, can set.
func TestCookieOverTLS(t *testing.T) {
	h := build(t, nil)
	h.people()
	server := httptest.NewTLSServer(h.server.Config.Handler)
	defer server.Close()
	res, err := server.Client().Post(server.URL+"/linktrial.v1.AccessService/Login", "application/json", bytes.NewReader([]byte(`{"user":"vera","password":"`+password+`"}`)))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Regexp(t, `^__Host-linktrial=ltc_[A-Za-z0-9_-]{43}; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict$`, res.Header.Get("Set-Cookie"))
	require.NotNil(t, res.TLS)
	require.GreaterOrEqual(t, res.TLS.Version, uint16(tls.VersionTLS12))
}
