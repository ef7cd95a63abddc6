package store_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// probedSheet is one of five trials: a transfer with two probes beside it, and four
// of a probe alone.
func probedSheet() *runsheet.Sheet {
	s := storetest.Sheet(5)
	s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "voice", Label: "Voice", Protocol: "probe", Probe: true, DSCP: 46, Options: map[string]any{}, Port: 5003},
		runsheet.Treatment{Name: "sensor", Label: "Sensor", Protocol: "probe", Probe: true, Options: map[string]any{}, Port: 5004})
	probe := func(name string) runsheet.Flow {
		return runsheet.Flow{Treatment: name, From: radio.RoleClient, To: radio.RoleServer}
	}
	s.Trials[0].Probes = []runsheet.Flow{probe("voice"), probe("sensor")}
	for i := range s.Trials[1:] {
		t := &s.Trials[i+1]
		t.Treatment, t.Flows, t.Probes = "voice", nil, []runsheet.Flow{probe("voice")}
		t.Probes[0].Duration = time.Minute
	}
	return s
}

// probeMetrics are some that may be true, with every field.
func probeMetrics(rng *rand.Rand) *contract.ProbeMetrics {
	f := &contract.ProbeMetrics{
		Sent: 1000 + rng.Int64N(1e6), Unsent: rng.Int64N(100), Duplicated: rng.Int64N(50), Reordered: rng.Int64N(50), Strays: rng.Int64N(5),
		SentBytes: 1 << 40, ReceivedBytes: rng.Int64N(1 << 40), JitterMeanNS: rng.Int64N(1e6), JitterMaxNS: 1e6 + rng.Int64N(1e9),
		ClockStepNS: rng.Int64N(1e6), ProcessTimes: rng.IntN(2) == 0,
	}
	f.Lost = rng.Int64N(900)
	f.Received = f.Sent - f.Lost
	if f.Lost > 0 {
		f.LossBursts, f.LongestLossBurst = 1, f.Lost
	}
	d := &contract.Delays{MinNS: -rng.Int64N(1e12)}
	for at := d.MinNS; len(d.PercentilesNS) < contract.DelayPercentiles; at += rng.Int64N(1e9) {
		d.PercentilesNS = append(d.PercentilesNS, at)
	}
	d.P50NS, d.P95NS, d.P99NS, d.MaxNS = d.PercentilesNS[50], d.PercentilesNS[95], d.PercentilesNS[99], d.PercentilesNS[100]
	d.MeanNS = d.P50NS
	f.Delay = d
	return f
}

func identity(run string, trial, attempt, flow int) string {
	return runsheet.TransferID(run, trial, attempt, flow).String()
}

// attemptOf writes one attempt with these outcomes of its probes.
func attemptOf(j *storetest.Journal, sheet *runsheet.Sheet, trial, attempt int, v journal.Verdict, probes ...journal.FlowResult) {
	tr := sheet.Trials[trial]
	start := journal.AttemptStarted{Trial: trial, Attempt: attempt, Iteration: tr.Iteration, Treatment: tr.Treatment}
	end := journal.AttemptEnded{Trial: trial, Attempt: attempt, Iteration: tr.Iteration, Treatment: tr.Treatment, Verdict: v, Duration: time.Minute}
	for i := range tr.Flows {
		start.Transfers = append(start.Transfers, identity(j.Run, trial, attempt, i))
		end.Flows = append(end.Flows, journal.FlowResult{Flow: i, Treatment: tr.Treatment, Transfer: start.Transfers[i], Verdict: v,
			Result: &contract.Result{SizeBytes: 1000, ElapsedNS: 1e9, Digest: storetest.Digest}})
	}
	for i := range probes {
		p := &probes[i]
		p.Flow = len(tr.Flows) + i
		p.Treatment, p.Transfer = tr.Probes[i].Treatment, identity(j.Run, trial, attempt, p.Flow)
		start.Probes, end.Probes = append(start.Probes, p.Transfer), append(end.Probes, *p)
	}
	j.Add(journal.TypeAttemptStarted, start)
	for i := range probes {
		j.Add(journal.TypeConnected, journal.Connected{Trial: trial, Attempt: attempt, Flow: probes[i].Flow, ConnectNS: 7e6})
	}
	if len(end.Flows) > 0 {
		end.Radio = &radiocontrol.Report{Ideal: []time.Duration{time.Second}, CodedBound: []time.Duration{2 * time.Second}}
	}
	j.Add(journal.TypeAttemptEnded, end)
}

