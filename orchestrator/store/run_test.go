package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// sweptSheet has a mix, and parameters set by a sweep.
func sweptSheet() *runsheet.Sheet {
	s := storetest.Sheet(2)
	s.Mixes = []runsheet.Mix{{Name: "both", Label: "Both, together"}}
	s.Cell.Settings = []runsheet.Setting{{Axis: "loss", Parameter: "channel.loss", Value: "0.1", Label: "0.1"}}
	return s
}

func runHeads(t *testing.T, s *store.Store, campaigns ...string) []store.RunHeadsRow {
	t.Helper()
	rows, err := s.RunHeads(t.Context(), store.RunHeadsParams{Campaigns: campaigns})
	require.NoError(t, err)
	return rows
}

func TestRunKeepsLabelsAndSweep(t *testing.T) {
	s := storetest.Open(t)
	storetest.AddRun(t, s, "aaaa", storetest.Sheet(2))
	storetest.AddRun(t, s, "bbbb", sweptSheet())
	rows := runHeads(t, s, "aaaa", "bbbb")
	require.Len(t, rows, 2)
	require.Equal(t, []string{"One", "Two"}, rows[0].TreatmentLabels)
	require.False(t, rows[0].Swept)
	require.Equal(t, []string{"One", "Two", "Both, together"}, rows[1].TreatmentLabels)
	require.True(t, rows[1].Swept)
}
