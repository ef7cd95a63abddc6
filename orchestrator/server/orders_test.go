package server_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/store/storetest"
)

// hand is a client's agent that does nothing by itself: the test says what
// its journal says, record by record.
type hand struct {
	*player
	t       testing.TB
	control linktrialv1connect.ControlServiceClient
	server  *player
	run     string
	x       *acted
	stop    func()
}

// byHand starts a campaign whose relay and server act by themselves, and whose
// client is the test's.
func byHand(t testing.TB, c *clients, req *linktrialv1.StartPlanRequest) (*hand, *linktrialv1.StartPlanResponse) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	stop := sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	h := &hand{player: newPlayer(c, radio.RoleClient), t: t, control: controlOf(c), stop: stop}
	h.server = newPlayer(c, radio.RoleServer)
	for _, p := range []*player{newPlayer(c, radio.RoleRelay), h.server} {
		require.NoError(t, p.register(ctx))
		wg.Go(func() { p.play(ctx) })
	}
	require.NoError(t, h.register(ctx))
	// Its polls keep it connected.
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = c.agent.Poll(ctx, connect.NewRequest(&linktrialv1.PollRequest{Name: "client", Incarnation: h.incarnation, WaitMs: 0}))
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	res, err := c.operator.StartPlan(ctx, connect.NewRequest(req))
	require.NoError(t, err)
	require.Empty(t, res.Msg.Problems)
	h.run = res.Msg.RunIds[0]
	return h, res.Msg
}

func controlOf(c *clients) linktrialv1connect.ControlServiceClient {
	return linktrialv1connect.NewControlServiceClient(c.http, c.base, connect.WithGRPC())
}

// begin takes the run up and waits until the client may lead.
func (h *hand) begin() {
	h.t.Helper()
	h.eventually("the run is assigned", func() bool { return h.assignment() != nil })
	require.NoError(h.t, h.act(h.t.Context(), h.assignment()))
	h.x = h.parts[h.run]
	h.eventually("the run may run", func() bool { return h.assignment().Wish == linktrialv1.Assignment_WISH_RUN })
}

func (h *hand) eventually(what string, f func() bool) {
	h.t.Helper()
	require.Eventually(h.t, f, 60*time.Second, 10*time.Millisecond, what)
}

// assignment is what the orchestrator wants of the client now; nil: nothing.
func (h *hand) assignment() *linktrialv1.Assignment {
	res, err := h.c.agent.Poll(h.t.Context(), connect.NewRequest(&linktrialv1.PollRequest{Name: "client", Incarnation: h.incarnation, WaitMs: 0}))
	if err != nil {
		return nil
	}
	for _, a := range res.Msg.Assignments {
		if a.RunId == h.run {
			return a
		}
	}
	return nil
}

// orders are those the leading agent is told, "kind trial", once so many are there.
func (h *hand) orders(n int) []*linktrialv1.RunOrder {
	h.t.Helper()
	h.eventually("the agent is told of the orders", func() bool { a := h.assignment(); return a != nil && len(a.Orders) == n })
	return h.assignment().Orders
}

// obey writes that an order is obeyed, or why not.
func (h *hand) obey(o *linktrialv1.RunOrder, passedOver string) {
	h.t.Helper()
	c := journal.Command{ID: o.Id, Kind: journal.CommandKind(o.Kind), By: o.By, PassedOver: passedOver}
	if o.Kind == "skip" || o.Kind == "repeat" {
		trial := int(o.Trial)
		c.Trial = &trial
	}
	h.x.j.Add(journal.TypeCommand, c)
}

func (h *hand) attempt(trial, n int) {
	h.x.j.Start(h.x.sheet, trial, n)
	h.x.j.Samples(trial, n, 5)
	h.x.j.End(h.x.sheet, trial, n, journal.Succeeded)
	h.x.j.EndTrial(trial, n, journal.Succeeded)
}

func (h *hand) tell() {
	h.t.Helper()
	require.NoError(h.t, h.deliver(h.t.Context(), h.x))
}