func measured(f *contract.ProbeMetrics) journal.FlowResult {
	return journal.FlowResult{Verdict: journal.Succeeded, Result: &contract.Result{SizeBytes: f.SentBytes, ElapsedNS: 3e9, Probe: f}}
}

// probedJournals are those of both ends. all are the values by trial and probe that
// the client reports; the server reports the same, but of trial 2 none and of trial
// 3 others.
func probedJournals(run string, sheet *runsheet.Sheet) (client, server *storetest.Journal, all map[[2]int]*contract.ProbeMetrics) {
	rng := rand.New(rand.NewPCG(1, 2))
	client, server = storetest.NewJournal(run, radio.RoleClient), storetest.NewJournal(run, radio.RoleServer)
	client.Begin(sheet)
	server.Begin(sheet)
	all = map[[2]int]*contract.ProbeMetrics{}
	for trial, n := range []int{2, 1, 1, 1} {
		var outcomes []journal.FlowResult
		for k := range n {
			all[[2]int{trial, k}] = probeMetrics(rng)
			outcomes = append(outcomes, measured(all[[2]int{trial, k}]))
		}
		attemptOf(client, sheet, trial, 1, journal.Succeeded, outcomes...)
		client.EndTrial(trial, 1, journal.Succeeded)
		if len(sheet.Trials[trial].Flows) > 0 {
			server.Received("one", trial, 1)
		}
		for k := range n {
			f := *all[[2]int{trial, k}]
			switch trial {
			case 2:
				continue
			case 3:
				f.Reordered++
			}
			at := len(sheet.Trials[trial].Flows) + k
			server.Add(journal.TypeReceived, journal.Received{Treatment: "voice", Transfer: identity(run, trial, 1, at),
				Result: &contract.Result{SizeBytes: f.ReceivedBytes, ElapsedNS: 2e9, Probe: &f}})
		}
	}
	// One that failed at first, and whose second attempt got no values.
	failed := journal.FlowResult{Verdict: journal.Failed, Reason: "reset", Message: "the server has ended"}
	attemptOf(client, sheet, 4, 1, journal.Failed, failed)
	attemptOf(client, sheet, 4, 2, journal.TimedOut, journal.FlowResult{Verdict: journal.TimedOut, Reason: "transfer-timeout"})
	client.EndTrial(4, 2, journal.TimedOut)
	return client, server, all
}

// TestProbes: what both journals say of probes is what is read, whichever comes first
// and however often, and what the server contradicts does not count.
func TestProbes(t *testing.T) {
	sheet := probedSheet()
	for _, clientFirst := range []bool{true, false} {
		url := storetest.URL(t)
		s, err := store.Open(t.Context(), url, nil)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		run := storetest.AddRun(t, s, "probes", sheet)
		client, server, want := probedJournals(run, sheet)
		first, second := client, server
		if !clientFirst {
			first, second = server, client
		}
		deliverInPieces(t, s, first)
		if clientFirst {
			ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "probes"}, nil)
			require.NoError(t, err)
			require.Equal(t, "unverified", ds.Runs[0].Trials[0].Attempts[0].Probes[0].Reason, "the server's journal has not arrived")
		}
		deliverInPieces(t, s, second)

		ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "probes"}, nil)
		require.NoError(t, err)
		values, err := s.Measured(t.Context(), []store.Scope{{Campaign: "probes"}})
		require.NoError(t, err)
		for _, r := range []*report.Run{&ds.Runs[0], &values[0].Dataset.Runs[0]} {
			sameProbes(t, r, want)
		}
		require.Equal(t, report.Summarize(ds), report.Summarize(&values[0].Dataset))

		_, err = connect(t, url).Exec(t.Context(), "UPDATE runs SET state = 'stopped', ended_at = now()")
		require.NoError(t, err)
		ds, err = s.Dataset(t.Context(), store.Scope{Campaign: "probes"}, nil)
		require.NoError(t, err)
		sameProbes(t, &ds.Runs[0], want) // nothing is waited for any more
	}
}

