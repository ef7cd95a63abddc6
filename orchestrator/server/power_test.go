package server_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// The spread of a plan's power is that of stored runs of the same cell.
func TestPowerOfStoredRuns(t *testing.T) {
	c := serve(t)
	cast(t, c)
	text := strings.NewReplacer("iterations: 4", "iterations: 10").Replace(fmt.Sprintf(testPlan, "[1 KiB, 4 KiB]"))
	estimate := func(m *linktrialv1.ExplainPowerRequest) *linktrialv1.ExplainPowerResponse {
		t.Helper()
		m.File, m.Text = "x.yaml", []byte(text)
		res, err := c.operator.ExplainPower(t.Context(), connect.NewRequest(m))
		require.NoError(t, err)
		require.Empty(t, res.Msg.Problems)
		return res.Msg
	}
	before := estimate(&linktrialv1.ExplainPowerRequest{Effect: 0.5})
	require.Len(t, before.Lines, 1)
	require.Equal(t, []int32{0, 1}, before.Lines[0].Runs)
	require.Contains(t, before.Lines[0].Text, "with 10 iterations a difference of 22.6 % is found with 80 % chance, of 30.1 % with 95 %; one of 50.0 % takes")
	require.Contains(t, before.Lines[0].Text, "; assumed spread of 20.0 %")
	require.NotEmpty(t, before.Note)

	started := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	require.Empty(t, started.Problems)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.watch(ctx, started.CampaignId, func(*linktrialv1.WatchResponse) {}))

	after := estimate(&linktrialv1.ExplainPowerRequest{AssumedSpread: 0.1})
	require.Len(t, after.Lines, 2)
	require.Equal(t, []int32{0}, after.Lines[0].Runs)
	require.Contains(t, after.Lines[0].Text, "any difference of 0.01 % is found: the ratio hardly varies; spread of less than 0.01 %, from 4 iterations of run "+started.RunIds[0]+", emulated, real time")
	require.Equal(t, []int32{1}, after.Lines[1].Runs)
	require.Contains(t, after.Lines[1].Text, "; assumed spread of 10.0 % (this orchestrator has no run of its radio, topology, size and settings)")
	require.Equal(t, before.Lines[0].Text, estimate(&linktrialv1.ExplainPowerRequest{Effect: 0.5, Assume: true}).Lines[0].Text)

	for _, bad := range []*linktrialv1.ExplainPowerRequest{{AssumedSpread: -1}, {AssumedSpread: math.NaN()}, {Effect: 11}, {Effect: 1e-9}} {
		bad.Text = []byte(text)
		_, err := c.operator.ExplainPower(t.Context(), connect.NewRequest(bad))
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), bad)
		require.ErrorContains(t, err, "expected 0 or 0.001 to 10")
	}
	broken, err := c.operator.ExplainPower(t.Context(), connect.NewRequest(&linktrialv1.ExplainPowerRequest{File: "x.yaml", Text: []byte("name: x\n")}))
	require.NoError(t, err)
	require.NotEmpty(t, broken.Msg.Problems)
	require.Empty(t, broken.Msg.Lines)
}
