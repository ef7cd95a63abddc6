package silence

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session makes calls through a gate, as the agent's session does: it polls
// without end, and delivers the journal with each answer.
type session struct {
	gate    *Gate
	journal *memory
	latency time.Duration // of a call

	mu        sync.Mutex
	delivered int // records
	cuts      int
	late      time.Duration // of what was sent before a cut
	calls     []span        // that were made, whether or not they were cut short
	commands  *commandList
	pending   []executor.Command // given with the next answer
}

type span struct{ from, to time.Time }

func newSession(latency time.Duration) *session {
	s := &session{journal: &memory{}, latency: latency, commands: &commandList{}}
	s.gate = NewGate(func() time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cuts++
		return s.late
	})
	return s
}

// run polls until ctx ends.
func (s *session) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.poll(ctx)
	}
}

func (s *session) poll(ctx context.Context) {
	cctx, leave, err := s.gate.Enter(ctx)
	if err != nil {
		return
	}
	window := s.gate.OpenWindow()
	from, records := time.Now(), s.journal.len()
	s.mu.Lock()
	latency := s.latency
	s.mu.Unlock()
	answered := wait(cctx, latency)
	s.mu.Lock()
	s.calls = append(s.calls, span{from, time.Now()})
	if answered {
		s.delivered = records
		s.commands.give(s.pending...)
		s.pending = nil
	}
	s.mu.Unlock()
	leave()
	if answered {
		s.gate.Answered(ctx, window)
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// CaughtUp implements [Delivery].
func (s *session) CaughtUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered >= s.journal.len()
}

// Committed implements [Delivery].
func (s *session) Committed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.delivered)
}

// Settled implements [Delivery].
func (s *session) Settled() bool { return s.CaughtUp() }

// Await implements [Delivery].
func (s *session) Await(ctx context.Context) bool {
	for !s.CaughtUp() {
		if !wait(ctx, time.Millisecond) {
			return false
		}
	}
	return true
}

// command is given to the executor with the next answer.
func (s *session) command(c executor.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, c)
}

// during returns the calls that were under way within some time.
func (s *session) during(from, to time.Time) []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []span
	for _, c := range s.calls {
		if c.from.Before(to) && c.to.After(from) {
			out = append(out, c)
		}
	}
	return out
}

// commandList implements [executor.Commands].
type commandList struct {
	mu   sync.Mutex
	all  []executor.Command
	more chan struct{}
}

func (l *commandList) Given() ([]executor.Command, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return slices.Clone(l.all), l.more
}

func (l *commandList) give(c ...executor.Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c...)
	if l.more != nil {
		close(l.more)
	}
	l.more = make(chan struct{})
}

// memory is a journal without a disk.
type memory struct {
	mu      sync.Mutex
	records []journal.Record
}

func (m *memory) Append(t journal.Type, body any) (int64, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, journal.Record{Seq: int64(len(m.records) + 1), At: time.Now(), Type: t, Body: b})
	return int64(len(m.records)), nil
}
func (m *memory) Sync() error       { return nil }
func (m *memory) CheckSpace() error { return nil }
func (m *memory) Records(f func(journal.Record) error) error {
	m.mu.Lock()
	all := slices.Clone(m.records)
	m.mu.Unlock()
	for _, r := range all {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
}

// attempts are the times in which a trial ran.
func (m *memory) attempts() []span {
	var out []span
	_ = m.Records(func(r journal.Record) error {
		switch r.Type {
		case journal.TypeAttemptStarted:
			out = append(out, span{from: r.At})
		case journal.TypeAttemptEnded:
			out[len(out)-1].to = r.At
		}
		return nil
	})
	return out
}

// transferRunner is a runner whose clients succeed after some time.
type transferRunner struct{ takes time.Duration }

func (r transferRunner) Start(_ context.Context, _ string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	out, in := io.Pipe()
	proc := &process{out: out, done: make(chan struct{}), stop: make(chan struct{})}
	go func() {
		defer close(proc.done)
		defer in.Close()
		if p.Role == contract.RoleServer {
			<-proc.stop
			return
		}
		e := json.NewEncoder(in)
		_ = e.Encode(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "test"}})
		_ = e.Encode(contract.Event{Event: contract.KindConnected, Transfer: p.Transfer.ID, ConnectNS: 1})
		select {
		case <-time.After(r.takes):
		case <-proc.stop:
			return
		}
		_ = e.Encode(contract.Event{Event: contract.KindResult, Transfer: p.Transfer.ID,
			Result: &contract.Result{SizeBytes: p.Transfer.SizeBytes, ElapsedNS: 1, Digest: strings.Repeat("0", 64)}})
	}()
	return proc, nil
}

