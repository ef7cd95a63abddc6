package server_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/radio"
)

// hand is a client's agent that does nothing by itself: the test writes its
// journal, record by record.
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
			_, _ = c.agent.Poll(ctx, connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "client", Incarnation: h.incarnation, WaitMs: 0}))
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

// begin starts the run and waits until the client may lead.
func (h *hand) begin() {
	h.t.Helper()
	h.eventually("the run is assigned", func() bool { return h.assignment() != nil })
	require.NoError(h.t, h.act(h.t.Context(), *h.assignment()))
	h.x = h.parts[h.run]
	h.eventually("the run may run", func() bool { return h.assignment().DesiredState == linktrialv1.Assignment_DESIRED_STATE_RUN })
}

func (h *hand) eventually(what string, f func() bool) {
	h.t.Helper()
	require.Eventually(h.t, f, 60*time.Second, 10*time.Millisecond, what)
}

// assignment returns what the client is to do now; nil: nothing.
func (h *hand) assignment() *given {
	res, err := h.c.agent.Poll(h.t.Context(), connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "client", Incarnation: h.incarnation, WaitMs: 0}))
	if err != nil {
		return nil
	}
	for _, a := range givenBy(res.Msg) {
		if a.RunId == h.run {
			return &a
		}
	}
	return nil
}

// desired is how far the client is to go; unspecified: it has nothing to do.
func (h *hand) desired() linktrialv1.Assignment_DesiredState {
	if a := h.assignment(); a != nil {
		return a.DesiredState
	}
	return linktrialv1.Assignment_DESIRED_STATE_UNSPECIFIED
}

// commands returns those that the leading agent gets, as "kind trial", once there are n.
func (h *hand) commands(n int) []*linktrialv1.RunCommand {
	h.t.Helper()
	h.eventually("the agent has got the commands", func() bool { a := h.assignment(); return a != nil && len(a.Commands) == n })
	return h.assignment().Commands
}

// answer writes that a command was applied, or why it was rejected.
func (h *hand) answer(o *linktrialv1.RunCommand, rejected string) {
	h.t.Helper()
	c := journal.Command{ID: o.Id, Kind: journal.CommandKind(o.Kind), By: o.By, Rejected: rejected}
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
func exclude(run string, trial, attempt int32, reason string) *connect.Request[linktrialv1.ExcludeAttemptRequest] {
	return connect.NewRequest(&linktrialv1.ExcludeAttemptRequest{RunId: run, Trial: trial, Attempt: attempt, Reason: reason, By: "ada"})
}

func include(run string, trial, attempt int32) *connect.Request[linktrialv1.IncludeAttemptRequest] {
	return connect.NewRequest(&linktrialv1.IncludeAttemptRequest{RunId: run, Trial: trial, Attempt: attempt, By: "ada"})
}
