package server_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

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

// A run whose nodes have to be moved first waits until somebody confirms that
// they were: with real radios always, with emulated ones where the plan is
// started so.
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
						_, err := control.ContinueRun(ctx, connect.NewRequest(&linktrialv1.ContinueRunRequest{RunId: r.Id, By: "ada"}))
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

// A run that waits keeps its nodes from runs that were started later, and an
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
	_, err = control.ContinueRun(t.Context(), connect.NewRequest(&linktrialv1.ContinueRunRequest{RunId: first.RunIds[1]}))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return state(first.RunIds[1]) == linktrialv1.RunState_RUN_STATE_COMPLETED }, 60*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return state(first.RunIds[2]) == linktrialv1.RunState_RUN_STATE_WAITING }, 30*time.Second, 10*time.Millisecond)
	_, err = c.operator.AbortCampaign(t.Context(), connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: first.CampaignId}))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return state(second.RunIds[3]) == linktrialv1.RunState_RUN_STATE_COMPLETED }, 60*time.Second, 10*time.Millisecond)
}
