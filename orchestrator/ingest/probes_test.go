package ingest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// TestProbesThatAreRefused: what contradicts itself is kept as refused, leaves no
// probe behind, and keeps nothing waiting that follows.
func TestProbesThatAreRefused(t *testing.T) {
	sheet := storetest.Sheet(2)
	id := func(run string) string { return runsheet.TransferID(run, 0, 1, 0).String() }
	start := func(j *storetest.Journal) {
		j.Add(journal.TypeAttemptStarted, journal.AttemptStarted{Attempt: 1, Iteration: 1, Treatment: "one", Probes: []string{id(j.Run)}})
	}
	end := func(j *storetest.Journal, number int, r *contract.Result) {
		j.Add(journal.TypeAttemptEnded, journal.AttemptEnded{Attempt: 1, Iteration: 1, Treatment: "one", Verdict: journal.Succeeded, Duration: time.Second,
			Probes: []journal.FlowResult{{Flow: number, Treatment: "one", Transfer: id(j.Run), Verdict: journal.Succeeded, Result: r}}})
	}
	values := func() *contract.Result { return &contract.Result{ElapsedNS: 1e9, Probe: &contract.ProbeMetrics{}} }
	for name, c := range map[string]struct {
		role  radio.Role
		write func(*storetest.Journal)
		want  string
	}{
		"no such probe": {radio.RoleClient, func(j *storetest.Journal) { start(j); end(j, 1, values()) }, "attempt 1 of trial 0 has no probe 1"},
		"a transfer's result": {radio.RoleClient, func(j *storetest.Journal) {
			start(j)
			end(j, 0, &contract.Result{ElapsedNS: 1, Digest: storetest.Digest})
		}, "or probe 0 that of a transfer"},
		"success without": {radio.RoleClient, func(j *storetest.Journal) { start(j); end(j, 0, nil) }, "succeeded without a result"},
		"an identity in words": {radio.RoleClient, func(j *storetest.Journal) {
			j.Add(journal.TypeAttemptStarted, journal.AttemptStarted{Attempt: 1, Iteration: 1, Treatment: "one", Probes: []string{"voice"}})
		}, "voice"},
		"neither flow nor probe": {radio.RoleClient, func(j *storetest.Journal) {
			j.Add(journal.TypeAttemptStarted, journal.AttemptStarted{Attempt: 1, Iteration: 1, Treatment: "one"})
		}, "0 transfers and 0 probes"},
		"metrics of nobody": {radio.RoleServer, func(j *storetest.Journal) {
			j.Add(journal.TypeReceived, journal.Received{Treatment: "one", Result: values()})
		}, "a probe without its identity"},
		"metrics of a client": {radio.RoleClient, func(j *storetest.Journal) {
			j.Add(journal.TypeReceived, journal.Received{Treatment: "one", Transfer: id(j.Run), Result: values()})
		}, "only a server may write it"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := open(t)
			run := storetest.AddRun(t, s, "refprobe", sheet)
			j := storetest.NewJournal(run, c.role)
			j.Begin(sheet)
			c.write(j)
			committed, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), run, string(c.role), batch(j, 1, len(j.Records)))
			require.NoError(t, err)
			require.EqualValues(t, len(j.Records), committed, "what follows is not kept waiting")
			after := tables(t, url)
			require.Contains(t, after["journal"], "refused")
			require.Contains(t, after["journal"], strings.ReplaceAll(c.want, `"`, `\"`))
			require.NotContains(t, after["probes"], "succeeded")
			require.Empty(t, after["probe_receptions"])
		})
	}
}
