package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hands are a node's clocks, moved by hand.
type hands struct {
	wall   time.Time
	steady time.Duration
}

func (h *hands) Read() (time.Time, time.Duration) { return h.wall, h.steady }

func (h *hands) pass(d time.Duration) { h.wall, h.steady = h.wall.Add(d), h.steady+d }

const year = 365 * 24 * time.Hour

// told is the records of a journal: type, time after the beginning, and of some the body.
func told(t *testing.T, j *File, begin time.Time) string {
	t.Helper()
	var out []string
	if err := j.Records(func(r Record) error {
		text := fmt.Sprintf("%s %s", r.Type, r.At.Sub(begin))
		switch r.Type {
		case TypeClockStepped, TypeAgentStopped, TypeClockOffset, TypeRunStarted, TypeRunResumed:
			text += " " + string(r.Body)
		}
		out = append(out, text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

func add(t *testing.T, j *File, typ Type, body any) {
	t.Helper()
	if _, err := j.Append(typ, body); err != nil {
		t.Fatal(err)
	}
}

// A step of the node's clock stands in the journal before the first record with a time
// of the clock as it is since; slewing and what two readings of clocks are apart do not.
func TestStepsOfTheClock(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := &hands{wall: begin, steady: time.Minute}
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, Options{Clock: h, Boot: "one"})
	add(t, j, TypeRunStarted, RunStarted{SheetHash: "x"})
	h.pass(time.Second)
	h.wall = h.wall.Add(900 * time.Microsecond)
	fill(t, j, 1)
	h.pass(time.Second)
	h.wall = h.wall.Add(-900*time.Microsecond - year)
	fill(t, j, 2)
	h.pass(10 * time.Second)
	h.wall = h.wall.Add(year + time.Hour)
	add(t, j, TypeClockOffset, ClockOffset{When: "after", Epoch: time.Duration(begin.UnixNano()) - time.Minute})
	if got, want := j.Time(h.steady), h.wall; !got.Equal(want) {
		t.Errorf("now is %s, expected %s", got, want)
	}
	want := `run-started 0s {"sheet_hash":"x","version":"","trials":0,"boot":"one","since_boot_ns":60000000000}
trial-ended 1.0009s
clock-stepped -8759h59m58s {"by_ns":-31536000000000000,"within_ns":1000000000}
trial-ended -8759h59m58s
trial-ended -8759h59m58s
clock-stepped 1h0m12s {"by_ns":31539600000000000,"within_ns":10000000000}
clock-offset 1h0m12s {"when":"after","offset_ns":-3600000000000,"error_ns":0}`
	if got := told(t, j, begin); got != want {
		t.Errorf("the journal has:\n%s\nexpected:\n%s", got, want)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	// The agent is started again after another step.
	h.pass(time.Minute)
	h.wall = h.wall.Add(-time.Hour)
	j = open(t, path, Options{Clock: h, Boot: "one"})
	if got, want := j.Time(h.steady), h.wall.Add(time.Hour); !got.Equal(want) {
		t.Errorf("by the clock before it is %s, expected %s", got, want)
	}
	add(t, j, TypeRunResumed, RunStarted{SheetHash: "x"})
	h.pass(time.Second)
	fill(t, j, 1)
	want += `
clock-stepped 1m12s {"by_ns":-3600000000000}
run-resumed 1m12s {"sheet_hash":"x","version":"","trials":0,"boot":"one","since_boot_ns":132000000000}
trial-ended 1m13s`
	if got := told(t, j, begin); got != want {
		t.Errorf("the journal has:\n%s\nexpected:\n%s", got, want)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	// After a start of the machine nobody knows.
	h.steady, h.wall = time.Second, h.wall.Add(3*time.Hour)
	j = open(t, path, Options{Clock: h, Boot: "two"})
	add(t, j, TypeRunResumed, RunStarted{SheetHash: "x"})
	h.pass(time.Second)
	h.wall = h.wall.Add(-time.Second)
	fill(t, j, 1)
	want += `
run-resumed 3h1m13s {"sheet_hash":"x","version":"","trials":0,"boot":"two","since_boot_ns":1000000000}
clock-stepped 3h1m13s {"by_ns":-1000000000,"within_ns":1000000000}
trial-ended 3h1m13s`
	if got := told(t, j, begin); got != want {
		t.Errorf("the journal has:\n%s\nexpected:\n%s", got, want)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// cutAfter cuts a journal after so many records.
func cutAfter(t *testing.T, path string, records int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	if err := os.WriteFile(path, bytes.Join(lines[:records], nil), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Wherever a crash cuts the journal, a step is in it once when the agent goes on.
func TestStepAfterACrash(t *testing.T) {
	for cut := 1; cut <= 4; cut++ {
		h := &hands{wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), steady: time.Hour}
		path := filepath.Join(t.TempDir(), "j")
		j := open(t, path, Options{Clock: h, Boot: "one"})
		add(t, j, TypeRunStarted, RunStarted{})
		fill(t, j, 1)
		h.wall = h.wall.Add(year)
		fill(t, j, 1) // the third record is the step
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		cutAfter(t, path, cut)
		j = open(t, path, Options{Clock: h, Boot: "one"})
		add(t, j, TypeRunResumed, RunStarted{})
		sum := time.Duration(0)
		if err := j.Records(func(r Record) error {
			var b ClockStepped
			if r.Type == TypeClockStepped {
				if err := json.Unmarshal(r.Body, &b); err != nil {
					return err
				}
				sum += b.By
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if sum != year {
			t.Errorf("cut after %d records: steps of %s, expected %s", cut, sum, year)
		}
		j.Close()
	}
}

// Times within a record are by the clock of its time, also where they were noted before
// the clock stepped.
func TestTimesWithinARecord(t *testing.T) {
	h := &hands{wall: time.Now().Round(0), steady: time.Hour}
	j := open(t, filepath.Join(t.TempDir(), "j"), Options{Clock: h, Boot: "one"})
	add(t, j, TypeRunStarted, RunStarted{})
	to := time.Now()
	h.wall = h.wall.Add(year)
	add(t, j, TypeAgentStopped, AgentStopped{From: to.Add(-time.Second), To: to})
	add(t, j, TypeRunResumed, RunStarted{Alive: to.Add(-time.Minute)})
	add(t, j, TypeControlCounted, ControlCounted{Since: to.Add(-time.Second), Until: to})
	for _, typ := range []Type{TypeAgentStopped, TypeControlCounted} {
		var b struct{ From, To, Since, Until time.Time }
		if err := j.Records(func(r Record) error {
			if r.Type != typ {
				return nil
			}
			return json.Unmarshal(r.Body, &b)
		}); err != nil {
			t.Fatal(err)
		}
		from, to := b.From, b.To
		if typ != TypeAgentStopped {
			from, to = b.Since, b.Until
		}
		if to.Sub(from) != time.Second || h.wall.Sub(to).Abs() > time.Minute {
			t.Errorf("%s from %s to %s, and its clock says %s", typ, from, to, h.wall)
		}
	}
	j.Close()
}
