// Package machines tests how nodes and orchestrator authenticate each other: real TLS
// over the loopback, a real PostgreSQL, and the error texts that a person reads.
package machines

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	wire "linktrial/internal/identity"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/rpc/enrol"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

const day = 24 * time.Hour

// orchestrator is an orchestrator on the loopback that works with enrolled nodes.
type orchestrator struct {
	*server.Server
	clock *clock
	cfg   server.Config
	stop  func()
}

func serve(t testing.TB, change func(*server.Config)) *orchestrator {
	t.Helper()
	cat, err := catalog.Load(catalog.Config{DriversDir: t.TempDir()})
	require.NoError(t, err)
	o := &orchestrator{clock: newClock()}
	o.cfg = server.Config{Listen: "127.0.0.1:0", DatabaseURL: storetest.URL(t), DataDir: t.TempDir(), Catalog: cat, Version: "v-orchestrator", TLS: true, Now: o.clock.now}
	if change != nil {
		change(&o.cfg)
	}
	o.start(t)
	t.Cleanup(func() { o.stop() })
	return o
}

func (o *orchestrator) start(t testing.TB) {
	t.Helper()
	s, err := server.Start(t.Context(), o.cfg)
	require.NoError(t, err)
	o.Server = s
	o.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
	})
}

// restart keeps everything that is stored, and the port.
func (o *orchestrator) restart(t testing.TB) {
	t.Helper()
	o.cfg.Listen = o.Addr()
	o.stop()
	o.start(t)
}

func (o *orchestrator) token(t testing.TB, name string) wire.Token {
	t.Helper()
	tok, _, err := o.Authority().CreateToken(t.Context(), name, 0, "a test")
	require.NoError(t, err)
	return tok
}

// node is a machine with a folder and a clock.
type node struct {
	dir   string
	clock *clock
}

func newNode(t testing.TB) *node { return &node{t.TempDir(), newClock()} }

func (n *node) enrolment(url string, tok wire.Token) identity.Enrolment {
	return identity.Enrolment{Orchestrator: url, Token: tok, Dir: n.dir, Now: n.clock.now}
}

func enrolled(t testing.TB, o *orchestrator, name string) (*node, *identity.Identity) {
	t.Helper()
	n := newNode(t)
	n.clock = o.clock
	id, err := identity.Enrol(t.Context(), n.enrolment(o.URL(), o.token(t, name)))
	require.NoError(t, err)
	return n, id
}

// bare checks that a node has no identity, nor parts of one.
func (n *node) bare(t testing.TB) {
	t.Helper()
	_, err := os.Stat(filepath.Join(n.dir, identity.File))
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing half-changed")
	_, err = identity.Load(n.dir, n.clock.now)
	require.ErrorIs(t, err, identity.ErrNone)
}

// caller makes an agent's calls with the certificate of a node.
func caller(t testing.TB, o *orchestrator, id *identity.Identity) linktrialv1connect.AgentServiceClient {
	t.Helper()
	return call(t, o, id.TLS())
}

func registration(name string) *connect.Request[linktrialv1.RegisterRequest] {
	return connect.NewRequest(&linktrialv1.RegisterRequest{Protocol: agentprotocol.Number, Name: name, Role: "client", Version: "v-agent", Emulated: true, Incarnation: "one"})
}

func poll(name string, wait time.Duration, revision int64) *connect.Request[linktrialv1.PollRequest] {
	return connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: name, Incarnation: "one", Revision: revision, WaitMs: int32(wait.Milliseconds())})
}

// says checks that an error is one sentence with these words.
func says(t testing.TB, err error, code connect.Code, words ...string) {
	t.Helper()
	require.Error(t, err)
	text := err.Error()
	if code != 0 {
		require.Equal(t, code, connect.CodeOf(err), text)
		var ce *connect.Error
		require.True(t, errors.As(err, &ce))
		text = ce.Message()
	}
	for _, w := range words {
		require.Contains(t, text, w)
	}
	require.NotContains(t, text, "\n", "one sentence")
}

// logged holds the lines of a logger.
type logged struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// hangs bounds calls that should take milliseconds, on a machine that may be busy.
const hangs = 60 * time.Second

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(hangs); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", hangs, what)
		}
	}
}

func states(t testing.TB, o *orchestrator) map[string]*linktrialv1.NodeIdentity {
	t.Helper()
	list, err := o.Authority().Identities(t.Context())
	require.NoError(t, err)
	out := map[string]*linktrialv1.NodeIdentity{}
	for i := range list {
		out[list[i].Name] = enrol.NodeIdentity(&list[i])
	}
	return out
}
