package server_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/sheet"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// capacityOf are a probe's metrics that found a capacity in bit/s.
func capacityOf(bps int64) *contract.ProbeMetrics {
	delays := contract.Delays{MinNS: 3e7, MeanNS: 3e7, P50NS: 3e7, P95NS: 3e7, P99NS: 3e7, MaxNS: 3e7}
	return &contract.ProbeMetrics{Sent: 2000, Received: 2000, SentBytes: 2000 * 1472, ReceivedBytes: 2000 * 1472, Delay: &delays,
		Capacity: &contract.Capacity{MaximumBPS: bps, MeanBPS: bps, PayloadBPS: bps - bps/50, IntervalNS: 1e9, Intervals: 5, RateBPS: bps, PacketBytes: 1500, PayloadBytes: 1472, LargestPayloadBytes: 1472,
			HeldNS: 5e9, HeldSent: 1000, HeldReceived: 1000, HeldDelay: &delays, Steps: 5, SearchNS: 1e9, End: contract.CapacityFound}}
}

// storeMeasurement stores a measurement that ended when it had found the capacity both ways,
// in bit/s, and returns its campaign.
func storeMeasurement(t *testing.T, url string, cat *catalog.Catalog, bps int64) string {
	t.Helper()
	p := measure.Compose(measure.Link{Radio: "transports-link", Topology: "point-to-point", RateBPS: 2e6}, measure.Whole, "")
	parsed, err := plan.Parse(nil, "measure.yaml", []byte(p.Text), cat)
	require.NoError(t, err)
	sheets, err := sheet.Compile(nil, parsed)
	require.NoError(t, err)
	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer st.Close()
	const campaign = "measured"
	run := storetest.AddRun(t, st, campaign, sheets[0])
	client, srv := storetest.NewJournal(run, radio.RoleClient), storetest.NewJournal(run, radio.RoleServer)
	client.Begin(sheets[0])
	srv.Begin(sheets[0])
	srv.Listen(sheets[0])
	for i, tr := range sheets[0].Trials[:2] {
		id := runsheet.TransferID(run, i, 1, 0).String()
		found := &contract.Result{ElapsedNS: 6e9, Probe: capacityOf(bps)}
		client.Add(journal.TypeAttemptStarted, journal.AttemptStarted{Trial: i, Attempt: 1, Iteration: 1, Treatment: tr.Treatment, Probes: []string{id}})
		client.Add(journal.TypeAttemptEnded, journal.AttemptEnded{Trial: i, Attempt: 1, Iteration: 1, Treatment: tr.Treatment, Verdict: journal.Succeeded, Duration: 6 * time.Second,
			Probes: []journal.FlowResult{{Treatment: tr.Treatment, Transfer: id, Verdict: journal.Succeeded, Result: found}}})
		client.EndTrial(i, 1, journal.Succeeded)
		srv.Add(journal.TypeReceived, journal.Received{Treatment: tr.Treatment, Transfer: id, Result: found})
	}
	for _, j := range []*storetest.Journal{client, srv} {
		j.Finish(journal.RunCompleted, "")
		var records []ingest.Record
		for i, r := range j.Records {
			records = append(records, ingest.Record{Seq: int64(i + 1), JSON: r})
		}
		_, err := ingest.New(ingest.Config{Store: st}).Deliver(t.Context(), run, string(j.Role), records)
		require.NoError(t, err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "UPDATE campaigns SET plan = 'measure', plan_text = convert_to($1, 'UTF8')", p.Text)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "UPDATE runs SET state = 'completed', started_at = now(), ended_at = now()")
	require.NoError(t, err)
	return campaign
}

// A proposal is a plan that the orchestrator takes, by the measurement that was named or the
// newest one, without the protocols of which there is no driver.
func TestComparisonFollowsFromTheMeasurement(t *testing.T) {
	drivers := t.TempDir()
	for _, name := range []string{"tcp", "haul", "probe"} {
		require.NoError(t, os.CopyFS(filepath.Join(drivers, name), os.DirFS(filepath.Join("../catalog/testdata/drivers", name))))
	}
	cat, err := catalog.Load(catalog.Config{DriversDir: drivers})
	require.NoError(t, err)
	url := storetest.URL(t)
	campaign := storeMeasurement(t, url, cat, 2e6)
	s := serveAll(t, url, t.TempDir(), func(c *server.Config) { c.Catalog = cat })
	ctx := t.Context()
	service := linktrialv1connect.NewMeasureServiceClient(s.http, s.base, connect.WithGRPC())
	for _, id := range []string{"", campaign, campaign[:4]} {
		res, err := service.ProposeComparison(ctx, connect.NewRequest(&linktrialv1.ProposeComparisonRequest{CampaignId: id, BudgetSeconds: 3600}))
		require.NoError(t, err)
		p := res.Msg
		require.Equal(t, campaign, p.CampaignId)
		require.Equal(t, []string{"TCP CUBIC", "Haul"}, p.Labels)
		require.Contains(t, p.Sentences, `Without QUIC: the orchestrator has no driver "quic".`)
		require.EqualValues(t, 1536<<10, p.SizeBytes) // nine tenths of the capacity in 5 s
		require.Contains(t, p.Text, "the campaign "+campaign+".")
		require.Positive(t, p.Iterations)
		require.LessOrEqual(t, p.EstimatedSeconds, 3600.0)
		require.Greater(t, p.BoundSeconds, p.EstimatedSeconds)
		require.Equal(t, p.Decides, p.GetSmallestDifference() <= 0.2)
		explained, err := s.operator.ExplainPlan(ctx, connect.NewRequest(&linktrialv1.ExplainPlanRequest{File: "compare.yaml", Text: []byte(p.Text)}))
		require.NoError(t, err)
		require.Empty(t, explained.Msg.Problems)
		require.Len(t, explained.Msg.Sheets, 1)
	}
	_, err = service.ProposeComparison(ctx, connect.NewRequest(&linktrialv1.ProposeComparisonRequest{BudgetSeconds: 60}))
	fails(t, err, connect.CodeFailedPrecondition, "not one iteration fits into 1 min", "A budget of")
	_, err = service.ProposeComparison(ctx, connect.NewRequest(&linktrialv1.ProposeComparisonRequest{CampaignId: "nowhere"}))
	fails(t, err, connect.CodeNotFound, "nowhere")
}
