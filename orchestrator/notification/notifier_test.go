package notification_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/notify"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/notification"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// desk is a notifier over a real database, with nodes that a test sets.
type desk struct {
	t       *testing.T
	store   *store.Store
	data    string
	n       *notification.Notifier
	log     *logged
	changed notify.Notifier
	roots   *x509.CertPool
	limits  notification.Limits

	mu     sync.Mutex
	nodes  []nodes.Node
	health map[string]fleet.Health
	skew   time.Duration
}

// logged is the text of a log that several goroutines write.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// quick has tries follow one another within the time of a test.
var quick = notification.Limits{Try: 2 * time.Second, First: 20 * time.Millisecond, Last: 100 * time.Millisecond, GiveUp: time.Minute}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.URL(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return &desk{t: t, store: s, data: t.TempDir(), log: &logged{}, limits: quick, health: map[string]fleet.Health{}}
}

// start starts the notifier, again where there was one.
func (d *desk) start() *desk {
	d.t.Helper()
	n, err := notification.Start(d.t.Context(), notification.Config{Store: d.store, DataDir: d.data, Version: "test", Pages: "http://pages.example", Limits: d.limits, Roots: d.roots,
		Logger: slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Changed: d.changed.Changed,
		Now:    func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return time.Now().Add(d.skew) },
		Nodes:  func() []nodes.Node { d.mu.Lock(); defer d.mu.Unlock(); return append([]nodes.Node(nil), d.nodes...) },
		Health: func(name string) fleet.Health { d.mu.Lock(); defer d.mu.Unlock(); return d.health[name] }})
	require.NoError(d.t, err)
	d.n = n
	stop := sync.OnceFunc(n.Stop)
	d.t.Cleanup(stop)
	return d
}

func (d *desk) save(c notification.Channel, secret string) notification.Channel {
	d.t.Helper()
	out, err := d.n.Save(d.t.Context(), c, notification.Secret{New: secret})
	require.NoError(d.t, err)
	return out
}

func (d *desk) sql(statement string, args ...any) {
	d.t.Helper()
	require.NoError(d.t, d.store.InTx(d.t.Context(), func(tx store.Conn) error {
		_, err := tx.Exec(d.t.Context(), statement, args...)
		return err
	}))
	d.changed.Notify()
}

// run adds a campaign of one run, which has begun.
func (d *desk) run(campaign string) string {
	d.t.Helper()
	id := storetest.AddRun(d.t, d.store, campaign, storetest.Sheet(2))
	d.sql("UPDATE runs SET state = 'running', prepared_at = now(), started_at = now() WHERE id = $1", id)
	return id
}

func (d *desk) end(run, state, message string) {
	d.t.Helper()
	d.sql("UPDATE runs SET state = $2, message = $3, ended_at = now() WHERE id = $1", run, state, message)
}

func (d *desk) titles() (out []string) {
	d.t.Helper()
	all, err := d.n.List(d.t.Context(), 0, 0)
	require.NoError(d.t, err)
	for i := range all {
		out = append(out, all[len(all)-1-i].Title)
	}
	return out
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 30*time.Second, 20*time.Millisecond, what)
}

// told waits for so many notifications, and returns all.
func (d *desk) told(count int) []notification.Notification {
	d.t.Helper()
	var all []notification.Notification
	eventually(d.t, "notifications", func() bool {
		var err error
		all, err = d.n.After(d.t.Context(), 0)
		require.NoError(d.t, err)
		return len(all) >= count
	})
	require.Len(d.t, all, count, d.titles())
	return all
}

func (d *desk) channel(name string) notification.Channel {
	d.t.Helper()
	all, err := d.n.Channels(d.t.Context())
	require.NoError(d.t, err)
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	d.t.Fatalf("there is no channel %s", name)
	return notification.Channel{}
}

// delivery is what a receiver got.
type delivery struct {
	header http.Header
	body   []byte
}

// receiver is a server that takes webhooks.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	all []delivery
}

// receive starts a receiver; answer can be nil, and is called with how many came before.
func receive(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, before int)) *receiver {
	t.Helper()
	x := &receiver{}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x.mu.Lock()
		before := len(x.all)
		x.all = append(x.all, delivery{r.Header.Clone(), body})
		x.mu.Unlock()
		if answer != nil {
			answer(w, r, before)
		}
	}))
	t.Cleanup(x.Close)
	return x
}

func (x *receiver) got() []delivery {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]delivery(nil), x.all...)
}

func hook(name, url string) notification.Channel {
	return notification.Channel{Name: name, Way: notification.WayWebhook, Settings: notification.Settings{URL: url}}
}

func stalled(ctx context.Context) { <-ctx.Done() }
