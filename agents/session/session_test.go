package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// orchestrator is the other end, in this process but over real sockets. It
// stores what is delivered, loses answers when it is told to, and can be cut off.
type orchestrator struct {
	linktrialv1connect.UnimplementedAgentServiceHandler
	skew time.Duration

	mu          sync.Mutex
	known       map[string]bool // registered incarnations
	revision    int64
	assignments []*linktrialv1.SignedAssignment
	changed     notify.Notifier
	stored      map[string][]string // by run
	calls       int
	loseAnswer  func(call int) bool
	polls       []*linktrialv1.PollRequest
	deliveries  [][]int64 // numbers of their records
	stall       func(call int) bool
	statements  []*linktrialv1.DeliverRequest
	take        func(call int) (bool, error) // of statements; nil: they are ignored

	server *httptest.Server
	conns  sync.Map
	open   atomic.Int64
}

func newOrchestrator(t *testing.T) *orchestrator {
	o := &orchestrator{known: map[string]bool{}, stored: map[string][]string{}, revision: 1}
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewAgentServiceHandler(o))
	o.server = httptest.NewUnstartedServer(mux)
	o.server.Config.Protocols = new(http.Protocols)
	o.server.Config.Protocols.SetUnencryptedHTTP2(true)
	o.server.Config.Protocols.SetHTTP1(true)
	o.server.Config.ConnState = func(c net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			o.conns.Store(c, true)
			o.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			o.conns.Delete(c)
			o.open.Add(-1)
		}
	}
	o.server.Start()
	t.Cleanup(func() {
		o.cut()
		o.server.Close()
	})
	return o
}

// cut ends all connections, as a link does.
func (o *orchestrator) cut() {
	o.conns.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
}

func (o *orchestrator) assign(list ...*linktrialv1.SignedAssignment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.assignments = list
	o.revision++
	o.changed.Notify()
}

func (o *orchestrator) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = map[string]bool{}
}

func (o *orchestrator) Register(_ context.Context, r *connect.Request[linktrialv1.RegisterRequest]) (*connect.Response[linktrialv1.RegisterResponse], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known[r.Msg.Incarnation] = true
	return connect.NewResponse(&linktrialv1.RegisterResponse{Protocol: agentprotocol.Number}), nil
}

func (o *orchestrator) Poll(ctx context.Context, r *connect.Request[linktrialv1.PollRequest]) (*connect.Response[linktrialv1.PollResponse], error) {
	until := time.After(time.Duration(r.Msg.WaitMs) * time.Millisecond)
	o.mu.Lock()
	o.polls = append(o.polls, r.Msg)
	o.mu.Unlock()
	for {
		o.mu.Lock()
		if !o.known[r.Msg.Incarnation] {
			o.mu.Unlock()
			return nil, connect.NewError(connect.CodeNotFound, errors.New("register first"))
		}
		resp := &linktrialv1.PollResponse{Revision: o.revision, Assignments: o.assignments}
		changed := o.changed.Changed()
		o.mu.Unlock()
		if resp.Revision != r.Msg.Revision {
			return connect.NewResponse(resp), nil
		}
		select {
		case <-changed:
		case <-until:
			return connect.NewResponse(resp), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (o *orchestrator) Deliver(ctx context.Context, r *connect.Request[linktrialv1.DeliverRequest]) (*connect.Response[linktrialv1.DeliverResponse], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	have := o.stored[r.Msg.RunId]
	size := 0
	numbers := []int64{}
	for _, rec := range r.Msg.Records {
		numbers = append(numbers, rec.Seq)
		size += len(rec.Json)
		n := int64(len(have))
		switch {
		case rec.Seq <= n:
			if have[rec.Seq-1] != string(rec.Json) {
				return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("record %d differs", rec.Seq))
			}
		case rec.Seq == n+1:
			have = append(have, string(rec.Json))
		}
	}
	if size > 1<<20 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("batch over a mebibyte"))
	}
	o.stored[r.Msg.RunId] = have
	o.deliveries = append(o.deliveries, numbers)
	if o.stall != nil && o.stall(o.calls) {
		o.mu.Unlock()
		<-ctx.Done()
		o.mu.Lock()
		return nil, ctx.Err()
	}
	if o.loseAnswer != nil && o.loseAnswer(o.calls) {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("stored, but the answer was lost"))
	}
	stored := false
	if len(r.Msg.Statement) > 0 {
		var err error
		o.statements = append(o.statements, r.Msg)
		if stored, err = o.take(len(o.statements)); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(&linktrialv1.DeliverResponse{CommittedSeq: int64(len(o.stored[r.Msg.RunId])), StatementStored: stored}), nil
}

