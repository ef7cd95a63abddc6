package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/radio"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/store/synthetic"
)

// scrape returns the values of a scrape by metric and labels, as name{label="value",…}, which
// a reader of Prometheus' format takes.
func scrape(t testing.TB, c *clients) map[string]float64 {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(get(t, c, "/metrics")))
	require.NoError(t, err)
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			key := name
			if len(labels) > 0 {
				key += "{" + strings.Join(labels, ",") + "}"
			}
			out[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return out
}

// join registers a node and polls once with what it reports.
func join(t testing.TB, c *clients, name string, report *linktrialv1.PollRequest) {
	t.Helper()
	_, err := c.agent.Register(t.Context(), connect.NewRequest(&linktrialv1.RegisterRequest{Protocol: agentprotocol.Number, Name: name, Role: "client", Version: "9", RadioAddress: "10.1.0.1", Incarnation: "1", DiskFreeBytes: 5 << 30}))
	require.NoError(t, err)
	report.Name, report.Incarnation, report.Protocol, report.WaitMs, report.DiskFreeBytes = name, "1", agentprotocol.Number, 1, 5<<30
	_, err = c.agent.Poll(t.Context(), connect.NewRequest(report))
	require.NoError(t, err)
}

// What nodes reported last is in a scrape, whatever their texts have in them: no other
// metric can be made of them, none is sent twice, and the number of readings is bounded.
func TestMetricsOfNodes(t *testing.T) {
	c := serve(t)
	charge := 0.25
	hostile := "x\"} 1\nlinktrial_node_faults{node=\"n\\"
	many := &linktrialv1.TelemetryState{Source: "modem", Kind: "snmp"}
	for i := range 70 {
		many.Values = append(many.Values, &linktrialv1.TelemetryReading{Name: fmt.Sprintf("value-%d", i), Value: float64(i), Unit: "dB"})
	}
	join(t, c, "node-a", &linktrialv1.PollRequest{Battery: &charge, Discharging: true, ClockOffsetNs: -3e6, ClockErrorNs: 1e6,
		Faults: []*linktrialv1.NodeFault{{Text: hostile}, {Text: "of a run that is over", RunId: "gone"}},
		Telemetry: []*linktrialv1.TelemetryState{
			{Source: hostile, Kind: "snmp", Values: []*linktrialv1.TelemetryReading{{Name: "snr", Value: 12.5, Unit: "dB"}, {Name: "snr", Value: 99, Unit: "dB"}, {Name: strings.Repeat("é", 100), Value: 1, Unit: "%"}}},
			{Source: "broken", Kind: "snmp", Error: "no answer", Values: []*linktrialv1.TelemetryReading{{Name: "snr", Value: 7}}}, many}})
	got := scrape(t, c)
	for key, want := range map[string]float64{
		`linktrial_build_info{version="test"}`: 1, `linktrial_database_up`: 1, `linktrial_database_writable`: 1, `linktrial_state_read`: 1,
		`linktrial_node_info{node="node-a",radio="",role="client",version="9"}`: 1,
		`linktrial_node_connected{node="node-a"}`:                               1, `linktrial_node_no_contact{node="node-a"}`: 0, `linktrial_node_silent{node="node-a"}`: 0,
		`linktrial_node_disk_free_bytes{node="node-a"}`: 5 << 30, `linktrial_node_battery_ratio{node="node-a"}`: 0.25, `linktrial_node_battery_discharging{node="node-a"}`: 1,
		`linktrial_node_clock_offset_seconds{node="node-a"}`: -0.003, `linktrial_node_clock_offset_error_seconds{node="node-a"}`: 0.001, `linktrial_node_faults{node="node-a"}`: 1,
		fmt.Sprintf(`linktrial_telemetry_reading{name="snr",node="node-a",source=%q,unit="dB"}`, hostile):                       12.5,
		fmt.Sprintf(`linktrial_telemetry_reading{name=%q,node="node-a",source=%q,unit="%%"}`, strings.Repeat("é", 64), hostile): 1,
		`linktrial_telemetry_failed{node="node-a",source="broken"}`:                                                             1,
		fmt.Sprintf(`linktrial_telemetry_failed{node="node-a",source=%q}`, hostile):                                             0,
		`linktrial_telemetry_reading{name="value-60",node="node-a",source="modem",unit="dB"}`:                                   60,
		`linktrial_left_out{what="readings"}`:                                                                                   9, `linktrial_left_out{what="nodes"}`: 0, `linktrial_left_out{what="runs"}`: 0,
	} {
		require.Contains(t, got, key)
		require.InDelta(t, want, got[key], 1e-9, key)
	}
	require.NotContains(t, got, `linktrial_node_faults{node="n\\"}`)
	require.NotContains(t, got, `linktrial_telemetry_reading{name="value-61",node="node-a",source="modem",unit="dB"}`)
	require.InDelta(t, float64(time.Now().Unix()), got[`linktrial_node_last_contact_timestamp_seconds{node="node-a"}`], 30)
}

