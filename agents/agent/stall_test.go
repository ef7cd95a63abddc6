package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/wallclock"
)

// A stall is a time between two looks at the clock that is longer than the bound; who
// asks from a moment within it gets it, and nobody gets it twice from its end.
func TestStallWatch(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	w := &stallWatch{last: 100 * time.Second}
	look := func(d time.Duration) { // after the look before
		at = at.Add(d)
		w.look(w.last+d, at)
	}
	since := func(at time.Time) []journal.AgentStopped {
		w.mu.Lock()
		w.last = wallclock.Steady() // Since looks itself
		w.mu.Unlock()
		s, _ := w.Since(at)
		return s
	}
	look(stallEvery)
	look(stallBound)
	require.Empty(t, since(at.Add(-time.Minute)))
	more := w.changed.Changed()
	w.last = 200 * time.Second
	from := at
	look(3 * time.Second)
	<-more
	want := []journal.AgentStopped{{From: from, To: from.Add(3 * time.Second)}}
	require.Equal(t, want, since(from))
	require.Equal(t, want, since(from.Add(2*time.Second)))
	require.Empty(t, since(want[0].To))
}