func (h *hand) state() *linktrialv1.GetRunResponse {
	h.t.Helper()
	res, err := h.c.operator.GetRun(h.t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: h.run}))
	require.NoError(h.t, err)
	return res.Msg
}

// refused asserts that a call is answered with a code and a text.
func refused[T any](t testing.TB, code connect.Code, text string) func(*connect.Response[T], error) {
	return func(_ *connect.Response[T], err error) {
		t.Helper()
		require.ErrorContains(t, err, text)
		require.Equal(t, code, connect.CodeOf(err), err)
	}
}

func pauseOf(run string) *connect.Request[linktrialv1.PauseRunRequest] {
	return connect.NewRequest(&linktrialv1.PauseRunRequest{RunId: run, By: "ada"})
}
func resumeOf(run string) *connect.Request[linktrialv1.ResumeRunRequest] {
	return connect.NewRequest(&linktrialv1.ResumeRunRequest{RunId: run})
}
func skipOf(run string, trial int32) *connect.Request[linktrialv1.SkipTrialRequest] {
	return connect.NewRequest(&linktrialv1.SkipTrialRequest{RunId: run, Trial: trial})
}
func repeatOf(run string, trial int32) *connect.Request[linktrialv1.RepeatTrialRequest] {
	return connect.NewRequest(&linktrialv1.RepeatTrialRequest{RunId: run, Trial: trial, By: "ada"})
}
func markOf(run string, trial, attempt int32, invalid bool, reason string) *connect.Request[linktrialv1.MarkAttemptRequest] {
	return connect.NewRequest(&linktrialv1.MarkAttemptRequest{RunId: run, Trial: trial, Attempt: attempt, Invalid: invalid, Reason: reason, By: "ada"})
}

