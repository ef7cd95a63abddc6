package preflight

import (
	"context"
	"fmt"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/checkkind"
)

var clockCheck = nodeCheck{checkkind.Clock, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	return one(judgeClock(c.Clock(ctx)))
}, false}

func judgeClock(o journal.ClockOffset) *linktrialv1.Check {
	check := &linktrialv1.Check{State: ok, Expected: fmt.Sprintf("within %g s of the orchestrator", checkkind.MaxClockOffset.Seconds()),
		Meaning: "times of different nodes in one chart do not fit together, and flows of several nodes do not start together; values of single transfers are not touched",
		Remedy:  "run a time service on both machines ('timedatectl set-ntp true', or chrony against the orchestrator's laptop or a GPS receiver)"}
	if o.Unknown != "" {
		check.State, check.Found = unknown, "could not be measured: "+o.Unknown
		check.Remedy = "see that the node's control link carries more than single packets, and start the preflight again"
		return check
	}
	// The offset is the orchestrator's clock minus the node's.
	word, by := "behind", o.Offset
	if by < 0 {
		word, by = "ahead of", -by
	}
	check.Found = fmt.Sprintf("%s %s the orchestrator, to within %s", formatDuration(by), word, formatDuration(o.Error))
	if by > 24*time.Hour { // a battery of the machine's clock that ran out
		check.Found = fmt.Sprintf("%.0f days %s the orchestrator", by.Hours()/24, word)
		check.Meaning = "its certificates look expired or not yet valid, and nothing that it records can be put beside others"
	}
	switch {
	case by > checkkind.MaxClockOffset:
		check.State = failed
	case by+o.Error > checkkind.MaxClockOffset:
		check.State = warning
		check.Remedy = "the control link is slow, so the clock cannot be read better: compare it by hand, or see the link"
	}
	return check
}
