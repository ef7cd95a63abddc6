package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
)

// Polls of nodes are answered when there is something else to do, and not
// whenever a sample comes or the runs are looked at.
func TestPollsAreNotWokenForNothing(t *testing.T) {
	e := &Engine{cfg: Config{Now: time.Now}, kick: make(chan struct{}, 1),
		versions: map[string]uint64{}, progress: map[string]map[int]ingest.Progress{}, nodes: map[string]*node{}, errands: map[string]int64{},
		facts: map[string]*facts{"r": {}}}
	r := &run{id: "r", state: Preparing, parts: []part{{node: "a", role: radio.RoleClient}}}
	woken := func(what func()) bool {
		told := e.told.Changed()
		what()
		select {
		case <-told:
			return true
		default:
			return false
		}
	}
	look := func() { require.NoError(t, e.publish(t.Context(), &view{}, []*run{r})) }
	require.True(t, woken(look), "a run is to be prepared")
	require.False(t, woken(look), "nothing has changed")
	require.False(t, woken(func() { e.Stored(ingest.Delta{Run: "r", Progress: []ingest.Progress{{Bytes: 1}}}) }))
	require.False(t, woken(func() { e.touch("r") }))
	r.state = Running
	require.True(t, woken(look), "the run may run")
	require.True(t, woken(func() { e.SetErrand("a", "look") }))
	r.parts = nil
	require.True(t, woken(look), "the node has nothing to do any more")
}
