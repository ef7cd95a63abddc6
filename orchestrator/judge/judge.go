package judge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/protocols/contract"
)

// leader is the role whose agent leads through the sheet.
const leader = radio.RoleClient

// mostRepeats bounds how often one trial is repeated for marks.
const mostRepeats = 10

// maxWhy bounds the text of a rule or an outage within a mark's reason, in bytes.
const maxWhy = 900

// Clock is the orchestrator's less a node's, within a bound.
type Clock struct{ Offset, Bound time.Duration }

// Attempt is an ended attempt, as its leading node recorded it.
type Attempt struct {
	Trial, Number int
	Started       time.Time // by the leading node's clock
	Lasted        time.Duration
	Clock         Clock // the leading node's
	Succeeded     bool
	Reason        string // of a failure
	Last          bool   // no other attempt of its trial follows by itself
	Marks         int64  // that attempts of its trial have from here
	// Final is of a success that the server does not confirm: it has recorded what comes
	// after the attempt, so no confirmation follows.
	Final   bool
	Control *journal.ControlTraffic // that the leading node counted; nil: it could not
	Carried Carried                 // of plans with a rule about it, and where nodes count what passes their radios
	// Readings and Moves are those during the attempt; of plans with rules about them.
	Readings []report.Telemetry
	Moves    []Move
}

// Carried is what the flows of an attempt reported, as far as it is known.
type Carried struct {
	Delivered map[int]int64            // bytes by flow
	Probed    int64                    // bytes of probes
	Samples   map[int]*contract.Sample // the last one of each flow that succeeded
}

// Move is how far a node was at most, during an attempt, from where it was when its part
// in the run began.
type Move struct {
	Role   radio.Role
	Metres float64
}

func (a *Attempt) from() time.Time { return a.Started.Add(a.Clock.Offset) }
func (a *Attempt) to() time.Time   { return a.from().Add(a.Lasted) }

// meets reports whether an attempt may overlap a time of the orchestrator's clock; to:
// zero where it has not ended.
func (a *Attempt) meets(from, to time.Time) bool {
	return !from.After(a.to().Add(a.Clock.Bound)) && (to.IsZero() || !to.Before(a.from().Add(-a.Clock.Bound)))
}

// trialIn is the attempt's trial in a sheet; nil: it has none.
func (a *Attempt) trialIn(sheet *runsheet.Sheet) *runsheet.Trial {
	if a.Trial >= len(sheet.Trials) {
		return nil
	}
	return &sheet.Trials[a.Trial]
}

// ended is what an attempt had ended with.
func (a *Attempt) ended() string { return "ended with " + cmp.Or(a.Reason, "a result") }

// Mark is that an attempt says nothing of its protocol.
type Mark struct {
	Trial, Attempt int
	Reason         string
	Repeat         bool // its trial is to be repeated
}

// mark marks an attempt; again: another one of its trial would do better.
func (a *Attempt) mark(why, had string, again bool) *Mark {
	return &Mark{a.Trial, a.Number, fmt.Sprintf("%s (the attempt had %s)", clipText(why, maxWhy), had), again && a.Last && a.Marks < mostRepeats}
}

func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.0") + " UTC" }
