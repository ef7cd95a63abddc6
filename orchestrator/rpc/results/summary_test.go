package results

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
)

// Curves of many trials are thinned evenly, to their end.
func TestThinned(t *testing.T) {
	steps := make([]report.DeliveryStep, 1001)
	for i := range steps {
		steps[i].Delivered = i + 1
	}
	require.Len(t, thinned(steps[:250], 250), 250)
	got := thinned(steps, 250)
	require.Len(t, got, 250)
	require.Equal(t, 1001, got[249].Delivered)
	for i, last := 0, 0; i < len(got); i++ {
		require.InDelta(t, 4, got[i].Delivered-last, 1)
		last = got[i].Delivered
	}
}