type process struct {
	out        io.ReadCloser
	done, stop chan struct{}
	once       sync.Once
}

func (p *process) Output() io.ReadCloser  { return p.out }
func (p *process) Done() <-chan struct{}  { return p.done }
func (p *process) Exit() executor.Exit    { return executor.Exit{} }
func (p *process) Log() string            { return "" }
func (p *process) Terminate()             { p.once.Do(func() { close(p.stop) }) }
func (p *process) Stops() *executor.Stops { return nil }
func (p *process) Kill()                  { p.Terminate() }

func testSheet(t *testing.T, trials int) (*runsheet.Sheet, []byte) {
	t.Helper()
	s := &runsheet.Sheet{Format: runsheet.Format, Plan: "p", Control: runsheet.ControlInBand,
		Limits:     runsheet.Limits{Connect: time.Second, Transfer: time.Minute, Attempts: 1},
		Treatments: []runsheet.Treatment{{Name: "a", Protocol: "a", Port: 5001}, {Name: "b", Protocol: "b", Missing: "no driver"}}}
	for i := range trials {
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: i + 1, Treatment: "a",
			Flows: []runsheet.Flow{{Treatment: "a", From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1000}}})
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

func (s *session) config(encoded []byte, role radio.Role, o executor.Observer) executor.Config {
	return executor.Config{RunID: "r", Role: role, Sheet: encoded, SheetHash: runsheet.Hash(encoded), Journal: s.journal,
		Runner: transferRunner{10 * time.Second}, Commands: s.commands, Observer: o}
}

// A gate ends the calls under way, waits for them, and then cuts connections.
func TestSuspendEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		g := NewGate(func() time.Duration { order = append(order, "cut"); return time.Second })
		cctx, leave, err := g.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-cctx.Done()
			time.Sleep(time.Second) // the call takes its time to return
			order = append(order, "returned")
			leave()
		}()
		began := time.Now()
		g.Suspend()
		if want := []string{"returned", "cut"}; !slices.Equal(order, want) || time.Since(began) != time.Second {
			t.Errorf("%q after %s, expected %q after 1 s", order, time.Since(began), want)
		}
		if !g.Suspended() || g.Unrestricted() {
			t.Error("the gate is not suspended")
		}
	})
}

// Calls pass when each suspension has been taken back, and a call that waits
// ends with its context.
func TestSuspensionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(func() time.Duration { return 0 })
		g.Suspend()
		g.Suspend()
		passed := false
		go func() {
			_, leave, err := g.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			passed = true
			leave()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := g.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call at a suspended gate: %v", err)
		}
		g.Resume()
		synctest.Wait()
		if passed {
			t.Fatal("a call passed a gate with one suspension left")
		}
		g.Resume()
		synctest.Wait()
		if !passed || !g.Unrestricted() {
			t.Error("no call passes the open gate")
		}
	})
}

// No call is under way while a trial runs; at each boundary all is delivered.
func TestLeaderMakesNoCallDuringATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(50 * time.Millisecond)
		_, sheet := testSheet(t, 4)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		time.Sleep(time.Second) // calls are under way when the run begins
		leader := NewLeader(s.gate, s, 200*time.Millisecond, 1, nil)
		boundaries := &boundaryCheck{Leader: leader, delivered: s.CaughtUp}
		if err := executor.Lead(ctx, s.config(sheet, radio.RoleClient, boundaries)); err != nil {
			t.Fatal(err)
		}
		leader.End()
		attempts := s.journal.attempts()
		if len(attempts) != 4 {
			t.Fatalf("%d attempts, expected 4", len(attempts))
		}
		for i, a := range attempts {
			if calls := s.during(a.from, a.to); len(calls) > 0 {
				t.Errorf("trial %d ran from %s to %s, and calls: %v", i, a.from, a.to, calls)
			}
		}
		if boundaries.caughtUp != 4 {
			t.Errorf("all was delivered at %d boundaries, expected 4", boundaries.caughtUp)
		}
		time.Sleep(time.Second)
		if !s.gate.Unrestricted() || !s.CaughtUp() {
			t.Error("calls are not resumed after the run")
		}
		cancel()
		running.Wait()
	})
}

// boundaryCheck counts the boundaries after which all is delivered.
type boundaryCheck struct {
	*Leader
	delivered func() bool
	caughtUp  int
}

func (b *boundaryCheck) Boundary(ctx context.Context) {
	b.Leader.Boundary(ctx)
	if b.delivered() {
		b.caughtUp++
	}
}

