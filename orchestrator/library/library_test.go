package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/library/librarydb"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// withDriver is the built-in catalog with one driver.
type withDriver struct{ *catalog.Catalog }

func (c withDriver) Manifest(name string) *contract.Manifest {
	if name != "alpha" {
		return nil
	}
	return &contract.Manifest{Name: "alpha", Title: "Alpha", Version: "1", Network: "tcp"}
}
func (c withDriver) Protocols() []string { return []string{"alpha"} }

const good = `name: short
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: one, protocol: alpha}
iterations: 2
seed: 1
`

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

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

type launcher func(context.Context, launch.Request) (launch.Started, error)

func (f launcher) Start(ctx context.Context, p launch.Request) (launch.Started, error) {
	return f(ctx, p)
}

// rig is a library that records what it starts.
type rig struct {
	*Library
	t     *testing.T
	cfg   Config
	clock *clock

	mu      sync.Mutex
	started []string
	refused error
	ahead   []string
}

func newRig(t *testing.T, s *store.Store) *rig {
	t.Helper()
	cat, err := catalog.Load(catalog.Config{})
	require.NoError(t, err)
	r := &rig{t: t, clock: &clock{at: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)}}
	r.cfg = Config{Store: s, Catalog: withDriver{cat}, Shipped: fstest.MapFS{"demo.yaml": {Data: []byte(good)}}, Settle: time.Nanosecond,
		Now: r.clock.now, Ahead: func() []string { r.mu.Lock(); defer r.mu.Unlock(); return r.ahead },
		Launcher: launcher(func(ctx context.Context, p launch.Request) (launch.Started, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.refused != nil {
				return launch.Started{}, r.refused
			}
			id := fmt.Sprintf("camp%d", len(r.started))
			r.started = append(r.started, p.File+" "+p.Name+" "+string(p.Text))
			return launch.Started{Campaign: id}, s.InsertCampaign(ctx, store.InsertCampaignParams{ID: id, Name: "x", Plan: "x", PlanFile: p.File, PlanText: p.Text, PlanHash: hashOf(p.Text)})
		})}
	r.start()
	return r
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	r.Library, err = Start(r.t.Context(), r.cfg)
	require.NoError(r.t, err)
	r.t.Cleanup(r.Stop)
}

// move moves the clock, and makes the library check its schedules at once.
func (r *rig) move(d time.Duration) {
	r.clock.move(d)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// restart ends the library and starts it again after d on the clock.
func (r *rig) restart(d time.Duration) {
	r.t.Helper()
	r.Stop()
	r.clock.move(d)
	r.start()
}

func (r *rig) starts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.started)
}

func (r *rig) schedule(id string) Scheduled {
	r.t.Helper()
	all, err := r.Schedules(r.t.Context())
	require.NoError(r.t, err)
	i := slices.IndexFunc(all, func(s Scheduled) bool { return s.ID == id })
	require.GreaterOrEqual(r.t, i, 0)
	return all[i]
}

// becomes waits until a schedule has a state.
func (r *rig) becomes(id string, want State) Scheduled {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.schedule(id).State == want }, 20*time.Second, 10*time.Millisecond, "schedule %s does not become %s", id, want)
	return r.schedule(id)
}

