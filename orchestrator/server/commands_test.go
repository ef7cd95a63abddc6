package server_test

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/orchestrator/store/storetest"
)

// The leading agent gets commands until its journal has them, also where agent
// or orchestrator are started again meanwhile; commands that make no sense are
// refused with the reason.
func TestCommands(t *testing.T) {
	url := storetest.URL(t)
	s := startOn(t, url)
	c := connectTo(t, s.Addr())
	h, _ := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	ctx := t.Context()

	_, err := h.control.PauseRun(ctx, pauseOf(h.run))
	require.NoError(t, err, "before the run has begun")
	h.begin()
	require.Len(t, h.commands(1), 1)
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
	commands := h.commands(1)
	require.Equal(t, "pause", commands[0].Kind)
	require.Equal(t, "ada", commands[0].By)

	h.answer(commands[0], "")
	h.tell()
	run := h.state().Run
	require.True(t, run.Paused && !run.Pausing, "the leading agent says that it holds")
	_, err = h.control.ResumeRun(ctx, resumeOf(h.run))
	require.NoError(t, err)
	run = h.state().Run
	require.True(t, run.Paused && !run.Pausing, "the leading agent has not said that it goes on")
	h.answer(h.commands(2)[1], "")
	h.tell()
	require.False(t, h.state().Run.Paused)
	refused[linktrialv1.ResumeRunResponse](t, connect.CodeFailedPrecondition, "it is not paused")(h.control.ResumeRun(ctx, resumeOf(h.run)))
	refused[linktrialv1.ContinueRunResponse](t, connect.CodeFailedPrecondition, "does not wait for nodes to be moved (running)")(h.control.ContinueRun(ctx, connect.NewRequest(&linktrialv1.ContinueRunRequest{RunId: h.run})))
	refused[linktrialv1.RepeatTrialResponse](t, connect.CodeFailedPrecondition, "trial 0 has not ended yet")(h.control.RepeatTrial(ctx, repeatOf(h.run, 0)))
	refused[linktrialv1.RepeatTrialResponse](t, connect.CodeNotFound, "it has no trial 8; its trials are 0 to 7")(h.control.RepeatTrial(ctx, repeatOf(h.run, 8)))
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeNotFound, "no trial -1")(h.control.SkipTrial(ctx, skipOf(h.run, -1)))
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeNotFound, "not found")(h.control.SkipTrial(ctx, skipOf("none-1", 0)))
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeInvalidArgument, "no run is given")(h.control.SkipTrial(ctx, skipOf("", 0)))

	h.attempt(0, 1)
	h.tell()
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeFailedPrecondition, "trial 0 has ended already (succeeded)")(h.control.SkipTrial(ctx, skipOf(h.run, 0)))
	_, err = h.control.RepeatTrial(ctx, repeatOf(h.run, 0))
	require.NoError(t, err)
	_, err = h.control.RepeatTrial(ctx, repeatOf(h.run, 0))
	require.NoError(t, err, "again")
	_, err = h.control.SkipTrial(ctx, skipOf(h.run, 3))
	require.NoError(t, err)
	commands = h.commands(4)
	h.answer(commands[2], "")
	h.answer(commands[3], "")
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
	commands = h.commands(5)
	h.attempt(1, 1)
	h.answer(commands[4], "trial 1 had ended")
	h.tell()

	_, err = h.control.AbortRun(ctx, connect.NewRequest(&linktrialv1.AbortRunRequest{RunId: h.run, Reason: "rain", By: "ada"}))
	require.NoError(t, err)
	refused[linktrialv1.PauseRunResponse](t, connect.CodeFailedPrecondition, "it is being aborted (rain)")(h.control.PauseRun(ctx, pauseOf(h.run)))
	h.eventually("abort", func() bool { return h.desired() == linktrialv1.Assignment_DESIRED_STATE_ABORT })
	h.x.j.Finish(journal.RunAborted, "rain")
	h.tell()
	h.eventually("the run's end", func() bool { return h.state().Run.State == linktrialv1.RunState_RUN_STATE_ABORTED })
	require.Equal(t, "rain", h.state().Run.Message)
	refused[linktrialv1.AbortRunResponse](t, connect.CodeFailedPrecondition, "it has ended (aborted)")(h.control.AbortRun(ctx, connect.NewRequest(&linktrialv1.AbortRunRequest{RunId: h.run})))

	list, err := h.control.ListCommands(ctx, connect.NewRequest(&linktrialv1.ListCommandsRequest{RunId: h.run}))
	require.NoError(t, err)
	var kinds []string
	for _, o := range list.Msg.Commands {
		kinds = append(kinds, o.Kind)
		require.NotNil(t, o.Applied, o.Kind)
	}
	require.Equal(t, []string{"pause", "resume", "repeat", "skip", "skip", "abort"}, kinds)
	require.Equal(t, "rejected: trial 1 had ended", list.Msg.Commands[4].Reason)
	require.EqualValues(t, 1, list.Msg.Commands[4].GetTrial())
	require.Equal(t, "rain", list.Msg.Commands[5].Reason)
}
