package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRevisionFollowsFromContent(t *testing.T) {
	a := Assignment{Run: "r-1", SheetHash: "h", DesiredState: DesirePrepare}
	b := a
	b.DesiredState = DesireRun
	require.Equal(t, newAssignments([]Assignment{a}).revision, newAssignments([]Assignment{a}).revision)
	require.NotEqual(t, newAssignments([]Assignment{a}).revision, newAssignments([]Assignment{b}).revision)
	require.NotEqual(t, noAssignments.revision, newAssignments([]Assignment{a}).revision)
	require.Positive(t, noAssignments.revision)
}

// Of thousands of nodes, a change wakes the polls of those that it concerns alone.
func TestChangeWakesItsNodes(t *testing.T) {
	r := New(Config{})
	changed := map[string]<-chan struct{}{}
	for _, name := range []string{"a", "b", "c"} {
		changed[name] = r.AssignmentsChanged(name)
	}
	woken := func() (out []string) {
		for _, name := range []string{"a", "b", "c"} {
			select {
			case <-changed[name]:
				out = append(out, name)
				changed[name] = r.AssignmentsChanged(name)
			default:
			}
		}
		return out
	}
	work := func(nodes ...string) Work {
		w := Work{Assignments: map[string][]Assignment{}}
		for _, n := range nodes {
			w.Assignments[n] = []Assignment{{Run: "r-1", SheetHash: "h", DesiredState: DesirePrepare}}
		}
		return w
	}
	r.Assign(work("a", "b"))
	require.Equal(t, []string{"a", "b"}, woken())
	r.Assign(work("a", "b"))
	require.Empty(t, woken(), "nothing has changed")
	r.Assign(work("a", "c"))
	require.Equal(t, []string{"b", "c"}, woken())
	r.SetPendingWork("c", "preflight-1")
	require.Equal(t, []string{"c"}, woken())
	r.board.wake("a") // as a registration does
	require.Equal(t, []string{"a"}, woken())
	r.Assign(Work{})
	require.Equal(t, []string{"a", "c"}, woken())
}
