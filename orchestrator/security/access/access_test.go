package access_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/rpc/people"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

var cheap = access.Cost{Passes: 1, MemoryKiB: 64, Lanes: 1}

// house is an orchestrator's access over real HTTP and a real database.
// Behind the guard stand services that answer unimplemented: whoever hears
// that has passed.
type house struct {
	t      *testing.T
	a      *access.Access
	store  *store.Store
	clock  *clock
	data   string
	url    string
	server *httptest.Server
}

func build(t *testing.T, change func(*access.Config)) *house {
	t.Helper()
	h := &house{t: t, clock: newClock(), data: t.TempDir(), store: storetest.Open(t)}
	cfg := access.Config{Store: h.store, Required: true, DataDir: h.data, Cost: cheap, Now: h.clock.now}
	if change != nil {
		change(&cfg)
	}
	h.data = cfg.DataDir
	var err error
	h.a, err = access.New(t.Context(), cfg)
	require.NoError(t, err)
	mux := http.NewServeMux()
	opt := connect.WithInterceptors(h.a.Interceptor())
	mux.Handle(linktrialv1connect.NewAccessServiceHandler(people.New(h.a, slog.New(slog.DiscardHandler)), opt))
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(&held{}, opt))
	mux.Handle(linktrialv1connect.NewControlServiceHandler(&signed{}, opt))
	mux.Handle(linktrialv1connect.NewAgentServiceHandler(linktrialv1connect.UnimplementedAgentServiceHandler{}, opt))
	mux.Handle(linktrialv1connect.NewCatalogServiceHandler(linktrialv1connect.UnimplementedCatalogServiceHandler{}, opt))
	h.a.Mount(mux)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/handbook/", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	h.server = httptest.NewServer(h.a.Guard(mux))
	h.url = h.server.URL
	t.Cleanup(func() {
		h.server.Close()
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, h.a.Close())
	})
	return h
}

// held watches until it is told to stop.
type held struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
}

func (*held) Watch(ctx context.Context, _ *connect.Request[linktrialv1.WatchRequest], s *connect.ServerStream[linktrialv1.WatchResponse]) error {
	if err := s.Send(&linktrialv1.WatchResponse{}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (*held) StartPlan(_ context.Context, r *connect.Request[linktrialv1.StartPlanRequest]) (*connect.Response[linktrialv1.StartPlanResponse], error) {
	if r.Msg.File == "wrong.yaml" {
		return connect.NewResponse(&linktrialv1.StartPlanResponse{Problems: []*linktrialv1.Problem{{}, {}}}), nil
	}
	return connect.NewResponse(&linktrialv1.StartPlanResponse{CampaignId: "c7"}), nil
}

// signed refuses with the name that it is told.
type signed struct {
	linktrialv1connect.UnimplementedControlServiceHandler
}

func (*signed) PauseRun(_ context.Context, r *connect.Request[linktrialv1.PauseRunRequest]) (*connect.Response[linktrialv1.PauseRunResponse], error) {
	return nil, connect.NewError(connect.CodeNotFound, &wordError{"by " + r.Msg.By})
}

type wordError struct{ s string }

func (e *wordError) Error() string { return e.s }

// caller speaks with one credential.
type caller struct {
	linktrialv1connect.AccessServiceClient
	operator linktrialv1connect.OperatorServiceClient
	control  linktrialv1connect.ControlServiceClient
	http     *http.Client
}

type header struct {
	next http.RoundTripper
	set  http.Header
}

func (h *header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h.set {
		r.Header[k] = v
	}
	return h.next.RoundTrip(r)
}

// as is a caller with headers of its own and, like a browser, with a jar of cookies.
func (h *house) as(pairs ...string) *caller {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(h.t, err)
	set := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		set.Set(pairs[i], pairs[i+1])
	}
	tr := &http.Transport{}
	h.t.Cleanup(tr.CloseIdleConnections)
	c := &http.Client{Jar: jar, Transport: &header{tr, set}}
	return &caller{linktrialv1connect.NewAccessServiceClient(c, h.url), linktrialv1connect.NewOperatorServiceClient(c, h.url), linktrialv1connect.NewControlServiceClient(c, h.url), c}
}

func (h *house) withToken(text string) *caller { return h.as("Authorization", "Bearer "+text) }

func (h *house) setupToken() string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.data, access.SetupFile))
	require.NoError(h.t, err)
	return strings.TrimSpace(string(b))
}

const password = "correct horse battery"

// people makes an admin (anna), a director (dirk) and a viewer (vera).
func (h *house) people() {
	h.t.Helper()
	require.NoError(h.t, add(h.withToken(h.setupToken()), "anna", linktrialv1.Role_ROLE_ADMIN))
	anna := h.login("anna")
	require.NoError(h.t, add(anna, "dirk", linktrialv1.Role_ROLE_DIRECTOR))
	require.NoError(h.t, add(anna, "vera", linktrialv1.Role_ROLE_VIEWER))
}

func add(c *caller, name string, role linktrialv1.Role) error {
	_, err := c.AddUser(context.Background(), connect.NewRequest(&linktrialv1.AddUserRequest{Name: name, Role: role, Password: password}))
	return err
}

// login is a browser with a session.
func (h *house) login(user string) *caller {
	h.t.Helper()
	c := h.as()
	_, err := c.try(user, password)
	require.NoError(h.t, err)
	return c
}

func (c *caller) try(user, password string) (*connect.Response[linktrialv1.LoginResponse], error) {
	return c.Login(context.Background(), connect.NewRequest(&linktrialv1.LoginRequest{User: user, Password: password}))
}

// who is the name and the role that the orchestrator knows a caller by.
func (h *house) who(c *caller) string {
	h.t.Helper()
	res, err := c.WhoAmI(h.t.Context(), connect.NewRequest(&linktrialv1.WhoAmIRequest{}))
	require.NoError(h.t, err)
	if res.Msg.User == "" {
		return ""
	}
	return res.Msg.User + " " + access.Role(res.Msg.Role).String()
}

// token is a program's, made by the user in a browser.
func (h *house) token(c *caller, name string, role linktrialv1.Role) *linktrialv1.CreateTokenResponse {
	h.t.Helper()
	res, err := c.CreateToken(h.t.Context(), connect.NewRequest(&linktrialv1.CreateTokenRequest{Name: name, Role: role}))
	require.NoError(h.t, err)
	return res.Msg
}

func fails(t *testing.T, err error, code connect.Code, words ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, connect.CodeOf(err), "%v", err)
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
	require.NotContains(t, err.Error(), "\n", "one sentence")
}