// Orders are told to the leading agent until its journal has them, whoever is
// started again meanwhile; what makes no sense is refused in words.
func TestOrders(t *testing.T) {
	url := storetest.URL(t)
	s := startOn(t, url)
	c := connectTo(t, s.Addr())
	h, _ := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	ctx := t.Context()

	_, err := h.control.PauseRun(ctx, pauseOf(h.run))
	require.NoError(t, err, "before the run has begun")
	h.begin()
	require.Len(t, h.orders(1), 1)
	_, err = h.control.PauseRun(ctx, pauseOf(h.run))
	require.NoError(t, err, "again")
	require.True(t, h.state().Run.Paused && h.state().Run.Pausing)
	require.ElementsMatch(t, []string{"client", "relay", "server"}, h.state().Run.Nodes)

	// The orchestrator is started again.
	h.stop()
	stop(t, s)
	s = startOn(t, url)
	t.Cleanup(func() { stop(t, s) })
	c = connectTo(t, s.Addr())
	h.c, h.control = c, controlOf(c)
	orders := h.orders(1)
	require.Equal(t, "pause", orders[0].Kind)
	require.Equal(t, "ada", orders[0].By)

	h.obey(orders[0], "")
	h.tell()
	run := h.state().Run
	require.True(t, run.Paused && !run.Pausing, "the leading agent says that it holds")
	_, err = h.control.ResumeRun(ctx, resumeOf(h.run))
	require.NoError(t, err)
	run = h.state().Run
	require.True(t, run.Paused && !run.Pausing, "the leading agent has not said that it goes on")
	h.obey(h.orders(2)[1], "")
	h.tell()
	require.False(t, h.state().Run.Paused)
	refused[linktrialv1.ResumeRunResponse](t, connect.CodeFailedPrecondition, "it is not paused")(h.control.ResumeRun(ctx, resumeOf(h.run)))
	refused[linktrialv1.ReleaseRunResponse](t, connect.CodeFailedPrecondition, "does not wait for nodes to be moved (running)")(h.control.ReleaseRun(ctx, connect.NewRequest(&linktrialv1.ReleaseRunRequest{RunId: h.run})))
	refused[linktrialv1.RepeatTrialResponse](t, connect.CodeFailedPrecondition, "trial 0 has not ended yet")(h.control.RepeatTrial(ctx, repeatOf(h.run, 0)))
	refused[linktrialv1.RepeatTrialResponse](t, connect.CodeNotFound, "it has no trial 8; its trials are 0 to 7")(h.control.RepeatTrial(ctx, repeatOf(h.run, 8)))
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeNotFound, "no trial -1")(h.control.SkipTrial(ctx, skipOf(h.run, -1)))
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeNotFound, "not found")(h.control.SkipTrial(ctx, skipOf("none-1", 0)))
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeInvalidArgument, "which run is not said")(h.control.SkipTrial(ctx, skipOf("", 0)))

	h.attempt(0, 1)
	h.tell()
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeFailedPrecondition, "trial 0 has ended already (succeeded)")(h.control.SkipTrial(ctx, skipOf(h.run, 0)))
	_, err = h.control.RepeatTrial(ctx, repeatOf(h.run, 0))
	require.NoError(t, err)
	_, err = h.control.RepeatTrial(ctx, repeatOf(h.run, 0))
	require.NoError(t, err, "again")
	_, err = h.control.SkipTrial(ctx, skipOf(h.run, 3))
	require.NoError(t, err)
	orders = h.orders(4)
	h.obey(orders[2], "")
	h.obey(orders[3], "")
	h.x.j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: 3, Verdict: journal.Aborted, Reason: journal.ReasonSkipped})
	h.tell()
	trials := h.state().Trials
	require.Equal(t, []string{"", "", "", "aborted"}, []string{trials[0].Verdict, trials[1].Verdict, trials[2].Verdict, trials[3].Verdict})
	refused[linktrialv1.RepeatTrialResponse](t, connect.CodeFailedPrecondition, "trial 0 has not ended yet")(h.control.RepeatTrial(ctx, repeatOf(h.run, 0)))
	h.attempt(0, 2)
	h.tell()
	require.Equal(t, "succeeded", h.state().Trials[0].Verdict)

	// One that came too late is not told as open, and does not stand in the way.
	_, err = h.control.SkipTrial(ctx, skipOf(h.run, 1))
	require.NoError(t, err)
	orders = h.orders(5)
	h.attempt(1, 1)
	h.obey(orders[4], "trial 1 had ended")
	h.tell()

	_, err = h.control.AbortRun(ctx, connect.NewRequest(&linktrialv1.AbortRunRequest{RunId: h.run, Reason: "rain", By: "ada"}))
	require.NoError(t, err)
	refused[linktrialv1.PauseRunResponse](t, connect.CodeFailedPrecondition, "it is being aborted (rain)")(h.control.PauseRun(ctx, pauseOf(h.run)))
	h.eventually("abort", func() bool { return h.assignment().GetWish() == linktrialv1.Assignment_WISH_ABORT })
	h.x.j.Finish(journal.RunAborted, "rain")
	h.tell()
	h.eventually("the run's end", func() bool { return h.state().Run.State == linktrialv1.RunState_RUN_STATE_ABORTED })
	require.Equal(t, "rain", h.state().Run.Message)
	refused[linktrialv1.AbortRunResponse](t, connect.CodeFailedPrecondition, "it has ended (aborted)")(h.control.AbortRun(ctx, connect.NewRequest(&linktrialv1.AbortRunRequest{RunId: h.run})))

	list, err := h.control.ListOrders(ctx, connect.NewRequest(&linktrialv1.ListOrdersRequest{RunId: h.run}))
	require.NoError(t, err)
	var kinds []string
	for _, o := range list.Msg.Orders {
		kinds = append(kinds, o.Kind)
		require.NotNil(t, o.Obeyed, o.Kind)
	}
	require.Equal(t, []string{"pause", "resume", "repeat", "skip", "skip", "abort"}, kinds)
	require.Equal(t, "passed over: trial 1 had ended", list.Msg.Orders[4].Reason)
	require.EqualValues(t, 1, list.Msg.Orders[4].GetTrial())
	require.Equal(t, "rain", list.Msg.Orders[5].Reason)
}

