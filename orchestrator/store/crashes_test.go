package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// An attempt that failed while the driver of its listener had crashed has this as its
// reason, wherever results are read; one at another time, of another treatment, or
// beside an end that is no crash has what the client saw.
func TestCrashes(t *testing.T) {
	const year = 365 * 24 * time.Hour
	listener := func(treatment string, crashed bool, transfers ...string) journal.Listener {
		return journal.Listener{Treatment: treatment, Code: "internal", Message: "signal: segmentation fault", Crashed: crashed, Transfers: transfers}
	}
	up := func(j *storetest.Journal) { j.Add(journal.TypeListenerReady, listener("one", false)) }
	for name, c := range map[string]struct {
		server  func(j *storetest.Journal) // after 10 s of the run; the attempt begins there and takes 1.2 s
		crashed bool
	}{
		"nothing": {func(*storetest.Journal) {}, false},
		"in the attempt": {func(j *storetest.Journal) {
			j.Pass(500 * time.Millisecond)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Pass(time.Second)
			up(j)
		}, true},
		"in the attempt, and the listener stays down": {func(j *storetest.Journal) { j.Add(journal.TypeListenerFailed, listener("one", true)) }, true},
		"before, and the listener is down until the attempt": {func(j *storetest.Journal) {
			j.Pass(-5 * time.Second)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			j.Pass(5500 * time.Millisecond)
			up(j)
		}, true},
		"before": {func(j *storetest.Journal) {
			j.Pass(-5 * time.Second)
			j.Add(journal.TypeListenerFailed, listener("one", true))
			up(j)
		}, false},
		"afterwards": {func(j *storetest.Journal) {
			j.Pass(4 * time.Second)
			j.Add(journal.TypeListenerFailed, listener("one", true))
		}, false},
		"another treatment's":     {func(j *storetest.Journal) { j.Add(journal.TypeListenerFailed, listener("two", true)) }, false},
		"an end that is no crash": {func(j *storetest.Journal) { j.Add(journal.TypeListenerFailed, listener("one", false)) }, false},
		"by a clock that stepped": {func(j *storetest.Journal) {
			j.Pass(500 * time.Millisecond)
			j.Step(year)
			j.Add(journal.TypeListenerFailed, listener("one", true))
		}, true},
		// Whatever the clocks say.
		"with its transfer": {func(j *storetest.Journal) {
			j.Pass(time.Hour)
			j.Add(journal.TypeListenerFailed, listener("one", true, runsheet.TransferID(j.Run, 0, 1, 0).String()))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Open(t)
			sheet := storetest.Sheet(2)
			run := storetest.AddRun(t, s, "crashes", sheet)
			server := storetest.NewJournal(run, radio.RoleServer)
			server.Begin(sheet)
			server.Listen(sheet)
			server.Pass(10 * time.Second)
			c.server(server)
			client := storetest.NewJournal(run, radio.RoleClient)
			client.Begin(sheet)
			client.Pass(10 * time.Second)
			client.Start(sheet, 0, 1)
			client.End(sheet, 0, 1, journal.TimedOut)
			client.EndTrial(0, 1, journal.TimedOut)
			deliver(t, s, client)
			deliver(t, s, server)

			whole, _, err := s.Run(t.Context(), run)
			require.NoError(t, err)
			ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "crashes"}, nil)
			require.NoError(t, err)
			values, err := s.Measured(t.Context(), []store.Scope{{Campaign: "crashes"}})
			require.NoError(t, err)
			for _, r := range []*report.Run{whole, &ds.Runs[0], &values[0].Dataset.Runs[0]} {
				trial := r.Trials[0]
				a := trial.Attempts[0]
				if !c.crashed {
					require.Equal(t, journal.TimedOut, trial.Verdict)
					require.Equal(t, journal.TimedOut, a.Verdict)
					require.Equal(t, "reset", a.Reason)
					continue
				}
				require.Equal(t, journal.Failed, trial.Verdict)
				require.Equal(t, journal.Failed, a.Verdict)
				require.Equal(t, journal.ReasonCrashed, a.Reason)
				require.Contains(t, a.Message, "the listener of one at the server crashed: signal: segmentation fault; the client's journal says: timed-out (reset): the peer went away")
			}
		})
	}
}