// TestProbesThatTheServersNodeContradicts: what the server's driver reports and its node has
// found to be false counts as no value, nor does a probe of which the server reports an error.
func TestProbesThatTheServersNodeContradicts(t *testing.T) {
	sheet := probedSheet()
	s, err := store.Open(t.Context(), storetest.URL(t), nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	run := storetest.AddRun(t, s, "false", sheet)
	client, server := storetest.NewJournal(run, radio.RoleClient), storetest.NewJournal(run, radio.RoleServer)
	client.Begin(sheet)
	server.Begin(sheet)
	f := probeMetrics(rand.New(rand.NewPCG(3, 4)))
	result := &contract.Result{SizeBytes: f.ReceivedBytes, ElapsedNS: 2e9, Probe: f}
	attemptOf(client, sheet, 1, 1, journal.Succeeded, measured(f))
	server.Add(journal.TypeReceived, journal.Received{Treatment: "voice", Transfer: identity(run, 1, 1, 0), Result: result, Reason: journal.ReasonMoreThanSent, Message: "7 of them arrived"})
	attemptOf(client, sheet, 2, 1, journal.Succeeded, measured(f))
	server.Add(journal.TypeReceived, journal.Received{Treatment: "voice", Transfer: identity(run, 2, 1, 0), Code: contract.CodeReset, Message: "no more"})
	attemptOf(client, sheet, 3, 1, journal.Succeeded, measured(f))
	server.Add(journal.TypeReceived, journal.Received{Treatment: "voice", Transfer: identity(run, 3, 1, 0), Code: contract.CodeReset, Message: "no more"})
	server.Add(journal.TypeReceived, journal.Received{Treatment: "voice", Transfer: identity(run, 3, 1, 0), Result: result})
	deliverInPieces(t, s, client)
	deliverInPieces(t, s, server)

	ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "false"}, nil)
	require.NoError(t, err)
	values, err := s.Measured(t.Context(), []store.Scope{{Campaign: "false"}})
	require.NoError(t, err)
	for _, r := range []*report.Run{&ds.Runs[0], &values[0].Dataset.Runs[0]} {
		for trial, want := range map[int][2]string{1: {journal.ReasonMoreThanSent, "7 of them arrived"}, 2: {journal.ReasonServerFailed, "the server reports reset: no more"}, 3: {}} {
			a := &r.Trials[trial].Attempts[0]
			require.Equal(t, want, [2]string{a.Reason, a.Message}, "trial %d", trial)
			require.Equal(t, want, [2]string{a.Probes[0].Reason, a.Probes[0].Message}, "trial %d", trial)
			require.Equal(t, want[0] == "", a.Valid(), "trial %d", trial)
		}
	}
}

// sameProbes holds a run against the values that its journals have.
func sameProbes(t *testing.T, r *report.Run, want map[[2]int]*contract.ProbeMetrics) {
	t.Helper()
	for at, f := range want {
		a := r.Trials[at[0]].Attempts[0]
		p := a.Probes[at[1]]
		require.Equal(t, f, p.Metrics, "trial %d, probe %d", at[0], at[1])
		require.Equal(t, 3*time.Second, p.Elapsed)
		require.Equal(t, 7*time.Millisecond, p.Connect)
		reason := map[int]string{2: "unverified", 3: "figures-differ"}[at[0]]
		require.Equal(t, reason, p.Reason, "trial %d", at[0])
		require.Equal(t, reason == "", p.Counts())
		switch {
		case at[0] == 0:
		case reason == "unverified" && r.State == "queued": // the server may still report it
			require.True(t, r.Waits(&a), "an attempt that is not verified yet, and not invalid: %s %s", a.Verdict, a.Reason)
		default: // the attempt is the probe
			require.Equal(t, p.Verdict, a.Verdict)
			require.Equal(t, reason, a.Reason)
		}
	}
	beside := r.Trials[0].Attempts[0]
	require.Equal(t, "voice", beside.Probes[0].Treatment)
	require.Equal(t, "sensor", beside.Probes[1].Treatment)
	require.True(t, beside.Valid(), "a transfer is no probe's affair")
	require.EqualValues(t, 1000, beside.SizeBytes, "and contains nothing of it")
	require.Zero(t, beside.Ideal, "which does not contain the probes' load")
	require.Zero(t, beside.CodedBound)
	last := r.Trials[4].Attempts
	require.Len(t, last, 2)
	require.Equal(t, report.Probe{Treatment: "voice", From: radio.RoleClient, To: radio.RoleServer, Verdict: journal.Failed, Reason: "reset", Message: "the server has ended", Connect: 7 * time.Millisecond}, last[0].Probes[0])
	require.Equal(t, journal.TimedOut, last[1].Probes[0].Verdict)
	require.Nil(t, last[1].Probes[0].Metrics)
	require.Equal(t, report.OneClock, r.ProbeClock, "emulated radios are on one machine")
}