// A mark changes what is shown and counted, at once and in the tables, and
// nothing that was measured.
func TestMarkedAttempt(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	h.attempt(0, 1)
	h.x.j.Start(h.x.sheet, 1, 1)
	h.tell()
	refused[linktrialv1.MarkAttemptResponse](t, connect.CodeInvalidArgument, "a mark needs a reason")(h.control.MarkAttempt(ctx, markOf(h.run, 0, 1, true, "")))
	refused[linktrialv1.MarkAttemptResponse](t, connect.CodeNotFound, "it has no attempt 2 of trial 0")(h.control.MarkAttempt(ctx, markOf(h.run, 0, 2, true, "x")))
	refused[linktrialv1.MarkAttemptResponse](t, connect.CodeFailedPrecondition, "has not ended yet")(h.control.MarkAttempt(ctx, markOf(h.run, 1, 1, true, "x")))
	refused[linktrialv1.MarkAttemptResponse](t, connect.CodeFailedPrecondition, "is not marked")(h.control.MarkAttempt(ctx, markOf(h.run, 0, 1, false, "")))

	refused[linktrialv1.MarkAttemptResponse](t, connect.CodeInvalidArgument, "a reason with a control character at byte 1")(h.control.MarkAttempt(ctx, markOf(h.run, 0, 1, true, "a\x00b")))
	refused[linktrialv1.MarkAttemptResponse](t, connect.CodeInvalidArgument, "a reason of 1001 bytes")(h.control.MarkAttempt(ctx, markOf(h.run, 0, 1, true, strings.Repeat("x", 1001))))

	// A watcher that was there before hears of the mark, and of its end.
	type seen struct{ verdict, reason string }
	heard := make(chan seen, 100)
	wctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	wg.Go(func() {
		_ = c.watch(wctx, started.CampaignId, func(ev *linktrialv1.WatchResponse) {
			if e := ev.GetTrialEnded(); e != nil && e.Trial == 0 {
				heard <- seen{e.Attempt.Verdict, e.Attempt.Reason}
			}
			if o := ev.GetOrder(); o != nil {
				heard <- seen{"order", o.Kind + " " + o.Reason}
			}
		})
	})
	next := func() seen {
		select {
		case s := <-heard:
			return s
		case <-ctx.Done():
			t.Fatal("the watcher was not told")
			return seen{}
		}
	}
	require.Equal(t, seen{"succeeded", ""}, next())
	_, err := h.control.MarkAttempt(ctx, markOf(h.run, 0, 1, true, "a lorry"))
	require.NoError(t, err)
	require.Equal(t, seen{"invalid", "marked: a lorry"}, next())
	require.Equal(t, seen{"order", "mark-invalid a lorry"}, next())
	row := h.state().Trials[0]
	require.Equal(t, "invalid", row.Verdict)
	require.Equal(t, "invalid", row.Attempts[0].Verdict)
	require.Contains(t, row.Attempts[0].Message, "the journal says: succeeded")
	require.Equal(t, "a lorry", row.Attempts[0].GetMark().GetReason())
	require.Equal(t, "succeeded", row.Attempts[0].GetMark().GetJournalVerdict())
	require.Positive(t, row.Attempts[0].MeasuredBytesPerSecond)
	require.Zero(t, row.Attempts[0].ThroughputBytesPerSecond)
	_, err = h.control.MarkAttempt(ctx, markOf(h.run, 0, 1, false, ""))
	require.NoError(t, err)
	require.Equal(t, seen{"succeeded", ""}, next())
	require.Equal(t, seen{"order", "unmark "}, next())
	row = h.state().Trials[0]
	require.Equal(t, "succeeded", row.Verdict)
	require.Nil(t, row.Attempts[0].Mark)
	require.Equal(t, row.Attempts[0].ThroughputBytesPerSecond, row.Attempts[0].MeasuredBytesPerSecond)
}