// Windows in which no answer arrives are followed by longer ones, up to a bound.
func TestLeaderWindowsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(time.Hour) // no answer ever arrives
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		l := NewLeader(s.gate, s, 200*time.Millisecond, 1, nil)
		l.Leading(ctx)
		var windows []time.Duration
		for range 6 {
			time.Sleep(time.Minute) // a trial
			began := time.Now()
			l.Boundary(ctx)
			windows = append(windows, time.Since(began))
		}
		want := []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond}
		if !slices.Equal(windows, want) {
			t.Errorf("windows of %v, expected %v", windows, want)
		}
		s.mu.Lock()
		s.latency = 20 * time.Millisecond
		s.mu.Unlock()
		time.Sleep(time.Minute)
		began := time.Now()
		l.Boundary(ctx)
		if d := time.Since(began); d > 30*time.Millisecond {
			t.Errorf("a window that has its answer lasts %s", d)
		}
		l.End()
		l.End() // resumes once
		if !s.gate.Unrestricted() {
			t.Error("calls are not resumed")
		}
		cancel()
		running.Wait()
	})
}

// In a pause calls pass, so that the command to resume arrives; what the
// executor recorded of it is delivered before the next trial.
func TestLeaderCallsInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(50 * time.Millisecond)
		_, sheet := testSheet(t, 2)
		s.command(executor.Command{ID: "1", Kind: journal.CommandPause})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		time.AfterFunc(15*time.Minute, func() { s.command(executor.Command{ID: "2", Kind: journal.CommandResume}) })
		time.Sleep(time.Second)
		began := time.Now()
		if err := executor.Lead(ctx, s.config(sheet, radio.RoleClient, NewLeader(s.gate, s, 200*time.Millisecond, 1, nil))); err != nil {
			t.Fatal(err)
		}
		attempts := s.journal.attempts()
		if d := attempts[0].from.Sub(began); d < 14*time.Minute || d > 16*time.Minute {
			t.Errorf("the first trial began after %s, expected 15 min", d)
		}
		if n := len(s.during(began, attempts[0].from)); n < 1000 {
			t.Errorf("%d calls in the pause", n)
		}
		for i, a := range attempts {
			if calls := s.during(a.from, a.to); len(calls) > 0 {
				t.Errorf("calls during trial %d: %v", i, calls)
			}
		}
		cancel()
		running.Wait()
	})
}

// The server's agent calls until its preparation is delivered, and then only
// where its listeners have been idle for long enough.
func TestServerCallsWhenListenersAreIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(20 * time.Millisecond)
		sheet, _ := testSheet(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		server := NewServer(s.gate, s, s.journal, sheet, func() {})
		stop := server.Start(ctx)
		time.Sleep(time.Minute)
		if s.gate.Suspended() {
			t.Fatal("calls are suspended before the listener is recorded")
		}
		_, _ = s.journal.Append(journal.TypeListenerReady, journal.Listener{Treatment: "a"})
		time.Sleep(time.Second)
		if !s.gate.Suspended() {
			t.Fatal("calls are not suspended when the preparation is delivered")
		}
		// Transfers one after the other, with the longest pause between them that
		// is too short for a window.
		server.Transfers(0)
		idle := sheet.IdleBeforeControl()
		began := time.Now()
		for range 5 {
			time.Sleep(idle - time.Second)
			server.Transfers(1)
			time.Sleep(time.Minute)
			server.Transfers(0)
		}
		if calls := s.during(began, time.Now()); len(calls) > 0 {
			t.Errorf("calls while transfers run: %v", calls)
		}
		ended := time.Now()
		_, _ = s.journal.Append(journal.TypeReceived, journal.Received{Treatment: "a"})
		time.Sleep(idle - time.Millisecond)
		if calls := s.during(ended, time.Now()); len(calls) > 0 {
			t.Errorf("calls before the listeners are idle for %s: %v", idle, calls)
		}
		time.Sleep(followerWindow)
		if !s.CaughtUp() || !s.gate.Suspended() {
			t.Errorf("after a window: delivered %t, suspended %t", s.CaughtUp(), s.gate.Suspended())
		}
		stop()
		if !s.gate.Unrestricted() {
			t.Error("calls are not resumed at the end")
		}
		cancel()
		running.Wait()
	})
}

// A server that ends before its preparation is complete leaves the gate open.
func TestServerThatEndsBeforeItIsPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(time.Millisecond)
		sheet, _ := testSheet(t, 1)
		stop := NewServer(s.gate, s, s.journal, sheet, func() {}).Start(t.Context())
		time.Sleep(time.Second)
		stop()
		if !s.gate.Unrestricted() {
			t.Error("calls are suspended")
		}
	})
}
