package store_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// windowJournals are the client's and the server's journal of one trial of two flows
// with 10 s each; at the server the second one begins 3.01 s after the first.
func windowJournals(run string, sheet *runsheet.Sheet, samples bool) (client, server *storetest.Journal) {
	client, server = storetest.NewJournal(run, radio.RoleClient), storetest.NewJournal(run, radio.RoleServer)
	client.Begin(sheet)
	server.Begin(sheet)
	tr := sheet.Trials[0]
	started := journal.AttemptStarted{Attempt: 1, Iteration: tr.Iteration, Treatment: tr.Treatment}
	ended := journal.AttemptEnded{Attempt: 1, Iteration: tr.Iteration, Treatment: tr.Treatment, Verdict: journal.Succeeded, Duration: 20 * time.Second}
	for flow, seconds := range []int{12, 9} {
		id := runsheet.TransferID(run, 0, 1, flow).String()
		started.Transfers = append(started.Transfers, id)
		result := contract.Result{SizeBytes: int64(100 * seconds), ElapsedNS: int64(seconds)*1e9 + 1, Digest: storetest.Digest}
		ended.Flows = append(ended.Flows, journal.FlowResult{Flow: flow, Treatment: tr.Treatment, Transfer: id, Verdict: journal.Succeeded, Result: &result})
		if samples {
			b := journal.Samples{Attempt: 1, Flow: flow, Side: "server"}
			for i := 1; i <= seconds; i++ {
				b.Samples = append(b.Samples, contract.Sample{ElapsedNS: int64(i) * 1e9, SentBytes: int64(100 * i)})
			}
			server.Add(journal.TypeSamples, b)
		}
	}
	for flow, id := range started.Transfers {
		server.Add(journal.TypeReceived, journal.Received{Treatment: tr.Treatment, Transfer: id, Result: ended.Flows[flow].Result})
	}
	client.Add(journal.TypeAttemptStarted, started)
	client.Add(journal.TypeAttemptEnded, ended)
	client.EndTrial(0, 1, journal.Succeeded)
	return client, server
}

func windowSheet() *runsheet.Sheet {
	sheet := storetest.Sheet(1)
	sheet.SampleInterval = time.Second
	f := sheet.Trials[0].Flows[0]
	f.Duration = 10 * time.Second
	sheet.Trials[0].Flows = []runsheet.Flow{f, f}
	return sheet
}

// TestCommonWindow: whichever journal is complete last, the value is stored, once,
// and outlives the samples.
func TestCommonWindow(t *testing.T) {
	s := storetest.Open(t)
	attempt := func(campaign string) report.Attempt {
		t.Helper()
		ds, err := s.Dataset(t.Context(), store.Scope{Campaign: campaign}, nil)
		require.NoError(t, err)
		values, err := s.Measured(t.Context(), []store.Scope{{Campaign: campaign}})
		require.NoError(t, err)
		a := ds.Runs[0].Trials[0].Attempts[0]
		require.Equal(t, a.Window, values[0].Dataset.Runs[0].Trials[0].Attempts[0].Window, "tables and exports")
		return a
	}
	want := &report.CommonWindow{Length: 10 * time.Second, Bytes: []int64{1000, 699}}
	sheet := windowSheet()
	for name, order := range map[string]func(client, server *storetest.Journal) []*storetest.Journal{
		"serverlast": func(c, s *storetest.Journal) []*storetest.Journal { return []*storetest.Journal{c, s} },
		"clientlast": func(c, s *storetest.Journal) []*storetest.Journal { return []*storetest.Journal{s, c} },
	} {
		run := storetest.AddRun(t, s, name, sheet)
		journals := order(windowJournals(run, sheet, true))
		deliver(t, s, journals[0])
		if name == "serverlast" {
			require.Nil(t, attempt(name).Window, "the server's journal is missing")
			require.True(t, new(attempt(name)).Estimated())
		}
		deliver(t, s, journals[1])
		a := attempt(name)
		require.Equal(t, want, a.Window)
		require.InDelta(t, 169.9, a.ThroughputBytesPerSecond(), 1e-9)
		require.False(t, a.Estimated())
	}

	run := storetest.AddRun(t, s, "without", sheet)
	client, server := windowJournals(run, sheet, false)
	deliver(t, s, server)
	deliver(t, s, client)
	a := attempt("without")
	require.Equal(t, journal.Invalid, a.Verdict)
	require.Equal(t, "window-unknown", a.Reason)
	require.Contains(t, a.Message, "too few samples")
	require.Zero(t, a.ThroughputBytesPerSecond())
}

// TestNoteWindows: attempts from before this metric get its value as long as their samples
// are there, and keep it afterwards; those without samples keep the estimate.
func TestNoteWindows(t *testing.T) {
	s := storetest.Open(t)
	sheet := windowSheet()
	var runs []string
	for _, name := range []string{"kept", "dropped"} {
		run := storetest.AddRun(t, s, name, sheet)
		client, server := windowJournals(run, sheet, true)
		deliver(t, s, client)
		deliver(t, s, server)
		runs = append(runs, run)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		require.NoError(t, s.ExecForTest(t.Context(), sql, args...))
	}
	exec(`UPDATE attempts SET common_window = NULL`)
	exec(`UPDATE sample_spans SET dropped_at = now() WHERE run_id = $1`, runs[1])
	exec(`DELETE FROM samples WHERE run_id = $1`, runs[1])
	require.NoError(t, s.NoteWindows(t.Context(), slog.New(slog.DiscardHandler)))
	exec(`DELETE FROM samples`)
	require.NoError(t, s.NoteWindows(t.Context(), slog.New(slog.DiscardHandler)))
	for name, bytes := range map[string][]int64{"kept": {1000, 699}, "dropped": nil} {
		ds, err := s.Dataset(t.Context(), store.Scope{Campaign: name}, nil)
		require.NoError(t, err)
		a := &ds.Runs[0].Trials[0].Attempts[0]
		require.Equal(t, bytes == nil, a.Estimated(), name)
		if bytes != nil {
			require.True(t, slices.Equal(bytes, a.Window.Bytes))
		}
		require.Positive(t, a.ThroughputBytesPerSecond(), name)
	}
}