// Who asks for the journal and the samples gets them as they come, once, and
// who does not gets neither.
func TestWatchJournalAndSamples(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	var mu sync.Mutex
	var texts, plain []string
	var samples []*linktrialv1.LiveSamples
	seqs := map[string]int64{}
	skipped := 0
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	watch := func(journal bool, event func(*linktrialv1.WatchResponse)) {
		wg.Go(func() {
			stream, err := c.operator.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: started.CampaignId, Journal: journal, Samples: journal}))
			if err != nil {
				return
			}
			defer stream.Close()
			for stream.Receive() {
				mu.Lock()
				event(stream.Msg())
				mu.Unlock()
			}
		})
	}
	watch(true, func(ev *linktrialv1.WatchResponse) {
		switch e := ev.Event.(type) {
		case *linktrialv1.WatchResponse_Journal:
			texts = append(texts, e.Journal.Node+": "+e.Journal.Text)
			if e.Journal.Seq <= seqs[e.Journal.Node] || e.Journal.Received == nil {
				t.Errorf("line %v after record %d", e.Journal, seqs[e.Journal.Node])
			}
			seqs[e.Journal.Node] = e.Journal.Seq
		case *linktrialv1.WatchResponse_Samples:
			samples = append(samples, e.Samples)
		case *linktrialv1.WatchResponse_TrialEnded:
			if e.TrialEnded.Attempt.Attempt == 0 {
				skipped++
			}
		}
	})
	watch(false, func(ev *linktrialv1.WatchResponse) {
		if ev.GetJournal() != nil || ev.GetSamples() != nil {
			t.Errorf("nobody asked for %v", ev)
		}
		plain = append(plain, fmt.Sprintf("%T", ev.Event))
	})
	until := func(what string, f func() bool) {
		t.Helper()
		h.eventually(what, func() bool { mu.Lock(); defer mu.Unlock(); return f() })
	}
	has := func(want string) func() bool {
		return func() bool {
			for _, s := range texts {
				if strings.Contains(s, want) {
					return true
				}
			}
			return false
		}
	}
	until("what was before", has("client: host host, kernel kernel"))
	until("the other watcher", func() bool { return len(plain) > 0 })
	h.x.j.Start(h.x.sheet, 0, 1)
	h.x.j.Samples(0, 1, 5)
	h.tell()
	until("samples", func() bool { return len(samples) == 1 })
	mu.Lock()
	m := samples[0]
	require.Equal(t, []any{h.run, int32(0), int32(1), int32(0), "one"}, []any{m.RunId, m.Trial, m.Attempt, m.Flow, m.Treatment})
	require.InDeltaSlice(t, []float64{0.1, 0.2, 0.3, 0.4, 0.5}, m.At, 1e-9)
	require.Equal(t, []float64{0, 10, 20, 30, 40}, m.Bytes)
	require.Equal(t, []float64{1.5, 1.5, 1.5, 1.5, 1.5}, m.SrttMs)
	require.True(t, len(m.CwndBytes) == 5 && math.IsNaN(m.CwndBytes[0]))
	mu.Unlock()

	// Who joins while the attempt runs gets what there is of it.
	joined := 0
	watch(true, func(ev *linktrialv1.WatchResponse) {
		if s := ev.GetSamples(); s != nil {
			joined += len(s.At)
		}
	})
	until("samples of before", func() bool { return joined == 5 })

	h.x.j.End(h.x.sheet, 0, 1, journal.Succeeded)
	h.x.j.EndTrial(0, 1, journal.Succeeded)
	_, err := h.control.SkipTrial(ctx, skipOf(h.run, 1))
	require.NoError(t, err)
	h.obey(h.orders(1)[0], "")
	h.x.j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: 1, Verdict: journal.Aborted, Reason: journal.ReasonSkipped})
	h.tell()
	for _, want := range []string{"client: trial 0 (one, iteration 1), attempt 1 starts", "client: trial 0 (one, iteration 1), attempt 1: succeeded after 1.200 s",
		"client: trial 0 has ended: succeeded, attempts: 1", "client: order: skip trial 1", "client: trial 1 has ended: aborted, attempts: 0: skipped",
		"server: the listener of two is ready on port", "client: clock offset before the run: +2.000 ms, within 1.000 ms", "client: takes up a sheet of 8 trials"} {
		until(want, has(want))
	}
	until("a trial that ended without an attempt", func() bool { return skipped == 1 })
	mu.Lock()
	defer mu.Unlock()
	for _, s := range texts {
		require.NotContains(t, s, "cannot be read")
	}
	require.NotContains(t, plain, "*linktrialv1.WatchResponse_Journal")
}