// deliverInPieces delivers every record twice, some at a time.
func deliverInPieces(t *testing.T, s *store.Store, j *storetest.Journal) {
	t.Helper()
	in := ingest.New(ingest.Config{Store: s})
	for from := 0; from < len(j.Records); from += 2 {
		var records []ingest.Record
		for i := max(0, from-2); i < min(from+2, len(j.Records)); i++ {
			records = append(records, ingest.Record{Seq: int64(i + 1), JSON: j.Records[i]})
		}
		_, err := in.Deliver(t.Context(), j.Run, string(j.Role), records)
		require.NoError(t, err)
	}
}

// TestMarkedProbe: a person's mark takes the value of the attempt away, and that of
// its probes.
func TestMarkedProbe(t *testing.T) {
	s := storetest.Open(t)
	sheet := probedSheet()
	run := storetest.AddRun(t, s, "marked", sheet)
	client, server, _ := probedJournals(run, sheet)
	deliver(t, s, client)
	deliver(t, s, server)
	require.NoError(t, campaigndb.New(s).InsertMark(t.Context(), campaigndb.InsertMarkParams{ID: "a", RunID: run, Trial: 1, Attempt: 1, Invalid: true, Reason: "a truck", GivenBy: "somebody"}))
	ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "marked"}, nil)
	require.NoError(t, err)
	p := ds.Runs[0].Trials[1].Attempts[0].Probes[0]
	require.Equal(t, journal.Invalid, p.Verdict)
	require.Equal(t, "marked: a truck", p.Reason)
	require.False(t, p.Counts())
	require.NotNil(t, p.Metrics, "what was measured stays")
}

// TestProbeClocks: on real radios the clocks of both ends are those that were
// compared, before and after.
func TestProbeClocks(t *testing.T) {
	require.Equal(t, report.ProbeClock{Offset: -2 * time.Millisecond, Uncertainty: 6 * time.Millisecond}, probeClock(t, 0))
	// A step that was taken back before the second comparison: nobody knows on which side of
	// it a probe was.
	stepped := probeClock(t, time.Hour)
	require.InDelta(t, 30, stepped.Uncertainty.Minutes(), 1)
	require.InDelta(t, -30, stepped.Offset.Minutes(), 1)
}

// probeClock is the clock of a run's probes, during which the server's stepped and back.
func probeClock(t *testing.T, step time.Duration) report.ProbeClock {
	s := storetest.Open(t)
	sheet := probedSheet()
	run := storetest.AddRun(t, s, "clocks", sheet)
	client, server, _ := probedJournals(run, sheet)
	for _, j := range []*storetest.Journal{client, server} {
		for i, r := range j.Records {
			j.Records[i] = bytes.ReplaceAll(r, []byte(journal.PlaceEmulated), []byte("field"))
		}
	}
	if step != 0 {
		server.Step(step)
		server.Step(-step)
	}
	client.Add(journal.TypeClockOffset, journal.ClockOffset{When: "after", Offset: 6 * time.Millisecond, Error: time.Millisecond})
	server.Add(journal.TypeClockOffset, journal.ClockOffset{When: "after", Offset: 2 * time.Millisecond, Error: 3 * time.Millisecond})
	deliver(t, s, client)
	deliver(t, s, server)
	ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "clocks"}, nil)
	require.NoError(t, err)
	// The client's between 1 and 7 ms, the server's between -1 and 5.
	return ds.Runs[0].ProbeClock
}
