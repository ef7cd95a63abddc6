package server_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/store/synthetic"
)

// withResults starts an orchestrator on a database with campaigns of these shapes.
func withResults(t testing.TB, shapes ...synthetic.Shape) (*clients, linktrialv1connect.ResultServiceClient, *pgx.Conn) {
	t.Helper()
	url := storetest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for _, s := range shapes {
		require.NoError(t, synthetic.Fill(t.Context(), conn, s))
	}
	s := startOn(t, url)
	t.Cleanup(func() { stop(t, s) })
	c := connectTo(t, s.Addr())
	return c, linktrialv1connect.NewResultServiceClient(c.http, "http://"+s.Addr(), connect.WithGRPC()), conn
}

func req[T any](m *T) *connect.Request[T] { return connect.NewRequest(m) }

func TestListCampaigns(t *testing.T) {
	var shapes []synthetic.Shape
	for i := range 5 {
		shapes = append(shapes, synthetic.Shape{ID: fmt.Sprintf("list%d", i), Runs: 1 + i, Iterations: 10, Treatments: 2, Samples: 1})
	}
	shapes[4].Plan = []byte("name: list4\npublished:\n")
	_, c, conn := withResults(t, shapes...)
	_, err := conn.Exec(t.Context(), `UPDATE runs SET state = 'running', ended_at = NULL WHERE id = 'list3-4'`)
	require.NoError(t, err)
	var got []*linktrialv1.Campaign
	before := ""
	for pages := 1; ; pages++ {
		res, err := c.ListCampaigns(t.Context(), req(&linktrialv1.ListCampaignsRequest{Limit: 2, Before: before}))
		require.NoError(t, err)
		got = append(got, res.Msg.Campaigns...)
		require.Equal(t, pages < 3, res.Msg.More)
		if before = got[len(got)-1].Id; !res.Msg.More {
			break
		}
	}
	require.Len(t, got, 5)
	for i, x := range got {
		n := 4 - i
		require.Equal(t, fmt.Sprintf("list%d", n), x.Id)
		require.EqualValues(t, 1+n, x.Runs)
		require.EqualValues(t, 20*(1+n), x.Trials)
		require.EqualValues(t, 20*(1+n), x.TrialsEnded)
		require.Equal(t, []string{"Treatment 1", "Treatment 2"}, x.Treatments)
		require.Equal(t, []string{"point-to-point"}, x.Topologies)
		require.Len(t, x.Radios, min(3, 1+n))
		require.Equal(t, []int64{1 << 20}, x.SizesBytes)
		require.Equal(t, "emulated, real time", x.Place)
		require.Equal(t, n == 4, x.Published)
		require.True(t, x.Sweeps)
		require.Equal(t, n != 3, x.Ended != nil, "a campaign with an open run has not ended")
	}
	require.EqualValues(t, 3, got[1].RunsEnded)
	res, err := c.ListCampaigns(t.Context(), req(&linktrialv1.ListCampaignsRequest{Ids: []string{"list1", "nosuch", "list3"}, Limit: 1, Before: "list1"}))
	require.NoError(t, err)
	require.Len(t, res.Msg.Campaigns, 2)
	require.Equal(t, "list3", res.Msg.Campaigns[0].Id)
	_, err = c.ListCampaigns(t.Context(), req(&linktrialv1.ListCampaignsRequest{Before: "nosuch"}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))

	require.Equal(t, render.Names(), formatNames(t, c), "no campaign is named: all that there are")
	require.Contains(t, formatNames(t, c, "list1-1"), "sweep-svg")
	require.NotContains(t, formatNames(t, c, "list0"), "differences")
	_, err = c.ListFormats(t.Context(), req(&linktrialv1.ListFormatsRequest{Ids: []string{"nosuch"}}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

// tablesOf are a campaign's tables as the export has them.
func tablesOf(t testing.TB, c *clients, id string) (tables []report.RunTable, ds *report.Dataset) {
	t.Helper()
	res, err := c.results(t.Context(), &linktrialv1.ResultsRequest{RunId: id, Format: "json"})
	require.NoError(t, err)
	var x struct{ Tables []report.RunTable }
	require.NoError(t, json.Unmarshal(res.Content, &x))
	ds, err = report.ReadJSON(res.Content)
	require.NoError(t, err)
	return x.Tables, ds
}

// sameDelivery holds a treatment's times to delivery against those of the table.
func sameDelivery(t *testing.T, want *report.Delivery, got *linktrialv1.Delivery) {
	t.Helper()
	require.EqualValues(t, want.Trials, got.Trials)
	require.Equal(t, []float64{want.HorizonSeconds, *want.Share, want.ShareCI.Low, want.ShareCI.High, *want.MeanSeconds, want.MeanCI.Low, want.MeanCI.High, *want.GoodputKBps * unit.KB},
		[]float64{got.Horizon, got.Share, got.ShareLow, got.ShareHigh, got.Mean, *got.MeanLow, *got.MeanHigh, *got.Goodput})
	require.Equal(t, []*float64{want.MedianSeconds, want.MedianLow, want.MedianHigh}, []*float64{got.Median, got.MedianLow, got.MedianHigh})
	if want.Difference == nil {
		require.Nil(t, got.Sooner)
		return
	}
	require.EqualValues(t, want.Difference.Pairs, got.Pairs)
	require.Equal(t, []*float64{want.Difference.SoonerSeconds, &want.Difference.SoonerCI.Low, &want.Difference.SoonerCI.High, want.Difference.P, want.Difference.PHolm},
		[]*float64{got.Sooner, got.SoonerLow, got.SoonerHigh, got.SoonerP, got.SoonerPHolm})
}

// Every value of a summary equals the one in the table, marks included.
func TestSummaryEqualsTheTable(t *testing.T) {
	c, r, conn := withResults(t, synthetic.Shape{ID: "alpha", Runs: 2, Iterations: 30, Treatments: 3, Samples: 1}, synthetic.Shape{ID: "beta", Runs: 1, Iterations: 4, Treatments: 2, Samples: 1})
	_, err := conn.Exec(t.Context(), `INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason) SELECT trial || '.' || attempt, run_id, trial, attempt, true, 'rain' FROM attempts WHERE run_id = 'alpha-1' AND trial % 10 = 3`)
	require.NoError(t, err)
	tables, ds := tablesOf(t, c, "alpha")
	beta, _ := tablesOf(t, c, "beta")
	res, err := r.Summarize(t.Context(), req(&linktrialv1.SummarizeRequest{Ids: []string{"beta", "alpha-2", "alpha-1", "beta"}, Points: true}))
	require.NoError(t, err)
	require.Len(t, res.Msg.Runs, 3, "what is named twice is shown once")
	for i, want := range []report.RunTable{beta[0], tables[1], tables[0]} {
		got := res.Msg.Runs[i]
		require.Equal(t, want.Run, got.Run.Id)
		require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, got.Run.State)
		require.EqualValues(t, got.Run.Trials, got.Run.TrialsEnded)
		require.Equal(t, want.RadioTitle, got.RadioTitle)
		require.EqualValues(t, want.Iterations, got.Iterations)
		require.Equal(t, "loss", got.Settings[0].Axis)
		require.Len(t, got.Treatments, len(want.Rows))
		for k, w := range want.Rows {
			g := got.Treatments[k]
			require.Equal(t, w.Label, g.Label)
			require.EqualValues(t, []int{w.Valid, w.Failed, w.Trials}, []int{int(g.Valid), int(g.Failed), int(g.Planned)})
			for name, x := range map[string]struct {
				want *float64
				got  float64
			}{"average": {w.AverageKBps, g.Average}, "sd": {w.SDKBps, g.Sd}, "min": {w.MinKBps, g.Min}, "max": {w.MaxKBps, g.Max}, "median": {w.MedianKBps, g.Median},
				"p05": {w.P05KBps, g.P05}, "p25": {w.P25KBps, g.P25}, "p75": {w.P75KBps, g.P75}, "p95": {w.P95KBps, g.P95}, "low": {&w.MeanCI.Low, g.CiLow}, "high": {&w.MeanCI.High, g.CiHigh}} {
				require.NotNil(t, x.want, name)
				require.Equal(t, *x.want*unit.KB, x.got, name)
			}
			require.Equal(t, w.ShareOfIdeal, g.IdealShare)
			require.Equal(t, w.ShareOfCodedBound, g.CodedBoundShare)
			require.Equal(t, *w.ConnectSeconds, g.ConnectAverage)
			require.Equal(t, w.Retransmits, g.RetransmitsAverage)
			require.Equal(t, w.Timeouts, g.TimeoutsAverage)
			sameDelivery(t, w.Delivery, g.Delivery)
			if w.Comparison == nil {
				require.Nil(t, g.Ratio)
				continue
			}
			require.Equal(t, w.Comparison.Ratio, g.Ratio)
			if w.Comparison.RatioCI != nil {
				require.Equal(t, w.Comparison.RatioCI.Low, *g.RatioLow)
			} else {
				require.Nil(t, g.RatioLow)
			}
			require.Equal(t, w.Comparison.P, g.PValue)
			require.Equal(t, w.Comparison.PHolm, g.PHolm)
		}
	}
	first := res.Msg.Runs[2]
	require.Contains(t, first.Treatments[0].Failures, "3× marked: rain")
	p, k := first.Points, 0
	for _, trial := range ds.Runs[0].Trials {
		for i := range trial.Attempts {
			a := &trial.Attempts[i]
			require.EqualValues(t, []int{trial.Index, a.Attempt, trial.Iteration}, []int{int(p.Trial[k]), int(p.Attempt[k]), int(p.Iteration[k])})
			require.Equal(t, trial.Treatment, first.Treatments[p.Treatment[k]].Name)
			require.Equal(t, a.ThroughputBytesPerSecond(), p.Throughput[k])
			require.Equal(t, a.Elapsed.Seconds(), p.Elapsed[k])
			require.Equal(t, a.Ideal.Seconds(), p.Ideal[k])
			require.Equal(t, a.CodedBound.Seconds(), p.CodedBound[k])
			require.Equal(t, trial.Counted() == a, p.Counts[k])
			require.Equal(t, a.Reason, p.Reason[int32(k)])
			k++
		}
	}
	require.Len(t, p.Verdict, k)

	// Against another treatment.
	res, err = r.Summarize(t.Context(), req(&linktrialv1.SummarizeRequest{Ids: []string{"alpha-2"}, Reference: "treatment-2"}))
	require.NoError(t, err)
	s := res.Msg.Runs[0]
	require.Nil(t, s.Points)
	require.Nil(t, s.Treatments[1].Ratio)
	require.InEpsilon(t, 1 / *tables[1].Rows[1].Comparison.Ratio, *s.Treatments[0].Ratio, 1e-6)

	for id, code := range map[string]connect.Code{"nosuch": connect.CodeNotFound, "alpha-9": connect.CodeNotFound} {
		_, err = r.Summarize(t.Context(), req(&linktrialv1.SummarizeRequest{Ids: []string{id}}))
		require.Equal(t, code, connect.CodeOf(err), "%v", err)
	}
	_, err = r.Summarize(t.Context(), req(&linktrialv1.SummarizeRequest{Ids: slices.Repeat([]string{"alpha"}, 101)}))
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
}

func TestSweep(t *testing.T) {
	c, r, _ := withResults(t, synthetic.Shape{ID: "curves", Runs: 6, Iterations: 5, Treatments: 2, Samples: 1})
	tables, _ := tablesOf(t, c, "curves")
	res, err := r.Sweep(t.Context(), req(&linktrialv1.SweepRequest{CampaignId: "curves"}))
	require.NoError(t, err)
	require.Equal(t, []string{"loss", "radio"}, res.Msg.Axes)
	require.Equal(t, "loss", res.Msg.Axis)
	require.Equal(t, "throughput", res.Msg.Metric)
	require.Equal(t, "KB/s", res.Msg.Unit)
	require.Len(t, res.Msg.Panels, 3, "one for each radio")
	p := res.Msg.Panels[0]
	require.Equal(t, "radio radio-0", p.Title)
	require.Equal(t, []string{"0.000", "0.003"}, p.Values)
	require.Equal(t, []float64{0, 0.003}, p.Positions)
	require.Len(t, p.Curves, 2, "two treatments, each with the Ideal and the coded bound of its own trials")
	for _, c := range p.Curves {
		require.Len(t, c.Ideal, 2)
		require.Len(t, c.CodedBound, 2)
		for i, v := range c.Value {
			require.LessOrEqual(t, v, c.Ideal[i], c.Treatment)
			require.LessOrEqual(t, v, c.CodedBound[i], c.Treatment)
		}
	}
	require.InEpsilon(t, *tables[3].Rows[1].AverageKBps, p.Curves[1].Value[1], 1e-6)
	require.InEpsilon(t, tables[3].Rows[1].MeanCI.Low, p.Curves[1].Low[1], 1e-6)
	require.EqualValues(t, tables[3].Rows[1].Valid, p.Curves[1].N[1])
	for _, metric := range res.Msg.Metrics {
		res, err := r.Sweep(t.Context(), req(&linktrialv1.SweepRequest{CampaignId: "curves", Axis: "radio", Metric: metric}))
		require.NoError(t, err)
		require.Len(t, res.Msg.Panels, 6)
		known := 0
		for _, p := range res.Msg.Panels {
			for _, c := range p.Curves {
				require.Len(t, c.Value, len(p.Values))
				require.Empty(t, p.Positions)
				for _, x := range c.Value {
					if !math.IsNaN(x) {
						known++
					}
				}
			}
		}
		require.Positive(t, known, metric)
	}
	for _, m := range []*linktrialv1.SweepRequest{{CampaignId: "curves", Metric: "troughput"}, {CampaignId: "curves", Axis: "los"}} {
		_, err = r.Sweep(t.Context(), req(m))
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
		require.ErrorContains(t, err, "did you mean")
	}
}

func TestSeriesAndAttempt(t *testing.T) {
	const samples = 5000
	_, r, conn := withResults(t, synthetic.Shape{ID: "deep", Runs: 1, Iterations: 2, Treatments: 4, Samples: samples})
	_, err := conn.Exec(t.Context(), `UPDATE samples SET srtt_us = 900000000 WHERE run_id = 'deep-1' AND trial = 3 AND elapsed_ns = 123400000000`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE samples SET cwnd_bytes = 3 WHERE run_id = 'deep-1' AND trial = 3 AND elapsed_ns = 400000000000`)
	require.NoError(t, err)
	res, err := r.Series(t.Context(), req(&linktrialv1.SeriesRequest{RunId: "deep-1", Trial: 3}))
	require.NoError(t, err)
	require.True(t, res.Msg.Thinned)
	require.EqualValues(t, samples, res.Msg.Samples)
	require.Len(t, res.Msg.Flows, 1)
	f := res.Msg.Flows[0]
	require.Equal(t, "client", f.Side)
	require.Equal(t, "Treatment 4", f.Label)
	require.Equal(t, 0.18, f.OffsetSeconds)
	require.LessOrEqual(t, len(f.At), 600)
	columns := map[string][]float64{}
	for _, c := range f.Columns {
		require.NotContains(t, columns, c.Name)
		columns[c.Name] = c.Values
		require.Len(t, c.Values, len(f.At), c.Name)
	}
	// pacing_bps, bandwidth_bps and loss_events are not among them: the protocol does not know them.
	require.ElementsMatch(t, []string{"throughput", "sent_bytes", "acked_bytes", "cwnd_bytes", "ssthresh_bytes", "flight_bytes",
		"srtt_us", "rttvar_us", "rto_us", "retransmits", "timeouts", "window_packets"}, slices.Collect(maps.Keys(columns)))
	require.EqualValues(t, 900_000_000, slices.Max(columns["srtt_us"]), "one sample of thousands")
	require.EqualValues(t, 3, slices.Min(columns["cwnd_bytes"]))
	require.InDelta(t, 21_000, columns["throughput"][7], 1e-6)
	require.InDelta(t, samples/10, f.At[len(f.At)-1], 1e-9)
	require.Len(t, res.Msg.Channels, 2)
	require.Equal(t, "client", res.Msg.Channels[0].From)
	require.Len(t, res.Msg.Channels[0].Loss, len(res.Msg.Channels[0].At))

	// Nearer: what lies between, on the trial's clock, with a sample to each side.
	res, err = r.Series(t.Context(), req(&linktrialv1.SeriesRequest{RunId: "deep-1", Trial: 3, FromSeconds: 120.18, ToSeconds: 130.18}))
	require.NoError(t, err)
	require.False(t, res.Msg.Thinned)
	at := res.Msg.Flows[0].At
	require.Len(t, at, 101+2)
	require.InDelta(t, 119.9, at[0], 1e-9)
	require.InDelta(t, 130.1, at[len(at)-1], 1e-9)

	// An iteration: the attempts that count, of every treatment.
	res, err = r.Series(t.Context(), req(&linktrialv1.SeriesRequest{RunId: "deep-1", Iteration: 2, MaxPoints: 50}))
	require.NoError(t, err)
	require.Len(t, res.Msg.Flows, 4)
	require.Empty(t, res.Msg.Channels)
	for i, f := range res.Msg.Flows {
		require.EqualValues(t, 4+i, f.Trial)
		require.LessOrEqual(t, len(f.At), 50)
	}

	got, err := r.GetAttempt(t.Context(), req(&linktrialv1.GetAttemptRequest{RunId: "deep-1", Trial: 3}))
	require.NoError(t, err)
	a := got.Msg
	require.Equal(t, "deep-1", a.Run.Id)
	require.EqualValues(t, 3, a.Trial.Trial)
	require.Len(t, a.Trial.Attempts, int(a.Attempt))
	require.Equal(t, "Treatment 4", a.Label)
	require.EqualValues(t, 1_000_003, a.ChannelSeed)
	require.Len(t, a.Flows, 1)
	require.Equal(t, "client", a.Flows[0].From)
	require.Equal(t, a.Flows[0].Digest, a.Flows[0].ReceivedDigest)
	require.NotEmpty(t, a.Flows[0].Digest)
	require.True(t, json.Valid([]byte(a.RadioJson)) && json.Valid([]byte(a.TreatmentJson)) && json.Valid([]byte(a.Flows[0].LastSampleJson)))
	var treatment struct{ Options map[string]any }
	require.NoError(t, json.Unmarshal([]byte(a.TreatmentJson), &treatment))
	require.Equal(t, "cubic", treatment.Options["congestion"])

	for name, m := range map[string]struct {
		of   *linktrialv1.SeriesRequest
		code connect.Code
	}{
		"no such run":       {&linktrialv1.SeriesRequest{RunId: "deep-7"}, connect.CodeNotFound},
		"no such trial":     {&linktrialv1.SeriesRequest{RunId: "deep-1", Trial: 8}, connect.CodeNotFound},
		"no such attempt":   {&linktrialv1.SeriesRequest{RunId: "deep-1", Trial: 3, Attempt: 9}, connect.CodeNotFound},
		"no such iteration": {&linktrialv1.SeriesRequest{RunId: "deep-1", Iteration: 3}, connect.CodeNotFound},
		"backwards":         {&linktrialv1.SeriesRequest{RunId: "deep-1", FromSeconds: 3, ToSeconds: 2}, connect.CodeInvalidArgument},
		"no number":         {&linktrialv1.SeriesRequest{RunId: "deep-1", FromSeconds: math.NaN(), ToSeconds: 2}, connect.CodeInvalidArgument},
		"too many points":   {&linktrialv1.SeriesRequest{RunId: "deep-1", MaxPoints: 1 << 30}, connect.CodeInvalidArgument},
	} {
		_, err := r.Series(t.Context(), req(m.of))
		require.Equal(t, m.code, connect.CodeOf(err), "%s: %v", name, err)
	}
	_, err = r.GetAttempt(t.Context(), req(&linktrialv1.GetAttemptRequest{RunId: "deep-1", Trial: -1}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

// Campaigns beside each other, as files.
func TestComparedResults(t *testing.T) {
	c, _, _ := withResults(t, synthetic.Shape{ID: "alpha", Runs: 2, Iterations: 6, Treatments: 2, Samples: 1}, synthetic.Shape{ID: "beta", Runs: 2, Iterations: 6, Treatments: 2, Samples: 1})
	get := func(m *linktrialv1.ResultsRequest) (*linktrialv1.ResultsResponse, error) {
		return c.results(t.Context(), m)
	}
	alone, _ := tablesOf(t, c, "beta")
	res, err := get(&linktrialv1.ResultsRequest{RunId: "alpha-2", MoreIds: []string{"beta", "alpha-2"}, Format: "json"})
	require.NoError(t, err)
	require.Equal(t, []string{"alpha-2", "beta-1", "beta-2"}, res.RunIds)
	var both struct{ Tables []report.RunTable }
	require.NoError(t, json.Unmarshal(res.Content, &both))
	require.Equal(t, alone[1].Rows, both.Tables[2].Rows, "statistics are those of the run on its own")
	require.Contains(t, both.Tables[2].Settings, "campaign beta")

	res, err = get(&linktrialv1.ResultsRequest{RunId: "alpha", Format: "csv", Reference: "treatment-2"})
	require.NoError(t, err)
	require.Contains(t, string(res.Content), ",treatment-2,6,", "reference and pairs")
	res, err = get(&linktrialv1.ResultsRequest{RunId: "alpha", MoreIds: []string{"beta"}, Format: "sweep", Axis: "loss", Metric: "timeouts"})
	require.NoError(t, err)
	require.Contains(t, string(res.Content), "timeouts over loss")
	require.Contains(t, string(res.Content), "campaign beta")

	res, err = get(&linktrialv1.ResultsRequest{RunId: "alpha-1", Format: "channels-csv"})
	require.NoError(t, err)
	require.Equal(t, "channels.csv", res.FileName)
	rows, err := csv.NewReader(bytes.NewReader(res.Content)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"run", "trial", "attempt", "from", "to", "step_s", "at_s", "loss", "bit_error_rate", "rate_bps", "delay_ms"}, rows[0])
	require.Zero(t, (len(rows)-1)%240, "two directions of 120 moments for each attempt")
	require.Equal(t, []string{"alpha-1", "0", "1", "client", "server", "0"}, rows[1][:6])
	require.Equal(t, "0.3", rows[2][7])

	for _, m := range []*linktrialv1.ResultsRequest{
		{RunId: "alpha", Format: "table", Reference: "treatment-9"}, {RunId: "alpha", Format: "sweep", Axis: "los"}, {RunId: "alpha", Format: "sweep", Metric: "x"},
		{RunId: "alpha", Format: "cdf"}, {RunId: "alpha", MoreIds: slices.Repeat([]string{"beta"}, 100)}} {
		_, err := get(m)
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), "%v: %v", m, err)
	}
	_, err = get(&linktrialv1.ResultsRequest{RunId: "alpha", MoreIds: []string{"gamma"}})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}
