package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/ingest"
	"linktrial/protocols/contract"
)

// The newest word of why a run waits is kept while nothing newer comes.
func TestWait(t *testing.T) {
	runs := New()
	wait := &ingest.Wait{Trial: 3, Fault: "path down"}
	runs.Stored(ingest.Delta{Run: "r", Wait: wait})
	runs.Stored(ingest.Delta{Run: "r", Structure: true})
	require.Equal(t, wait, runs.Of("r").Wait)
	over := &ingest.Wait{Trial: 3}
	runs.Stored(ingest.Delta{Run: "r", Wait: over})
	require.Equal(t, over, runs.Of("r").Wait)
	runs.Ended("r")
	require.Nil(t, runs.Of("r").Wait)
}

// What is delivered late of a run that has ended is dropped when the open runs
// are listed the next time.
func TestLateSamplesAreDropped(t *testing.T) {
	runs := New()
	for _, run := range []string{"open", "ended"} {
		runs.Stored(ingest.Delta{Run: run, Progress: []ingest.Progress{{Trial: 1, Bytes: 7}}, Fresh: []ingest.Samples{{Attempt: 1, Samples: make([]contract.Sample, 3)}}})
	}
	runs.SetOpen(map[string][]string{"open": nil})
	got, _ := runs.Samples("ended", 0)
	require.Empty(t, got)
	require.Nil(t, runs.Of("ended").Progress)
	got, _ = runs.Samples("open", 0)
	require.Len(t, got, 1)
	require.EqualValues(t, 7, runs.Of("open").Progress.Bytes)
}