// A late watcher of a long journal begins with its newest lines.
func TestWatchNewestLines(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	for i := range 700 {
		h.x.j.Add(journal.TypeDriverMisbehaved, journal.Misbehaviour{Treatment: "one", Message: fmt.Sprint("number\n", i)})
	}
	for h.x.delivered < len(h.x.j.Records) {
		req := &linktrialv1.DeliverRequest{Name: "client", RunId: h.run}
		for k := h.x.delivered; k < len(h.x.j.Records); k++ {
			req.Records = append(req.Records, &linktrialv1.JournalRecord{Seq: int64(k + 1), Json: h.x.j.Records[k]})
		}
		res, err := c.agent.Deliver(t.Context(), connect.NewRequest(req))
		require.NoError(t, err)
		h.x.delivered = int(res.Msg.CommittedSeq)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	stream, err := c.operator.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: started.CampaignId, Journal: true}))
	require.NoError(t, err)
	defer stream.Close()
	var lines []string
	for len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], "number 699") {
		require.True(t, stream.Receive(), stream.Err())
		if l := stream.Msg().GetJournal(); l != nil {
			lines = append(lines, l.Text)
		}
	}
	require.GreaterOrEqual(t, len(lines), 250)
	require.LessOrEqual(t, len(lines), 300)
}

const movedPlan = `
name: moved
radio: prc-117g-anw2c
topology: [vip-lot, k-lot]
size: [1 KiB, 2 KiB]
treatments:
  - {name: one, protocol: alpha, options: {congestion: cubic}}
iterations: 1
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 2}
`

// A run whose nodes have to be moved first waits for somebody to say that they
// were; a real radio's does by itself, an emulated one's where that is asked for.
func TestWaitingForMoves(t *testing.T) {
	for name, x := range map[string]struct {
		emulated bool
		moves    linktrialv1.StartPlanRequest_Moves
		waits    []bool
	}{
		"emulated":          {true, linktrialv1.StartPlanRequest_MOVES_UNSPECIFIED, []bool{false, false, false, false}},
		"emulated, confirm": {true, linktrialv1.StartPlanRequest_MOVES_CONFIRM, []bool{true, false, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t)
			cast(t, c)
			control := controlOf(c)
			res, err := c.operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "test.yaml", Text: []byte(movedPlan), Moves: x.moves}))
			require.NoError(t, err)
			require.Empty(t, res.Msg.Problems)
			ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
			defer cancel()
			waited := map[string]bool{}
			var order []string
			require.NoError(t, c.watch(ctx, res.Msg.CampaignId, func(ev *linktrialv1.WatchResponse) {
				r := ev.GetRun()
				if r == nil {
					return
				}
				if r.State == linktrialv1.RunState_RUN_STATE_WAITING {
					if !waited[r.Id] {
						waited[r.Id] = true
						_, err := control.ReleaseRun(ctx, connect.NewRequest(&linktrialv1.ReleaseRunRequest{RunId: r.Id, By: "ada"}))
						require.NoError(t, err)
					}
				}
				if r.State == linktrialv1.RunState_RUN_STATE_COMPLETED {
					order = append(order, r.Id)
				}
			}))
			require.Equal(t, res.Msg.RunIds, order)
			for i, id := range res.Msg.RunIds {
				require.Equal(t, x.waits[i], waited[id], id)
			}
		})
	}
}

