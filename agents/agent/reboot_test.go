package agent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
)

// A node that is started again in the middle of a run with a clock that is a year off says
// so before anything else, so that the times after it are by the earlier clock. It does
// so once, and an agent's later start on the same kernel finds no other step.
func TestRebootWithAnotherClock(t *testing.T) {
	for name, by := range map[string]time.Duration{"a year ahead": year, "a year back": -year, "right": 0} {
		t.Run(name, func(t *testing.T) {
			clock, set := labClock(t)
			// The orchestrator's clock is the kernel's.
			compare := func(context.Context, string) journal.ClockOffset {
				wall, steady := clock.Read()
				return journal.ClockOffset{When: "resumed", Offset: time.Since(wall), Error: time.Second, Epoch: time.Duration(wall.UnixNano()) - steady}
			}
			path := filepath.Join(t.TempDir(), "j")
			boot := "one"
			start := func(kind journal.Type) *journal.File {
				j, err := journal.Open(path, journal.Identity{Run: "r", Node: "n", Role: radio.RoleClient}, journal.Options{ReserveBytes: -1, Clock: clock, Boot: boot})
				require.NoError(t, err)
				_, err = j.Append(kind, journal.RunStarted{})
				require.NoError(t, err)
				require.NoError(t, compareAfterReboot(t.Context(), j, compare))
				_, err = j.Append(journal.TypeTrialEnded, journal.TrialEnded{})
				require.NoError(t, err)
				return j
			}
			j := start(journal.TypeRunStarted)
			_, err := j.Append(journal.TypeClockOffset, compare(t.Context(), "before"))
			require.NoError(t, err)
			set.Step(time.Hour) // and the clock is not right when the node goes down
			_, err = j.Append(journal.TypeTrialEnded, journal.TrialEnded{})
			require.NoError(t, err)
			require.NoError(t, j.Close())

			boot = "two"
			set.Step(by)
			require.NoError(t, start(journal.TypeRunResumed).Close())
			j = start(journal.TypeRunResumed)
			defer j.Close()
			var types []journal.Type
			var stepped time.Duration
			var last time.Time
			require.NoError(t, j.Records(func(r journal.Record) error {
				types = append(types, r.Type)
				var b journal.ClockStepped
				if r.Type == journal.TypeClockStepped {
					require.NoError(t, json.Unmarshal(r.Body, &b))
					stepped += b.By
				}
				if r.Type == journal.TypeTrialEnded {
					at := r.At.Add(-stepped)
					require.WithinDuration(t, time.Now(), at, 5*time.Second)
					require.False(t, at.Before(last.Add(-time.Second)))
					last = at
				}
				return nil
			}))
			want := []journal.Type{journal.TypeRunStarted, journal.TypeTrialEnded, journal.TypeClockOffset, journal.TypeClockStepped, journal.TypeTrialEnded, journal.TypeRunResumed}
			if by != 0 {
				want = append(want, journal.TypeClockStepped)
			}
			want = append(want, journal.TypeClockOffset, journal.TypeTrialEnded, journal.TypeRunResumed, journal.TypeTrialEnded)
			require.Equal(t, want, types)
		})
	}
}

// A node without contact after its start goes on all the same, and is asked again after
// the next one.
func TestRebootWithoutContact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		open := func(boot string) *journal.File {
			j, err := journal.Open(path, journal.Identity{Run: "r", Node: "n", Role: radio.RoleClient}, journal.Options{ReserveBytes: -1, Clock: (*wallclock.Clock)(nil), Boot: boot})
			require.NoError(t, err)
			return j
		}
		j := open("one")
		_, err := j.Append(journal.TypeRunStarted, journal.RunStarted{})
		require.NoError(t, err)
		_, err = j.Append(journal.TypeClockOffset, journal.ClockOffset{When: "before", Offset: time.Minute})
		require.NoError(t, err)
		require.NoError(t, j.Close())
		j = open("two")
		defer j.Close()
		_, err = j.Append(journal.TypeRunResumed, journal.RunStarted{})
		require.NoError(t, err)
		began, asked := time.Now(), 0
		require.NoError(t, compareAfterReboot(t.Context(), j, func(context.Context, string) journal.ClockOffset {
			asked++
			return journal.ClockOffset{Unknown: "no control link"}
		}))
		require.Greater(t, asked, 10)
		require.Equal(t, rebootWait, time.Since(began))
		before, ok, err := offsetBefore(j.Records)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, time.Minute, before.Offset)
	})
}
