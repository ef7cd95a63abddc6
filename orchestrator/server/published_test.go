package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/report"
)

// Results hold the published values of the campaign's own plan.
func TestPublishedValuesOfThePlan(t *testing.T) {
	c := serve(t)
	cast(t, c)
	started := c.start(t, fmt.Sprintf(testPlan, "1 KiB")+`published:
  source: A paper, Table 9
  rows:
    - {topology: vip-lot, radio: prc-117g-anw2c, treatment: one, n: 10, average: 2, maximum: 3, minimum: 1, sd: 0.5}
  figures:
    - {treatment: two, metric: throughput-kb-per-s, at_least: 0.001, source: "A paper, figure 3"}
`)
	require.Empty(t, started.Problems)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, c.watch(ctx, started.CampaignId, newLedger(t).event))
	res, err := c.results(ctx, &linktrialv1.ResultsRequest{RunId: started.CampaignId, Format: "against-json"})
	require.NoError(t, err)
	var got report.Against
	require.NoError(t, json.Unmarshal(res.Content, &got))
	require.Len(t, got.Lines, 5, "four values of the table, and one more")
	require.Equal(t, 4, got.Summary.Values)
	require.Equal(t, 1, got.Summary.Ranges)
	require.Equal(t, 1, got.Summary.Inside)
	require.Equal(t, "A paper, Table 9", got.Lines[0].Source)
	require.NotNil(t, got.Lines[0].Ours)

	res, err = c.results(ctx, &linktrialv1.ResultsRequest{RunId: started.CampaignId, Format: "table"})
	require.NoError(t, err)
	require.True(t, strings.Contains(string(res.Content), "beside published"), "%s", res.Content)

	formats := formatNames(t, linktrialv1connect.NewResultServiceClient(c.http, c.base, connect.WithGRPC()), started.CampaignId)
	require.Subset(t, formats, []string{"against", "against-csv", "against-json", "against-markdown"})
	require.NotContains(t, formats, "sweep", "its runs do not differ in any setting")

	for format, want := range map[string]string{"sequence-svg": "iteration 1", "sequence-svg:2": "iteration 2"} {
		res, err = c.results(ctx, &linktrialv1.ResultsRequest{RunId: started.RunIds[0], Format: format})
		require.NoError(t, err)
		require.Equal(t, "sequence.svg", res.FileName)
		require.Contains(t, string(res.Content), want)
	}
	for format, code := range map[string]connect.Code{"sequence-svg:0": connect.CodeInvalidArgument, "sequence-svg:x": connect.CodeInvalidArgument, "sequence-svg:99": connect.CodeNotFound} {
		_, err = c.results(ctx, &linktrialv1.ResultsRequest{RunId: started.RunIds[0], Format: format})
		require.Equal(t, code, connect.CodeOf(err), "%s: %v", format, err)
	}
}
