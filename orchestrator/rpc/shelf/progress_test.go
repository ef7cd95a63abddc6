package shelf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	now := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	p := NewProgress(func() time.Time { return now })
	require.Zero(t, p.Now().Done, "it is not known how much there is")
	p.Plan(200)
	p.Begin(100, "first")
	p.Tell(0.5)
	now = now.Add(2 * time.Second)
	m := p.Now()
	require.Equal(t, "first", m.Doing)
	require.InDelta(t, 0.25, m.Done, 1e-12)
	require.Zero(t, m.SecondsLeft, "too early to estimate")
	p.Begin(60, "second")
	now = now.Add(8 * time.Second)
	m = p.Now()
	require.InDelta(t, 0.5, m.Done, 1e-12)
	require.InDelta(t, 10, m.SecondsLeft, 1e-9, "half is done in 10 s")
	p.Tell(7)
	require.InDelta(t, 0.8, p.Now().Done, 1e-12, "a part has no more than all of itself")
	p.Begin(1000, "more than was planned")
	p.Tell(1)
	require.InDelta(t, 1, p.Now().Done, 1e-12)
	require.Zero(t, p.Now().SecondsLeft)
}
