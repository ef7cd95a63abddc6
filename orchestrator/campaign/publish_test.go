package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/protocols/contract"
)

// What is delivered late of a run that has ended is dropped when the runs are
// reviewed the next time.
func TestPublishDropsLateSamples(t *testing.T) {
	e := newEngine(Config{})
	for _, run := range []string{"open", "ended"} {
		e.Stored(ingest.Delta{Run: run, Progress: []ingest.Progress{{Trial: 1, Bytes: 7}}, Fresh: []ingest.Samples{{Attempt: 1, Samples: make([]contract.Sample, 3)}}})
	}
	require.NoError(t, e.publish(t.Context(), &openRuns{}, []*run{{id: "open", state: Running, sheetInfo: &sheetInfo{}}}))
	for run, want := range map[string]int{"open": 1, "ended": 0} {
		got, _ := e.Live.Samples(run, 0)
		require.Len(t, got, want)
	}
	require.EqualValues(t, 7, e.Live.Of("open").Progress.Bytes)
	require.Nil(t, e.Live.Of("ended").Progress)
}

// Polls of nodes are answered when a node is to do something else, and not
// whenever a sample arrives or the runs are reviewed.
func TestPollsAreAnsweredOnlyForNewWork(t *testing.T) {
	e := newEngine(Config{})
	r := &run{id: "r", state: Preparing, sheetInfo: &sheetInfo{}, participants: []participant{{node: "a", role: radio.RoleClient}}}
	answered := func(what func()) bool {
		changed := e.Nodes.AssignmentsChanged("a")
		what()
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	publish := func() { require.NoError(t, e.publish(t.Context(), &openRuns{}, []*run{r})) }
	require.True(t, answered(publish), "a run is to be prepared")
	require.False(t, answered(publish), "nothing has changed")
	require.False(t, answered(func() { e.Stored(ingest.Delta{Run: "r", Progress: []ingest.Progress{{Bytes: 1}}}) }))
	require.False(t, answered(func() { e.tablesChanged("r") }))
	r.state = Running
	require.True(t, answered(publish), "the run may run")
	require.True(t, answered(func() { e.Nodes.SetPendingWork("a", "preflight") }))
	r.participants = nil
	require.True(t, answered(publish), "the node has nothing to do any more")
}
