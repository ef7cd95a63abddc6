package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store/storetest"
)

// A mark wakes those who watch; one that is there already does not.
func TestRepeatedMarkChangesNothing(t *testing.T) {
	s := storetest.Open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "marks", sheet)
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	j.Start(sheet, 0, 1)
	j.End(sheet, 0, 1, journal.Succeeded)
	var records []ingest.Record
	for i, r := range j.Records {
		records = append(records, ingest.Record{Seq: int64(i + 1), JSON: r})
	}
	_, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), run, "client", records)
	require.NoError(t, err)

	// The loop of the engine does not run, so only marks wake watchers.
	e := newEngine(Config{Store: s})
	for _, x := range []struct {
		m     Mark
		wakes bool
	}{
		{Mark{Attempt: 1, Invalid: true, Reason: "a lorry", By: "ada"}, true},
		{Mark{Attempt: 1, Invalid: true, Reason: "a lorry", By: "bob"}, false},
		{Mark{Attempt: 1, Invalid: true, Reason: "two lorries"}, true},
		{Mark{Attempt: 1}, true},
	} {
		version, changed := e.Live.Of(run).Version, e.Live.Changed()
		require.NoError(t, e.MarkAttempt(t.Context(), run, x.m))
		woken := false
		select {
		case <-changed:
			woken = true
		default:
		}
		require.Equal(t, x.wakes, woken, "%+v", x.m)
		require.Equal(t, x.wakes, e.Live.Of(run).Version > version, "%+v", x.m)
	}
}