func TestPlans(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	p, err := r.Save(ctx, "mine", []byte(good), 0)
	require.NoError(t, err)
	require.Equal(t, Plan{Name: "mine", Changed: r.clock.now(), Revision: 1, Text: []byte(good), Title: "short", Summary: "short: 1 run, 1 treatment, 2 iterations, 2 trials"}, p)
	draft, err := r.Save(ctx, "a-draft", []byte("name: later\nradio: nowhere\n"), 0)
	require.NoError(t, err)
	require.Equal(t, "later", draft.Title)
	require.Greater(t, draft.Problems, 1)
	require.Contains(t, draft.Summary, "a-draft.yaml:")
	for _, text := range []string{"", "name: [", "- 1", "\x00"} {
		p, err := r.Save(ctx, fmt.Sprintf("d%d", len(text)), []byte(text), 0)
		require.NoError(t, err, "%q", text)
		require.Positive(t, p.Problems)
		require.NotEmpty(t, p.Summary)
		require.NoError(t, r.Delete(ctx, p.Name))
	}

	all, err := r.List(ctx)
	require.NoError(t, err)
	var names []string
	for _, p := range all {
		require.Nil(t, p.Text)
		names = append(names, fmt.Sprint(p.Name, " ", p.Shipped, " ", p.Revision))
	}
	require.Equal(t, []string{"a-draft false 1", "mine false 1", "demo true 0"}, names)

	changed := strings.Replace(good, "iterations: 2", "iterations: 3", 1)
	p, err = r.Save(ctx, "mine", []byte(changed), 1)
	require.NoError(t, err)
	require.Equal(t, 2, p.Revision)
	for _, c := range []struct {
		name     string
		revision int
		is       error
		word     string
	}{
		{"mine", 1, ErrRevision, "revision 2"},
		{"mine", 0, ErrExists, "revision 2"},
		{"mine", -1, ErrRefused, ""},
		{"new", 1, ErrNotFound, "new"},
		{"demo", 0, ErrShipped, "another name"},
		{"Mine", 0, ErrRefused, "lower-case"},
		{"", 0, ErrRefused, ""},
		{"../x", 0, ErrRefused, ""},
	} {
		_, err := r.Save(ctx, c.name, []byte(good), c.revision)
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.word)
	}
	_, err = r.Save(ctx, "huge", make([]byte, maxText+1), 0)
	require.ErrorIs(t, err, ErrRefused)
	got, err := r.Get(ctx, "mine")
	require.NoError(t, err)
	require.Equal(t, changed, string(got.Text), "a refused save changed it")
	demo, err := r.Get(ctx, "demo")
	require.NoError(t, err)
	require.True(t, demo.Shipped)

	require.ErrorIs(t, r.Delete(ctx, "demo"), ErrShipped)
	require.ErrorIs(t, r.Delete(ctx, "none"), ErrNotFound)
	require.NoError(t, r.Delete(ctx, "mine"))
	_, err = r.Get(ctx, "mine")
	require.ErrorIs(t, err, ErrNotFound)
}

// Of several people who edited the same revision, one can save.
func TestConcurrentSaves(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	_, err := r.Save(ctx, "mine", []byte(good), 0)
	require.NoError(t, err)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			_, err := r.Save(ctx, "mine", []byte(good), 1)
			errs <- err
		}()
	}
	won := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			won++
		} else {
			require.ErrorIs(t, err, ErrRevision)
		}
	}
	require.Equal(t, 1, won)
}

func TestScheduleStarts(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	_, err := r.Save(ctx, "mine", []byte(good), 0)
	require.NoError(t, err)
	x, err := r.Schedule(ctx, Order{Plan: "mine", At: r.clock.now().Add(time.Hour), Name: "evening", By: "director"})
	require.NoError(t, err)
	require.Equal(t, Waiting, x.State)
	require.Empty(t, x.Message)
	require.Equal(t, x, r.schedule(x.ID))
	// What is saved later does not change it, and it cannot be deleted under it.
	_, err = r.Save(ctx, "mine", []byte("name: broken"), 1)
	require.NoError(t, err)
	require.ErrorIs(t, r.Delete(ctx, "mine"), ErrInUse)

	second, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Hour + time.Second)})
	require.NoError(t, err)
	require.Contains(t, second.Message, "overlaps with mine")
	require.NoError(t, r.Cancel(ctx, second.ID))
	require.ErrorIs(t, r.Cancel(ctx, second.ID), ErrEnded)
	require.ErrorIs(t, r.Cancel(ctx, "none"), ErrNotFound)

	r.mu.Lock()
	r.ahead = []string{"abcd-1"}
	r.mu.Unlock()
	r.move(time.Hour + time.Second)
	got := r.becomes(x.ID, Started)
	require.Equal(t, "camp0", got.Campaign)
	require.Contains(t, got.Message, "abcd-1")
	require.Equal(t, []string{"mine.yaml evening " + good}, r.starts())
	require.Equal(t, Cancelled, r.schedule(second.ID).State)
	r.restart(0)
	require.Len(t, r.starts(), 1, "started twice")
	require.NoError(t, r.Delete(ctx, "mine"))
}

