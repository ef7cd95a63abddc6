package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store/storetest"
)

// The offset of a node's clock is that of its newest run, also where the clock was a year
// ahead in an earlier one.
func TestLatestClockOffset(t *testing.T) {
	s := storetest.Open(t)
	sheet := storetest.Sheet(1)
	const year = 365 * 24 * time.Hour
	for _, campaign := range []string{"earlier", "later"} {
		storetest.AddRun(t, s, campaign, sheet)
	}
	offset := func(run string, ahead time.Duration) time.Duration {
		j := storetest.NewJournal(run, radio.RoleServer)
		j.Pass(ahead)
		j.Begin(sheet)
		j.Add(journal.TypeClockOffset, journal.ClockOffset{When: "after", Offset: -ahead})
		deliver(t, s, j)
		rows, err := rpcdb.New(s).LatestClockOffsets(t.Context())
		require.NoError(t, err)
		require.Len(t, rows, 1)
		return time.Duration(rows[0].OffsetNs)
	}
	require.Equal(t, -year, offset("earlier-1", year))
	require.Zero(t, offset("later-1", 0))
}
