package server_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/orchestrator/store/storetest"
)

// What a measurement would be follows from the node that leads, and what cannot be measured
// is refused with what to do.
func TestMeasurementIsPreviewed(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), nil)
	ctx := t.Context()
	measure := linktrialv1connect.NewMeasureServiceClient(s.http, s.base, connect.WithGRPC())
	preview := func(c *linktrialv1.LinkChoice) (*linktrialv1.MeasurementPlan, error) {
		res, err := measure.PreviewMeasurement(ctx, connect.NewRequest(&linktrialv1.PreviewMeasurementRequest{Link: c}))
		if err != nil {
			return nil, err
		}
		if res.Msg.Plan == nil {
			return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New(res.Msg.Refused))
		}
		return res.Msg.Plan, nil
	}
	_, err := preview(nil)
	fails(t, err, connect.CodeFailedPrecondition, "no client node with a radio is connected")

	register := func(radioName, address string) {
		t.Helper()
		_, err := s.agent.Register(ctx, connect.NewRequest(&linktrialv1.RegisterRequest{Protocol: agentprotocol.Number, Name: "client", Role: "client", Radio: radioName, RadioAddress: address, Incarnation: "1"}))
		require.NoError(t, err)
	}
	register("", "")
	_, err = preview(nil)
	fails(t, err, connect.CodeFailedPrecondition, "no client node with a radio is connected")

	register("", "10.77.0.1")
	p, err := preview(nil)
	require.NoError(t, err)
	require.Equal(t, "unnamed-radio", p.Radio)
	require.Equal(t, "point-to-point", p.Topology)
	require.True(t, p.RestFollows)
	require.Contains(t, p.Text, "name: measure-search")
	require.LessOrEqual(t, p.BoundSeconds, 600.0)
	require.Greater(t, p.BoundSeconds, p.PartSeconds)

	register("transports-link", "10.77.0.1")
	p, err = preview(nil)
	require.NoError(t, err)
	require.Equal(t, "transports-link", p.Radio)
	require.False(t, p.RestFollows)
	require.Equal(t, 2e6, p.RateBps)
	require.LessOrEqual(t, p.BoundSeconds, 120.0)

	_, err = preview(&linktrialv1.LinkChoice{Radio: "transport-link"})
	fails(t, err, connect.CodeFailedPrecondition, `there is no radio "transport-link"`, "transports-link")
	_, err = preview(&linktrialv1.LinkChoice{Topology: "nowhere"})
	fails(t, err, connect.CodeFailedPrecondition, `there is no topology "nowhere"`)

	// The orchestrator has no driver for probes: nothing is started.
	started, err := measure.StartMeasurement(ctx, connect.NewRequest(&linktrialv1.StartMeasurementRequest{}))
	require.NoError(t, err)
	require.Empty(t, started.Msg.CampaignId)
	require.NotEmpty(t, started.Msg.Problems)
	list, err := measure.ListMeasurements(ctx, connect.NewRequest(&linktrialv1.ListMeasurementsRequest{}))
	require.NoError(t, err)
	require.Empty(t, list.Msg.Measurements)
}

// Campaigns that are no measurement are not judged as one.
func TestOnlyMeasurementsAreJudged(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), nil)
	ctx := t.Context()
	measure := linktrialv1connect.NewMeasureServiceClient(s.http, s.base, connect.WithGRPC())
	get := func(id string, set *linktrialv1.MeasureThresholds) error {
		_, err := measure.GetMeasurement(ctx, connect.NewRequest(&linktrialv1.GetMeasurementRequest{CampaignId: id, Thresholds: set}))
		return err
	}
	fails(t, get("", nil), connect.CodeNotFound, "no link has been measured yet")
	share := 5.0
	fails(t, get("", &linktrialv1.MeasureThresholds{ChatLoss: &share}), connect.CodeInvalidArgument, "chat_loss: expected 0 % to 100 %, found 500 %")

	g := newGround(t, s.clients)
	fails(t, get(g.campaign, nil), connect.CodeFailedPrecondition, "no measurement of a link")
	for _, x := range []struct {
		link *linktrialv1.LinkChoice
		says []string
	}{
		{&linktrialv1.LinkChoice{Search: g.campaign}, []string{"no measurement of a link"}},
		{nil, []string{"emulated radio", "linktrial measure --radio NAME"}},
	} {
		_, err := measure.StartMeasurement(ctx, connect.NewRequest(&linktrialv1.StartMeasurementRequest{Link: x.link}))
		fails(t, err, connect.CodeFailedPrecondition, x.says...)
	}
}

// A comparison is proposed from a whole measurement that found a capacity, and bad input is
// refused by name.
func TestComparisonIsProposed(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), nil)
	ctx := t.Context()
	measure := linktrialv1connect.NewMeasureServiceClient(s.http, s.base, connect.WithGRPC())
	propose := func(m *linktrialv1.ProposeComparisonRequest) error {
		_, err := measure.ProposeComparison(ctx, connect.NewRequest(m))
		return err
	}
	fails(t, propose(&linktrialv1.ProposeComparisonRequest{}), connect.CodeNotFound, "no link has been measured yet")
	for _, budget := range []float64{-1, 59, 86_401, math.NaN(), math.Inf(1)} {
		fails(t, propose(&linktrialv1.ProposeComparisonRequest{BudgetSeconds: budget}), connect.CodeInvalidArgument, "budget_seconds", "expected 0 or 60 to 86400")
	}
	fails(t, propose(&linktrialv1.ProposeComparisonRequest{Protocols: []string{"hual"}}), connect.CodeInvalidArgument, `no protocol "hual"`, `did you mean "haul"?`)
	fails(t, propose(&linktrialv1.ProposeComparisonRequest{Protocols: []string{"haul", "haul"}}), connect.CodeInvalidArgument, "twice")

	g := newGround(t, s.clients)
	fails(t, propose(&linktrialv1.ProposeComparisonRequest{CampaignId: g.campaign}), connect.CodeFailedPrecondition, "no measurement of a link")
	for name, says := range map[string]string{"measure-search": "search for the capacity alone", "measure-track": "one of a series", "measure": "no capacity in both directions"} {
		started := s.start(t, strings.Replace(fmt.Sprintf(testPlan, "1 KiB"), "name: test", "name: "+name, 1))
		require.Empty(t, started.Problems)
		require.NoError(t, s.watch(ctx, started.CampaignId, func(*linktrialv1.WatchResponse) {}))
		fails(t, propose(&linktrialv1.ProposeComparisonRequest{CampaignId: started.CampaignId}), connect.CodeFailedPrecondition, says)
	}
	fails(t, propose(&linktrialv1.ProposeComparisonRequest{}), connect.CodeFailedPrecondition, "no capacity in both directions")
}