func TestScheduleRefusals(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	_, err := r.Save(ctx, "draft", []byte("name: later\nradio: nowhere\n"), 0)
	require.NoError(t, err)
	now := r.clock.now()
	for _, c := range []struct {
		plan string
		at   time.Time
		is   error
		word string
	}{
		{"draft", now.Add(time.Hour), ErrRefused, "draft.yaml:2:"},
		{"none", now.Add(time.Hour), ErrNotFound, "none"},
		{"demo", now.Add(-time.Second), ErrRefused, "has passed"},
		{"demo", now.Add(2 * maxAhead), ErrRefused, "year"},
	} {
		_, err := r.Schedule(ctx, Order{Plan: c.plan, At: c.at})
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.word)
	}
	_, err = r.Schedule(ctx, Order{Plan: "demo", At: now.Add(time.Hour), Name: strings.Repeat("x", maxName+1)})
	require.ErrorIs(t, err, ErrRefused)

	for _, patience := range []time.Duration{-time.Second, minPatience - 1, maxPatience + 1} {
		_, err = r.Schedule(ctx, Order{Plan: "demo", At: now.Add(time.Hour), Patience: patience})
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "10s to 24h0m0s")
	}

	// A plan that has faults at its time is told, and not tried again.
	x, err := r.Schedule(ctx, Order{Plan: "demo", At: now.Add(time.Minute)})
	require.NoError(t, err)
	r.refuse(yamldoc.Problems{{File: "demo.yaml", Line: 2, Column: 8, Message: "no such radio"}})
	r.move(61 * time.Second)
	require.Equal(t, "demo.yaml:2:8: no such radio", r.becomes(x.ID, Failed).Message)
	r.refuse(nil)
	r.restart(0)
	require.Equal(t, Failed, r.schedule(x.ID).State)
	require.Empty(t, r.starts())
}

// refuse has starts refused for this reason from now on; nil: they succeed.
func (r *rig) refuse(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = why
}

// says waits until a schedule that waits has a message.
func (r *rig) says(id, want string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { x := r.schedule(id); return x.State == Waiting && x.Message == want }, 20*time.Second, 10*time.Millisecond, "schedule %s does not say %q", id, want)
}

// Where a node is missing at the time, the start is tried again until the node is
// there or the schedule's patience ends.
func TestPatience(t *testing.T) {
	const away = "no server node is connected; known: b"
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	r.refuse(launch.Missing{away})
	short, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute), Patience: 30 * time.Second})
	require.NoError(t, err)
	usual, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute)})
	require.NoError(t, err)
	require.Equal(t, DefaultPatience, r.schedule(usual.ID).Patience)
	cancelled, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute)})
	require.NoError(t, err)

	r.move(60 * time.Second)
	r.says(short.ID, "is tried until 08:01:30 UTC: "+away)
	r.says(usual.ID, "is tried until 08:03:00 UTC: "+away)
	require.NoError(t, r.Cancel(ctx, cancelled.ID))
	r.move(31 * time.Second)
	require.Equal(t, "could not start within 30s: "+away, r.becomes(short.ID, Failed).Message)

	// Another start of the orchestrator goes on with it.
	r.restart(39 * time.Second)
	r.move(time.Second)
	r.says(usual.ID, "is tried until 08:03:00 UTC: "+away)
	require.Empty(t, r.starts())
	r.refuse(nil)
	require.Equal(t, "started 1m11s late, because nodes were missing", r.becomes(usual.ID, Started).Message, "without a clock that moves: it is tried by itself")
	require.Len(t, r.starts(), 1)
	require.Equal(t, Cancelled, r.schedule(cancelled.ID).State)
}