// Of a run that has not ended there are its trials, its attempts by verdict with marks taken
// in, and the throughput of the attempt under way; of one that has there is nothing.
func TestMetricsOfRuns(t *testing.T) {
	url := storetest.URL(t)
	s := startOn(t, url)
	defer stop(t, s)
	c := connectTo(t, s.Addr())
	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer st.Close()
	sheet := storetest.Sheet(4)
	run := storetest.AddRun(t, st, "open", sheet)
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	for trial, v := range []journal.Verdict{journal.Failed, journal.Succeeded, journal.Succeeded} {
		j.Start(sheet, trial, 1)
		j.End(sheet, trial, 1, v)
		j.EndTrial(trial, 1, v)
	}
	deliver := func(from int) {
		m := &linktrialv1.DeliverRequest{RunId: run, Name: "client", Incarnation: "1"}
		for i := from; i < len(j.Records); i++ {
			m.Records = append(m.Records, &linktrialv1.JournalRecord{Seq: int64(i + 1), Json: j.Records[i]})
		}
		_, err := c.agent.Deliver(t.Context(), connect.NewRequest(m))
		require.NoError(t, err)
	}
	deliver(0)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), "INSERT INTO attempt_marks (id, run_id, trial, attempt, invalid, reason, given_by) VALUES ('1', $1, 2, 1, true, 'radio moved', 'anna')", run)
	require.NoError(t, err)
	before := scrape(t, c)
	of := fmt.Sprintf(`{run=%q}`, run)
	verdict := func(v string) string { return fmt.Sprintf(`linktrial_run_attempts{run=%q,verdict=%q}`, run, v) }
	want := map[string]float64{"linktrial_run_trials" + of: 4, "linktrial_run_trials_ended" + of: 3, "linktrial_run_paused" + of: 0,
		verdict("succeeded"): 1, verdict("failed"): 1, verdict("invalid"): 1, verdict("timed-out"): 0, verdict("aborted"): 0,
		fmt.Sprintf(`linktrial_journal_records{node="client",run=%q}`, run): float64(len(j.Records))}
	for key, value := range want {
		require.Contains(t, before, key)
		require.InDelta(t, value, before[key], 0, key)
	}
	require.NotContains(t, before, "linktrial_run_throughput_bytes_per_second"+of, "no attempt is under way")

	from := len(j.Records)
	j.Start(sheet, 3, 1)
	j.Samples(3, 1, 11) // 10 bytes more every 0.1 s, for 1.1 s
	deliver(from)
	var during map[string]float64
	require.Eventually(t, func() bool { // scrapes within a second share what was read
		during = scrape(t, c)
		_, shown := during["linktrial_run_throughput_bytes_per_second"+of]
		return shown
	}, 10*time.Second, 100*time.Millisecond)
	require.InDelta(t, 100, during["linktrial_run_throughput_bytes_per_second"+of], 1e-6)
	require.InDelta(t, 100, during["linktrial_run_attempt_bytes"+of], 0)
	require.InDelta(t, 1.1, during["linktrial_run_attempt_elapsed_seconds"+of], 1e-9)

	_, err = conn.Exec(t.Context(), "UPDATE runs SET state = 'aborted', ended_at = now() WHERE id = $1", run)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, there := scrape(t, c)["linktrial_run_trials"+of]
		return !there
	}, 10*time.Second, 100*time.Millisecond)
	require.InDelta(t, 1, scrape(t, c)[`linktrial_runs{state="aborted"}`], 0)
}

// Where the runs cannot be read, a scrape says so, and has what is known without them.
func TestMetricsWithoutRuns(t *testing.T) {
	url := storetest.URL(t)
	s := startOn(t, url)
	defer stop(t, s)
	c := connectTo(t, s.Addr())
	join(t, c, "node-a", &linktrialv1.PollRequest{})
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "ALTER TABLE attempt_marks RENAME TO gone")
	require.NoError(t, err)
	defer func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), "ALTER TABLE gone RENAME TO attempt_marks")
		require.NoError(t, err)
		require.NoError(t, conn.Close(context.WithoutCancel(t.Context())))
	}()
	got := scrape(t, c)
	require.InDelta(t, 0, got["linktrial_state_read"], 0)
	require.InDelta(t, 1, got["linktrial_database_up"], 0)
	require.InDelta(t, 1, got[`linktrial_node_connected{node="node-a"}`], 0)
	require.NotContains(t, got, `linktrial_runs{state="queued"}`)
}

// BenchmarkScrape is what a scrape costs, of 250 open runs with 20 trials that have ended
// each, and 100 nodes with eight readings each.
func BenchmarkScrape(b *testing.B) {
	url := storetest.URL(b)
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	require.NoError(b, synthetic.Fill(b.Context(), conn, synthetic.Shape{ID: "scraped", Runs: 250, Iterations: 5, Treatments: 4}))
	s := startOn(b, url)
	defer stop(b, s)
	c := connectTo(b, s.Addr())
	for _, sql := range []string{"UPDATE run_nodes SET ended = NULL, end_reason = ''", "UPDATE runs SET state = 'running', ended_at = NULL"} {
		_, err = conn.Exec(b.Context(), sql)
		require.NoError(b, err)
	}
	require.NoError(b, conn.Close(b.Context()))
	for i := range 100 {
		readings := &linktrialv1.TelemetryState{Source: "modem", Kind: "snmp"}
		for k := range 8 {
			readings.Values = append(readings.Values, &linktrialv1.TelemetryReading{Name: fmt.Sprintf("value-%d", k), Value: 1, Unit: "dB"})
		}
		join(b, c, fmt.Sprintf("node-%d", i), &linktrialv1.PollRequest{Telemetry: []*linktrialv1.TelemetryState{readings}})
	}
	h := s.Handler()
	for _, fresh := range []bool{true, false} {
		b.Run(fmt.Sprintf("read=%t", fresh), func(b *testing.B) {
			size := 0
			for b.Loop() {
				if fresh {
					b.StopTimer()
					time.Sleep(1100 * time.Millisecond)
					b.StartTimer()
				}
				w := httptest.NewRecorder()
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+s.Addr()+"/metrics", http.NoBody)
				require.NoError(b, err)
				r.RemoteAddr = "127.0.0.1:9"
				h.ServeHTTP(w, r)
				size = w.Body.Len()
				require.Equal(b, 250, strings.Count(w.Body.String(), "\nlinktrial_run_info{"))
			}
			b.ReportMetric(float64(size), "B/scrape")
		})
	}
}
