package campaign

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store/storetest"
)

// A mark wakes those who watch; one that holds already does not.
func TestMarkThatHolds(t *testing.T) {
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

	// Without its loop, nothing but marks wakes anybody.
	e := &Engine{cfg: Config{Store: s, Now: time.Now}, log: slog.New(slog.DiscardHandler), kick: make(chan struct{}, 1), versions: map[string]uint64{}}
	for _, x := range []struct {
		m     Mark
		wakes bool
	}{
		{Mark{Attempt: 1, Invalid: true, Reason: "a lorry", By: "ada"}, true},
		{Mark{Attempt: 1, Invalid: true, Reason: "a lorry", By: "bob"}, false},
		{Mark{Attempt: 1, Invalid: true, Reason: "two lorries"}, true},
		{Mark{Attempt: 1}, true},
	} {
		version, changed := e.Live(run).Version, e.Changed()
		require.NoError(t, e.MarkAttempt(t.Context(), run, x.m))
		woken := false
		select {
		case <-changed:
			woken = true
		default:
		}
		require.Equal(t, x.wakes, woken, "%+v", x.m)
		require.Equal(t, x.wakes, e.Live(run).Version > version, "%+v", x.m)
	}
}
