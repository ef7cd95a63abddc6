package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/ingest"
	"linktrial/protocols/contract"
)

// Who reads in time misses nothing, who does not misses the oldest, and what
// is kept is bounded.
func TestFresh(t *testing.T) {
	e := &Engine{fresh: map[string]*fresh{}, versions: map[string]uint64{}}
	batch := func(attempt int) ingest.Samples {
		return ingest.Samples{Attempt: attempt, Samples: make([]contract.Sample, 100)}
	}
	got, next := e.Fresh("r", 0)
	require.Empty(t, got)
	e.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{batch(1), batch(2)}})
	got, next = e.Fresh("r", next)
	require.Len(t, got, 2)
	got, next = e.Fresh("r", next)
	require.Empty(t, got)
	e.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{batch(3)}})
	got, next = e.Fresh("r", next)
	require.Len(t, got, 1)
	require.Equal(t, 3, got[0].Attempt)

	for n := range 1000 {
		e.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{batch(10 + n)}})
	}
	got, next = e.Fresh("r", next)
	require.Len(t, got, freshMax/100)
	require.Equal(t, 1009, got[len(got)-1].Attempt)
	require.LessOrEqual(t, e.fresh["r"].samples, freshMax)
	got, _ = e.Fresh("r", next)
	require.Empty(t, got)

	got, _ = e.Fresh("r", next+5000)
	require.Len(t, got, freshMax/100, "a number of an engine that was there before")

	e.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{{Attempt: 1, Samples: make([]contract.Sample, 2*freshMax)}}})
	got, _ = e.Fresh("r", next)
	require.Len(t, got, 1, "one that is larger than what is kept")
}

// What comes late of a run that has ended is let go with the next look at the runs.
func TestLateSamplesAreLetGo(t *testing.T) {
	e := &Engine{versions: map[string]uint64{}, nodes: map[string]*node{},
		progress: map[string]map[int]ingest.Progress{}, facts: map[string]*facts{"open": {}}}
	for _, run := range []string{"open", "ended"} {
		e.Stored(ingest.Delta{Run: run, Progress: []ingest.Progress{{Trial: 1, Bytes: 7}}, Fresh: []ingest.Samples{{Attempt: 1, Samples: make([]contract.Sample, 3)}}})
	}
	require.NoError(t, e.publish(t.Context(), &view{}, []*run{{id: "open", state: Running}}))
	require.Len(t, e.fresh, 1)
	require.Len(t, e.progress, 1)
	got, _ := e.Fresh("open", 0)
	require.Len(t, got, 1)
	require.EqualValues(t, 7, e.progress["open"][0].Bytes)
}
