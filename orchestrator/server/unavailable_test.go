package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
)

// Treatments that the nodes' kernels do not support are listed as missing, and the
// others are run.
func TestUnavailableTreatment(t *testing.T) {
	c := serve(t)
	cast(t, c)
	text := strings.Replace(fmt.Sprintf(testPlan, "1 KiB"), "congestion: cubic", "congestion: vegas", 1)
	check, err := c.operator.CheckPlan(t.Context(), connect.NewRequest(&linktrialv1.CheckPlanRequest{File: "x.yaml", Text: []byte(text)}))
	require.NoError(t, err)
	require.Empty(t, check.Msg.Problems)
	require.Contains(t, check.Msg.Summary, "missing: one")

	started := c.start(t, text)
	require.Empty(t, started.Problems)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	l := newLedger(t)
	require.NoError(t, c.watch(ctx, started.CampaignId, l.event))
	require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, l.runs[started.RunIds[0]].State)
	require.EqualValues(t, trials/2, l.runs[started.RunIds[0]].TrialsEnded)

	const reason = "the kernel of client and server has no congestion control vegas"
	run, err := c.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: started.RunIds[0]}))
	require.NoError(t, err)
	sheet, err := runsheet.Decode(run.Msg.Sheet)
	require.NoError(t, err)
	require.Equal(t, reason, sheet.Treatment("one").Missing)
	require.Empty(t, sheet.Treatment("two").Missing)
	table, err := c.results(ctx, &linktrialv1.ResultsRequest{RunId: started.CampaignId, Format: "table"})
	require.NoError(t, err)
	require.Contains(t, string(table.Content), "missing: "+reason[:40])
}