// A run that waits holds its nodes back from what was started later, and an
// abort ends it at once.
func TestAbortOfAWaitingRun(t *testing.T) {
	c := serve(t)
	cast(t, c)
	control := controlOf(c)
	start := func(m linktrialv1.StartPlanRequest_Moves) *linktrialv1.StartPlanResponse {
		res, err := c.operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "test.yaml", Text: []byte(movedPlan), Moves: m}))
		require.NoError(t, err)
		require.Empty(t, res.Msg.Problems)
		return res.Msg
	}
	state := func(run string) linktrialv1.RunState {
		res, err := c.operator.GetRun(t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run}))
		require.NoError(t, err)
		return res.Msg.Run.State
	}
	first := start(linktrialv1.StartPlanRequest_MOVES_CONFIRM)
	second := start(linktrialv1.StartPlanRequest_MOVES_NONE)
	require.Eventually(t, func() bool { return state(first.RunIds[0]) == linktrialv1.RunState_RUN_STATE_WAITING }, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, linktrialv1.RunState_RUN_STATE_QUEUED, state(second.RunIds[0]))
	_, err := control.AbortRun(t.Context(), connect.NewRequest(&linktrialv1.AbortRunRequest{RunId: first.RunIds[0], Reason: "the road is closed"}))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return state(first.RunIds[0]) == linktrialv1.RunState_RUN_STATE_ABORTED }, 30*time.Second, 10*time.Millisecond)
	// The campaign's next run has the same topology, and nobody has said that the nodes stand there.
	require.Eventually(t, func() bool { return state(first.RunIds[1]) == linktrialv1.RunState_RUN_STATE_WAITING }, 30*time.Second, 10*time.Millisecond)
	_, err = control.ReleaseRun(t.Context(), connect.NewRequest(&linktrialv1.ReleaseRunRequest{RunId: first.RunIds[1]}))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return state(first.RunIds[1]) == linktrialv1.RunState_RUN_STATE_COMPLETED }, 60*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return state(first.RunIds[2]) == linktrialv1.RunState_RUN_STATE_WAITING }, 30*time.Second, 10*time.Millisecond)
	_, err = c.operator.AbortCampaign(t.Context(), connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: first.CampaignId}))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return state(second.RunIds[3]) == linktrialv1.RunState_RUN_STATE_COMPLETED }, 60*time.Second, 10*time.Millisecond)
}

// A transfer of which the server's word will not come is told of while the
// trial can still be run once more, and after.
func TestTransferThatTheServerNeverSpokeOf(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	var mu sync.Mutex
	var notes []string
	watched := make(chan error, 1)
	go func() {
		watched <- c.watch(ctx, started.CampaignId, func(ev *linktrialv1.WatchResponse) {
			if n := ev.GetNote(); n != nil {
				mu.Lock()
				notes = append(notes, n.Kind.String()+" "+n.Text)
				mu.Unlock()
			}
		})
	}()
	h.attempt(0, 1)
	h.attempt(1, 1)
	h.tell()
	h.server.mu.Lock()
	x := h.server.parts[h.run]
	x.j.Received("two", 1, 1)
	require.NoError(t, h.server.deliver(ctx, x))
	h.server.mu.Unlock()
	h.attempt(2, 1) // what comes next makes the watcher look
	h.tell()
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(notes, "\n")
	}
	for i := 3; !strings.Contains(said(), "linktrial repeat "+h.run+" --trial 0"); i++ {
		require.Less(t, i, len(h.x.sheet.Trials), "no note: %s", said())
		h.attempt(i, 1)
		h.tell()
		time.Sleep(time.Second)
	}
	require.NotContains(t, said(), "--trial 1", "the server has spoken of it")
	for i := len(h.state().Trials) - 1; i > 2; i-- {
		if h.state().Trials[i].Verdict == "" {
			h.attempt(i, 1)
		}
	}
	h.x.j.Finish(journal.RunCompleted, "")
	h.tell()
	require.NoError(t, <-watched)
	// The players' server speaks of a second attempt of trial 2, which there was not.
	require.Contains(t, said(), "KIND_UNHEARD trial 2 (one, iteration 2) succeeded for the client, and the server's word on it never came, so it counts as failed; the run's trials are over")
	require.Equal(t, 2, strings.Count(said(), "never came"), said())
}
