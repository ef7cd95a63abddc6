package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/ingest"
	"linktrial/protocols/contract"
)

// A reader that keeps up misses nothing, a slow one misses the oldest, and what
// is kept is bounded.
func TestRecentSamples(t *testing.T) {
	runs := New()
	batch := func(attempt int) ingest.Samples {
		return ingest.Samples{Attempt: attempt, Samples: make([]contract.Sample, 100)}
	}
	got, next := runs.Samples("r", 0)
	require.Empty(t, got)
	runs.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{batch(1), batch(2)}})
	got, next = runs.Samples("r", next)
	require.Len(t, got, 2)
	got, next = runs.Samples("r", next)
	require.Empty(t, got)
	runs.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{batch(3)}})
	got, next = runs.Samples("r", next)
	require.Len(t, got, 1)
	require.Equal(t, 3, got[0].Attempt)

	for n := range 1000 {
		runs.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{batch(10 + n)}})
	}
	got, next = runs.Samples("r", next)
	require.Len(t, got, maxSamples/100)
	require.Equal(t, 1009, got[len(got)-1].Attempt)
	require.LessOrEqual(t, runs.runs["r"].samples.samples, maxSamples)
	got, _ = runs.Samples("r", next)
	require.Empty(t, got)

	got, _ = runs.Samples("r", next+5000)
	require.Len(t, got, maxSamples/100, "a number of an engine that was there before")

	runs.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{{Attempt: 1, Samples: make([]contract.Sample, 2*maxSamples)}}})
	got, _ = runs.Samples("r", next)
	require.Len(t, got, 1, "one that is larger than what is kept")
}
