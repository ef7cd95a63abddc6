package terminal

import (
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/unit"
)

// Count returns a number of things, such as "1 problem" or "2 problems".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Moment is [unit.Moment] of a time as the API has it.
func Moment(t *timestamppb.Timestamp) string { return unit.Moment(t.AsTime()) }

// ParseTime parses a date with a time: in RFC 3339, or without a zone in UTC, with or
// without the word, as [Moment] prints it.
func ParseTime(text string) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, true
	}
	text = strings.TrimSuffix(text, " UTC")
	for _, form := range []string{time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// TimeOr is [Moment], or none where t is nil.
func TimeOr(t *timestamppb.Timestamp, none string) string {
	if t == nil {
		return none
	}
	return Moment(t)
}

// ForPeople formats a duration in seconds, rounded, in the unit that fits it.
func ForPeople(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.0f s", math.Max(1, seconds))
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", math.Round(seconds/5)*5)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// The words are those of the pages (web/src/lib/states.ts).
var stateWords = map[linktrialv1.RunState]string{
	linktrialv1.RunState_RUN_STATE_QUEUED:     "queued",
	linktrialv1.RunState_RUN_STATE_WAITING:    "waiting for the nodes to be moved",
	linktrialv1.RunState_RUN_STATE_PREPARING:  "preparing",
	linktrialv1.RunState_RUN_STATE_RUNNING:    "running",
	linktrialv1.RunState_RUN_STATE_COLLECTING: "collecting journals",
	linktrialv1.RunState_RUN_STATE_COMPLETED:  "completed",
	linktrialv1.RunState_RUN_STATE_ABORTED:    "aborted",
	linktrialv1.RunState_RUN_STATE_STOPPED:    "stopped",
}

// StateWord returns the word for the state of a run.
func StateWord(s linktrialv1.RunState) string {
	if w, ok := stateWords[s]; ok {
		return w
	}
	return s.String()
}

// RunWord returns the word for the state of a run as lists have it: with an abort, which
// with in-band control each node learns of in its window, with a pause, which begins at a
// trial's end, and in virtual time, where journals come when all guests have ended.
func RunWord(r *linktrialv1.Run) string {
	begun := r.State == linktrialv1.RunState_RUN_STATE_RUNNING || r.State == linktrialv1.RunState_RUN_STATE_PREPARING
	switch {
	case r.Aborting && !Over(r.State):
		return "aborting"
	case r.Virtual && !Over(r.State) && r.GuestsEnded:
		return "storing"
	case r.Virtual && !Over(r.State):
		return "running in virtual time"
	case begun && r.Pausing:
		return "pausing"
	case begun && r.Paused:
		return "paused"
	}
	return StateWord(r.State)
}

// Over reports whether the run has ended.
func Over(s linktrialv1.RunState) bool {
	switch s {
	case linktrialv1.RunState_RUN_STATE_COMPLETED, linktrialv1.RunState_RUN_STATE_ABORTED, linktrialv1.RunState_RUN_STATE_STOPPED:
		return true
	}
	return false
}

// Offset is how far the orchestrator's clock is ahead of a node's: to the microsecond where
// that can matter to a delay, and in seconds and minutes where somebody has to set a clock.
func Offset(seconds float64) string {
	switch by := math.Abs(seconds); {
	case by < 1:
		return fmt.Sprintf("%+.3f ms", seconds*1e3)
	case by < 60:
		return fmt.Sprintf("%+.3f s", seconds)
	}
	sign, by := "+", time.Duration(math.Abs(seconds)*1e9).Round(time.Second)
	if seconds < 0 {
		sign = "-"
	}
	return sign + by.String()
}
