package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
)

const year = 365 * 24 * time.Hour

// labClock is a node's clock in a lab, and what steps it.
func labClock(t *testing.T) (*wallclock.Clock, *wallclock.Offset) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clock")
	set, err := wallclock.NewOffset(path)
	require.NoError(t, err)
	c, err := wallclock.Of(path)
	require.NoError(t, err)
	return c, set
}

// A node in a lab has the clock that lies beside the radios' control socket; any other
// has the kernel's.
func TestClockOfALab(t *testing.T) {
	control := filepath.Join(t.TempDir(), "emulator.sock")
	set, err := wallclock.NewOffset(wallclock.Path(control, "server"))
	require.NoError(t, err)
	set.Step(year)
	for name, c := range map[string]struct {
		role    radio.Role
		control string
		ahead   time.Duration
	}{
		"stepped":      {radio.RoleServer, control, year},
		"another node": {radio.RoleClient, control, 0},
		"no lab":       {radio.RoleServer, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Name: "n", Role: c.role, StateDir: t.TempDir(), DriversDir: t.TempDir(), RadioControl: c.control}
			require.NoError(t, cfg.complete())
			require.InDelta(t, c.ahead.Hours(), time.Until(cfg.Clock.Now()).Hours(), 1)
		})
	}
}

// When a run was executed last is told by the clock of the record that has it, whatever
// the clock did meanwhile.
func TestAliveOfASteppedClock(t *testing.T) {
	clock, set := labClock(t)
	dir := t.TempDir()
	open := func(boot string) *journal.File {
		j, err := journal.Open(filepath.Join(dir, "j"), journal.Identity{Run: "r", Node: "n", Role: radio.RoleServer}, journal.Options{ReserveBytes: -1, Clock: clock, Boot: boot})
		require.NoError(t, err)
		return j
	}
	j := open("one")
	_, err := j.Append(journal.TypeRunStarted, journal.RunStarted{})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	noted := time.Unix(0, int64(wallclock.Steady()))
	set.Step(-year)

	j = open("one")
	require.True(t, aliveAt(noted.Add(time.Hour), "one", "one", j).IsZero(), "of the future")
	require.Equal(t, noted, aliveAt(noted, "", "one", j), "as an earlier version noted it")
	_, err = j.Append(journal.TypeRunResumed, journal.RunStarted{Alive: aliveAt(noted, "one", "one", j)})
	require.NoError(t, err)
	var at, alive []time.Time
	steps := 0
	require.NoError(t, j.Records(func(r journal.Record) error {
		var b journal.RunStarted
		if r.Type == journal.TypeClockStepped {
			steps++
			return nil
		}
		at = append(at, r.At)
		err := json.Unmarshal(r.Body, &b)
		alive = append(alive, b.Alive)
		return err
	}))
	require.Equal(t, 1, steps)
	require.Len(t, at, 2)
	require.InDelta(t, -year.Hours(), at[1].Sub(at[0]).Hours(), 1)
	require.InDelta(t, 0, at[1].Sub(alive[1]).Hours(), 1)
	require.NoError(t, j.Close())

	// After a start of the machine it is by the earlier clock.
	j = open("two")
	require.InDelta(t, 0, aliveAt(noted, "one", "two", j).Sub(at[1]).Hours(), 1)
	require.NoError(t, j.Close())
}

// Nodes of one machine agree on moments though a clock steps between them.
func TestMomentsBetweenNodes(t *testing.T) {
	now := time.Now()
	b, err := json.Marshal(sourceMessage{Flows: withTimes([]executor.FlowOutcome{{Ready: now, Exited: now.Add(3 * time.Second)}}, sharedTime)})
	require.NoError(t, err)
	var m sourceMessage
	require.NoError(t, json.Unmarshal(b, &m))
	require.Equal(t, 1970, m.Flows[0].Ready.Year(), "no time of day")
	got := withTimes(m.Flows, ownTime)[0]
	require.InDelta(t, 0, now.Sub(got.Ready).Seconds(), 0.5)
	require.Equal(t, 3*time.Second, m.Flows[0].Exited.Sub(m.Flows[0].Ready).Round(100*time.Millisecond))
	require.NotEqual(t, got.Ready, got.Ready.Round(0), "it has a monotonic reading")
	require.True(t, got.Connected.IsZero())
	require.NotNil(t, withTimes([]executor.FlowOutcome{}, sharedTime), "an empty list is no missing one")
}