// A plan with more faults than are listed is not tried again either. Of a fault of the
// orchestrator people are told what they would be by hand, and not its text.
func TestFailedStarts(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	for _, c := range []struct {
		why  error
		want string
	}{
		{yamldoc.Problems{{File: "demo.yaml", Line: 2, Column: 8, Message: "unknown radio"}, {File: "demo.yaml", Message: "and 7 more problems"}},
			"^demo.yaml:2:8: unknown radio\ndemo.yaml: and 7 more problems$"},
		{fmt.Errorf("queue campaign: %w", &pgconn.PgError{Code: "53100", Message: "table x"}), "^the database has no room left on its disk, so nothing can be stored: "},
		{errors.New("sheet x"), "^the orchestrator failed at this call: its log has the reason, as incident [0-9a-f]{8}$"},
	} {
		r.refuse(c.why)
		x, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute)})
		require.NoError(t, err)
		r.move(time.Minute)
		require.Regexp(t, c.want, r.becomes(x.ID, Failed).Message)
	}
}

func TestMissedSchedules(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	early, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute)})
	require.NoError(t, err)
	soon, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(2 * time.Minute)})
	require.NoError(t, err)
	// Down when the first is due, and up again within the patience of the second.
	r.restart(3*time.Minute + 30*time.Second)
	require.Contains(t, r.becomes(early.ID, Missed).Message, "2m30s later")
	r.move(time.Second)
	r.becomes(soon.ID, Started)
	require.Len(t, r.starts(), 1)
}

// A crash between the claim and the campaign, and one after the campaign.
func TestCrashDuringAStart(t *testing.T) {
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprint("campaign is there: ", begun), func(t *testing.T) {
			s := storetest.Open(t)
			r, ctx := newRig(t, s), t.Context()
			x, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute)})
			require.NoError(t, err)
			r.Stop()
			n, err := librarydb.New(s).ClaimSchedule(ctx, x.ID)
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
			if begun {
				require.NoError(t, s.InsertCampaign(ctx, store.InsertCampaignParams{ID: "there", Name: "x", Plan: "x", PlanFile: "demo.yaml", PlanText: []byte(good), PlanHash: hashOf([]byte(good))}))
			}
			r.clock.move(time.Minute)
			r.start()
			got := r.schedule(x.ID)
			if begun {
				require.Equal(t, Started, got.State)
				require.Equal(t, "there", got.Campaign)
			} else {
				require.Equal(t, Missed, got.State)
			}
			require.Empty(t, r.starts(), "started again")
		})
	}
}

// After its own start the library waits until nodes can have connected again.
func TestNothingStartsBeforeSettle(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	x, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute)})
	require.NoError(t, err)
	r.cfg.Settle = 20 * time.Second
	r.restart(61 * time.Second)
	require.NoError(t, r.startDue(ctx, r.clock.now().Sub(r.began) >= r.cfg.Settle))
	require.Equal(t, Waiting, r.schedule(x.ID).State)
	r.move(21 * time.Second)
	r.becomes(x.ID, Started)
}

// When the orchestrator stops while it starts a plan, its next start resolves the
// schedule.
func TestStopDuringAStart(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	began := make(chan struct{})
	r.Stop()
	r.cfg.Launcher = launcher(func(ctx context.Context, _ launch.Request) (launch.Started, error) {
		close(began)
		<-ctx.Done()
		return launch.Started{}, ctx.Err()
	})
	r.start()
	x, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Second)})
	require.NoError(t, err)
	r.move(2 * time.Second)
	select {
	case <-began:
	case <-time.After(30 * time.Second):
		t.Fatal("not started")
	}
	r.Stop()
	r.cfg.Launcher = launcher(func(context.Context, launch.Request) (launch.Started, error) {
		return launch.Started{}, errors.New("must not be called")
	})
	r.start()
	require.Equal(t, Missed, r.schedule(x.ID).State)
}

// When the orchestrator stops between the claim and the start, nothing has begun: its
// next start tries it again.
func TestStopBeforeAStart(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	x, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(time.Minute)})
	require.NoError(t, err)
	r.Stop()
	r.clock.move(time.Minute)
	open, err := r.db.OpenSchedules(ctx)
	require.NoError(t, err)
	require.Len(t, open, 1)
	ctx, stop := context.WithCancel(ctx)
	r.Library.cfg.Ahead = func() []string { stop(); return nil }
	require.ErrorIs(t, r.Library.start(ctx, open[0]), context.Canceled)
	require.Equal(t, Waiting, r.schedule(x.ID).State)
	r.start()
	r.move(time.Second)
	r.becomes(x.ID, Started)
	require.Len(t, r.starts(), 1)
}