func (o *orchestrator) Clock(context.Context, *connect.Request[linktrialv1.ClockRequest]) (*connect.Response[linktrialv1.ClockResponse], error) {
	now := time.Now().Add(o.skew).UnixNano()
	return connect.NewResponse(&linktrialv1.ClockResponse{ReceivedUnixNs: now, SentUnixNs: now}), nil
}

func (o *orchestrator) records(run string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.stored[run]...)
}

func newSession(t *testing.T, o *orchestrator) *Session {
	t.Helper()
	s, err := New(Config{URL: o.server.URL, Name: "n1", Incarnation: "i1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func newJournal(t *testing.T) *journal.File {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "j"), journal.Identity{Run: "r1", Node: "n1", Role: radio.RoleClient}, journal.Options{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// Every record arrives once in effect, in order, whatever answers and
// connections are lost on the way.
func TestDeliveryThroughCuts(t *testing.T) {
	o := newOrchestrator(t)
	o.loseAnswer = func(call int) bool { return call%5 == 2 }
	s, j := newSession(t, o), newJournal(t)
	d := s.NewDelivery("r1", j, false)
	ended := make(chan struct{})
	done := make(chan bool, 1)
	go func() { done <- d.Run(context.Background(), ended) }()
	const n = 300
	for i := range n {
		if _, err := j.Append(journal.TypeTrialEnded, journal.TrialEnded{Trial: i}); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			if err := j.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if i%70 == 35 {
			o.cut()
		}
		time.Sleep(500 * time.Microsecond)
	}
	j.Sync()
	close(ended)
	select {
	case all := <-done:
		if !all {
			t.Fatal("delivery gave up")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("delivery does not end")
	}
	got := o.records("r1")
	if len(got) != n {
		t.Fatalf("%d records stored, expected %d", len(got), n)
	}
	for i, r := range got {
		var rec journal.Record
		if err := json.Unmarshal([]byte(r), &rec); err != nil || rec.Seq != int64(i+1) {
			t.Fatalf("record %d is %s: %v", i, r, err)
		}
	}
}

// A delivery that begins anew goes on from what is stored, also when the store
// has lost some of it, and sends no batch over a mebibyte.
func TestDeliveryResumes(t *testing.T) {
	o := newOrchestrator(t)
	s, j := newSession(t, o), newJournal(t)
	for range 40 {
		if _, err := j.Append(journal.TypeSamples, journal.Samples{Side: strings.Repeat("s", 100<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	j.Sync()
	ended := make(chan struct{})
	close(ended)
	for _, keep := range []int{0, 17, 40} {
		o.mu.Lock()
		o.stored["r1"] = o.stored["r1"][:keep]
		o.calls = 0
		o.mu.Unlock()
		if !s.NewDelivery("r1", j, false).Run(context.Background(), ended) {
			t.Fatal("delivery gave up")
		}
		if n := len(o.records("r1")); n != 40 {
			t.Errorf("%d records stored after %d were kept, expected 40", n, keep)
		}
		if keep == 40 && o.calls != 1 {
			t.Errorf("%d deliveries where all was stored, expected 1", o.calls)
		}
	}
}

func TestPollIsLevelTriggered(t *testing.T) {
	o := newOrchestrator(t)
	s := newSession(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	var seen atomic.Value
	var registrations atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, func() *linktrialv1.RegisterRequest {
			registrations.Add(1)
			return &linktrialv1.RegisterRequest{}
		}, func(r Answer) bool {
			if len(r.Assignments) > 0 {
				seen.Store(string(r.Assignments[0].Assignment))
			}
			return false
		})
	}()
	is := func(want string) func() bool {
		return func() bool { v, _ := seen.Load().(string); return v == want }
	}
	o.assign(&linktrialv1.SignedAssignment{Assignment: []byte("aDESIRED_STATE_PREPARE")})
	eventually(t, "first desired state", is("aDESIRED_STATE_PREPARE"))
	o.cut()
	o.assign(&linktrialv1.SignedAssignment{Assignment: []byte("aDESIRED_STATE_RUN")})
	eventually(t, "desired state set while cut off", is("aDESIRED_STATE_RUN"))
	o.forget()
	o.assign(&linktrialv1.SignedAssignment{Assignment: []byte("aDESIRED_STATE_FINISH")})
	eventually(t, "desired state after the orchestrator forgot the node", is("aDESIRED_STATE_FINISH"))
	if n := registrations.Load(); n != 2 {
		t.Errorf("%d registrations, expected 2", n)
	}
	cancel()
	<-done
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		t1, t2, t3, t4 int64
		offset, delay  time.Duration
	}{
		{100, 160, 170, 130, 50, 20}, // 10 out, 10 back, clock 50 ahead
		{0, -95, -95, 10, -100, 10},
		{0, 10, 40, 20, 15, 0}, // the other end claims to have taken longer than the exchange
	} {
		if o, d := clockOffset(c.t1, c.t2, c.t3, c.t4); o != c.offset || d != c.delay {
			t.Errorf("offset %d, delay %d, expected %d and %d", o, d, c.offset, c.delay)
		}
	}
	o := newOrchestrator(t)
	o.skew = time.Hour
	s := newSession(t, o)
	got := s.Offset(context.Background(), "before")
	if got.Unknown != "" || (got.Offset-time.Hour).Abs() > got.Error+time.Millisecond || got.Error <= 0 {
		t.Errorf("clock of an orchestrator an hour ahead: %+v", got)
	}
	// The node's clock steps by a year between two measurements: the orchestrator's time is
	// the same by either.
	path := filepath.Join(t.TempDir(), "clock")
	set, err := wallclock.NewOffset(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.cfg.Clock, err = wallclock.Of(path); err != nil {
		t.Fatal(err)
	}
	const year = 365 * 24 * time.Hour
	set.Step(year)
	stepped := s.Offset(context.Background(), "after")
	if by := stepped.Offset - got.Offset; (by + year).Abs() > got.Error+stepped.Error+time.Millisecond {
		t.Errorf("the clock stepped by a year, and its offset by %s", by)
	}
	if by := stepped.Offset + stepped.Epoch - got.Offset - got.Epoch; by.Abs() > got.Error+stepped.Error+time.Millisecond {
		t.Errorf("the orchestrator's time stepped by %s with the node's clock", by)
	}
	o.server.Listener.Close()
	o.cut()
	if got := s.Offset(context.Background(), "after"); !strings.HasPrefix(got.Unknown, "no control link") {
		t.Errorf("clock without an orchestrator: %+v", got)
	}
}

// Silence leaves no connection and sends nothing until a window opens, which
// delivers and polls and ends by itself.
func TestSuspendAndWindow(t *testing.T) {
	o := newOrchestrator(t)
	s, j := newSession(t, o), newJournal(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var polls atomic.Int64
	running.Go(func() {
		s.Run(ctx, func() *linktrialv1.RegisterRequest { return &linktrialv1.RegisterRequest{} }, func(Answer) bool { polls.Add(1); return false })
	})
	d := s.NewDelivery("r1", j, true)
	running.Go(func() { d.Run(ctx, nil) })
	j.Append(journal.TypeTrialEnded, journal.TrialEnded{})
	j.Sync()
	eventually(t, "first record", func() bool { return len(o.records("r1")) == 1 && polls.Load() > 0 })

	s.Gate().Suspend()
	if n := s.dial.open(); n != 0 {
		t.Errorf("%d connections in silence", n)
	}
	eventually(t, "the other end sees the connections end", func() bool { return o.open.Load() == 0 })
	answered := polls.Load()
	j.Append(journal.TypeTrialEnded, journal.TrialEnded{Trial: 1})
	j.Sync()
	o.assign()
	time.Sleep(200 * time.Millisecond)
	if o.open.Load() != 0 || len(o.records("r1")) != 1 || polls.Load() != answered {
		t.Fatal("something was sent while calls are suspended")
	}
	soon, cut := context.WithTimeout(ctx, 50*time.Millisecond)
	if d.Await(soon) {
		t.Error("all is delivered while calls are suspended")
	}
	cut()
	s.Gate().Window(ctx, 20*time.Second, 20*time.Second, d.CaughtUp)
	if len(o.records("r1")) != 2 || polls.Load() == answered {
		t.Error("the window did not deliver and poll")
	}
	if n := s.dial.open(); n != 0 {
		t.Errorf("%d connections after the window", n)
	}
	o.mu.Lock()
	last, before := o.polls[len(o.polls)-1], len(o.polls)
	o.mu.Unlock()
	if !last.Brief || last.WaitMs != 0 || last.Revision == 0 {
		t.Errorf("the window's poll is %v, expected a brief one with the last revision", last)
	}
	s.Gate().Resume()
	eventually(t, "a poll that is not brief asks for all, sheets included", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.polls) > before && !o.polls[before].Brief && o.polls[before].Revision == 0
	})
	j.Append(journal.TypeTrialEnded, journal.TrialEnded{Trial: 2})
	j.Sync()
	long, cut := context.WithTimeout(ctx, 30*time.Second)
	defer cut()
	if !d.Await(long) || len(o.records("r1")) != 3 {
		t.Errorf("%d records are stored where three are awaited", len(o.records("r1")))
	}
	cancel()
	running.Wait()
}

// A batch that the end of a window cuts is not sent again where the orchestrator has it:
// the next window asks how far the journal is stored, and goes on from there.
func TestWindowThatCutsABatch(t *testing.T) {
	o := newOrchestrator(t)
	o.stall = func(call int) bool { return call == 2 }
	s, j := newSession(t, o), newJournal(t)
	for range 50 {
		j.Append(journal.TypeSamples, journal.Samples{Side: strings.Repeat("s", 200)})
	}
	j.Sync()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	s.Gate().Suspend()
	running.Go(func() {
		s.Run(ctx, func() *linktrialv1.RegisterRequest { return &linktrialv1.RegisterRequest{} }, func(Answer) bool { return false })
	})
	d := s.NewDelivery("r1", j, true)
	running.Go(func() { d.Run(ctx, nil) })
	delivered := func(n int) func() bool {
		return func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return len(o.deliveries) >= n
		}
	}
	if w := s.Gate().Window(ctx, 20*time.Second, 20*time.Second, delivered(2)); !w.Ended {
		t.Fatal("the window cut no call")
	}
	if d.CaughtUp() || d.Committed() != 1 {
		t.Fatalf("%d records are taken for stored, of which the batch was cut", d.Committed())
	}
	s.Gate().Window(ctx, 20*time.Second, 20*time.Second, d.Settled)
	s.Gate().Resume()
	if len(o.records("r1")) < 50 {
		eventually(t, "all records", d.CaughtUp)
	}
	cancel()
	running.Wait()
	if len(o.deliveries[2]) != 0 {
		t.Errorf("after the cut came %d records, expected a question", len(o.deliveries[2]))
	}
	sent := 0
	for _, numbers := range o.deliveries {
		sent += len(numbers)
	}
	if sent != 50 {
		t.Errorf("%d records were sent, expected each of 50 once: %v", sent, o.deliveries)
	}
}

// Without windows nothing is sent and nothing is lost: what was recorded meanwhile comes
// in order, and once, when calls may be made again.
func TestNoWindowForLong(t *testing.T) {
	o := newOrchestrator(t)
	s, j := newSession(t, o), newJournal(t)
	ctx := t.Context()
	s.Gate().Suspend()
	ended, done := make(chan struct{}), make(chan bool, 1)
	d := s.NewDelivery("r1", j, true)
	go func() { done <- d.Run(ctx, ended) }()
	const n = 3600 // one a second for an hour
	for i := range n {
		j.Append(journal.TypeTrialEnded, journal.TrialEnded{Trial: i})
		if i%300 == 0 {
			j.Sync()
		}
	}
	j.Sync()
	close(ended)
	if o.calls != 0 || d.CaughtUp() {
		t.Fatalf("%d calls while none may be made", o.calls)
	}
	s.Gate().Resume()
	if !<-done {
		t.Fatal("delivery gave up")
	}
	next := int64(1)
	for _, numbers := range o.deliveries {
		for _, seq := range numbers {
			if seq != next {
				t.Fatalf("record %d was sent, expected %d", seq, next)
			}
			next++
		}
	}
	if len(o.records("r1")) != n || next != n+1 {
		t.Errorf("%d records are stored, expected %d", len(o.records("r1")), n)
	}
}

func TestURL(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:7700", "ftp://x", "http://"} {
		if _, err := New(Config{URL: bad}); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:7700") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
