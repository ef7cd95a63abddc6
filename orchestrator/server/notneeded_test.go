package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
)

// Trials that the plan's rule to stop by left out have ended, are told apart from one that a
// person skipped, are not repeated, and take nothing from the estimate of those to come. The run
// is completed.
func TestTrialsThatAreNotNeeded(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "16 KiB")})
	h.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for trial := range 4 {
		h.attempt(trial, 1)
	}
	h.tell()
	before := h.state().Run.EstimatedSecondsLeft

	h.x.j.Add(journal.TypeLook, journal.Look{Iteration: 2, Beaten: []string{"two"}, Comparisons: []journal.LookComparison{{Reference: "one", Value: "two", Iteration: 2, Pairs: 2, Level: 0.05, Decided: true}}})
	for _, trial := range []int{5, 7} {
		h.x.j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: trial, Verdict: journal.Aborted, Reason: journal.ReasonNotNeeded})
	}
	h.tell()
	run := h.state().Run
	require.Equal(t, []int32{8, 6, 2}, []int32{run.Trials, run.TrialsEnded, run.TrialsNotNeeded})
	require.InDelta(t, before/2, run.EstimatedSecondsLeft, before/100, "two of four trials to come are left")
	refused[linktrialv1.RepeatTrialResponse](t, connect.CodeFailedPrecondition, "trial 5 is not needed: the plan's rule to stop by has ended it")(h.control.RepeatTrial(ctx, repeatOf(h.run, 5)))
	refused[linktrialv1.SkipTrialResponse](t, connect.CodeFailedPrecondition, "trial 7 has ended already (not needed)")(h.control.SkipTrial(ctx, skipOf(h.run, 7)))

	_, err := h.control.SkipTrial(ctx, skipOf(h.run, 6))
	require.NoError(t, err)
	h.attempt(4, 1)
	h.answer(h.commands(1)[0], "")
	h.x.j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: 6, Verdict: journal.Aborted, Reason: journal.ReasonSkipped})
	h.x.j.Finish(journal.RunCompleted, "")
	h.tell()

	reasons := map[int32]string{}
	require.NoError(t, c.watch(ctx, started.CampaignId, func(ev *linktrialv1.WatchResponse) {
		if e := ev.GetTrialEnded(); e != nil && e.Attempt.Attempt == 0 {
			reasons[e.Trial] = e.Attempt.Reason
		}
		if r := ev.GetRun(); r != nil {
			run = r
		}
	}))
	require.Equal(t, map[int32]string{5: "not-needed", 6: "skipped", 7: "not-needed"}, reasons)
	require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, run.State, run.Message)
	require.Equal(t, []int32{8, 8, 2}, []int32{run.Trials, run.TrialsEnded, run.TrialsNotNeeded})
	for _, trial := range h.state().Trials {
		require.Equal(t, trial.Trial == 5 || trial.Trial == 7, trial.NotNeeded, "trial %d", trial.Trial)
		require.NotEmpty(t, trial.Verdict, "trial %d", trial.Trial)
	}
	results := linktrialv1connect.NewResultServiceClient(c.http, c.base, connect.WithGRPC())
	one, err := results.GetAttempt(ctx, connect.NewRequest(&linktrialv1.GetAttemptRequest{RunId: h.run, Trial: 7}))
	require.NoError(t, err)
	require.True(t, one.Msg.Trial.NotNeeded && len(one.Msg.Trial.Attempts) == 0)
	list, err := results.ListCampaigns(ctx, connect.NewRequest(&linktrialv1.ListCampaignsRequest{}))
	require.NoError(t, err)
	require.Equal(t, []int32{8, 8, 2}, []int32{list.Msg.Campaigns[0].Trials, list.Msg.Campaigns[0].TrialsEnded, list.Msg.Campaigns[0].TrialsNotNeeded})
	sum, err := results.Summarize(ctx, connect.NewRequest(&linktrialv1.SummarizeRequest{Ids: []string{h.run}}))
	require.NoError(t, err)
	require.EqualValues(t, 2, sum.Msg.Runs[0].Run.TrialsNotNeeded)
}