// Runs that were stored are kept for a week by the orchestrator's time: a clock that is a
// year ahead takes nothing away.
func TestRunsAreKeptWhateverTheClock(t *testing.T) {
	clock, set := labClock(t)
	cfg := Config{Name: "n", Role: radio.RoleClient, StateDir: t.TempDir(), DriversDir: t.TempDir(), Clock: clock}
	require.NoError(t, cfg.complete())
	a := &agent{node: node{cfg: cfg}}
	orchestrator := func() time.Duration { // its clock less the one that never steps: it is right
		wall, steady := (*wallclock.Clock)(nil).Read()
		return time.Duration(wall.UnixNano()) - steady
	}
	for run, age := range map[string]time.Duration{"new": time.Hour, "old": 8 * 24 * time.Hour} {
		dir := filepath.Join(cfg.runsDir(), run)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		n := note{Run: run, Desired: desiredFinish, Taken: time.Now().Add(-age), Stored: time.Now().Add(-age)}
		require.NoError(t, n.write(dir))
	}
	left := func() (out []string) {
		notes, _, err := readNotes(cfg.runsDir())
		require.NoError(t, err)
		for _, n := range notes {
			out = append(out, n.Run)
		}
		return out
	}
	set.Step(year)
	a.pruneOld()
	require.Equal(t, []string{"old", "new"}, left(), "the orchestrator's time is not known")
	wall, steady := clock.Read()
	epoch := time.Duration(wall.UnixNano()) - steady
	a.noteClock(journal.ClockOffset{Offset: orchestrator() - epoch, Epoch: epoch})
	set.Step(-2 * year)
	a.pruneOld()
	require.Equal(t, []string{"new"}, left())
}

// A clock that is ahead takes each new certificate for one that is to be renewed: there
// is one renewal a day.
func TestRenewalWithAClockThatIsAhead(t *testing.T) {
	var r renewal
	due := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.False(t, r.due(due.Add(-time.Second), 0, due))
	require.True(t, r.due(due.Add(year), time.Hour, due))
	r.renewed(time.Hour)
	require.False(t, r.due(due.Add(year), 2*time.Hour, due.Add(20*24*time.Hour)))
	require.True(t, r.due(due.Add(year), 25*time.Hour, due.Add(20*24*time.Hour)))
}

// A node whose clock is ahead refuses an assignment and says why; the run waits, and is
// accepted when the clock is right.
func TestAssignmentWithAClockThatIsAhead(t *testing.T) {
	clock, set := labClock(t)
	a := victim(t)
	a.cfg.Clock = clock
	sheet := sheetOf(t, 1, runsheet.ControlOutOfBand, 0)
	as := seal(signingKey, runFor(a, sheet))
	as.Sheet = sheet
	set.Step(year)
	_, err := a.openAssignment(as, testChallenge, false)
	require.ErrorContains(t, err, "the assignment expired at ")
	require.ErrorContains(t, err, "set the clock if it is wrong")
	require.True(t, a.applyAssignments(t.Context(), session.Answer{Assignments: []*linktrialv1.SignedAssignment{as}, Challenge: testChallenge}))
	require.Len(t, a.refused, 1)
	require.Empty(t, a.refused[0].run, "the fault would stop the run")
	set.Step(-year)
	_, err = a.openAssignment(as, testChallenge, false)
	require.NoError(t, err)
}
