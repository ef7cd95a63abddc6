package wallclock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/wallclock"
)

// near reports whether a time is a duration away from the kernel's, within what a busy
// machine takes between two readings.
func near(t *testing.T, at time.Time, by time.Duration) {
	t.Helper()
	require.InDelta(t, by.Seconds(), at.Sub(time.Now().Round(0)).Seconds(), 60)
}

func TestOffset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.clock")
	none, err := wallclock.Of(path)
	require.NoError(t, err)
	require.Nil(t, none)
	near(t, none.Now(), 0)

	set, err := wallclock.NewOffset(path)
	require.NoError(t, err)
	c, err := wallclock.Of(path)
	require.NoError(t, err)
	near(t, c.Now(), 0)
	const year = 365 * 24 * time.Hour
	for _, x := range []struct{ step, sum time.Duration }{{time.Hour, time.Hour}, {-year, time.Hour - year}, {-time.Hour, -year}} {
		before, since := c.Read()
		set.Step(x.step)
		near(t, c.Now(), x.sum)
		wall, steady := c.Read()
		near(t, wall, x.sum)
		// The clock that is not stepped tells the step.
		require.InDelta(t, x.step.Seconds(), (wall.Sub(before) - (steady - since)).Seconds(), 0.1)
	}
	require.NoError(t, set.Close())

	// It outlives who set it, and a second one goes on from there.
	near(t, c.Now(), -year)
	set, err = wallclock.NewOffset(path)
	require.NoError(t, err)
	set.Step(year)
	near(t, c.Now(), 0)
	require.NoError(t, set.Close())
}

func TestNoOffset(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "clock")
	require.NoError(t, os.WriteFile(path, []byte("1"), 0o644))
	_, err := wallclock.Of(path)
	require.ErrorContains(t, err, "has 1 bytes, expected a regular file of 8")
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "link")))
	_, err = wallclock.Of(filepath.Join(dir, "link"))
	require.Error(t, err)
}

func TestSteady(t *testing.T) {
	a := wallclock.Steady()
	b := wallclock.Steady()
	require.LessOrEqual(t, a, b)
	require.Positive(t, a)
	require.Len(t, wallclock.Boot(), 36)
	require.Equal(t, wallclock.Boot(), wallclock.Boot())
}
