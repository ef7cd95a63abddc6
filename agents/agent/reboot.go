package agent

import (
	"context"
	"encoding/json"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/wallclock"
)

// A node whose kernel was started again may have another time of day: the battery of its
// clock is empty, or no time service has set it yet. The clock that nobody steps has begun
// anew, so within the node nothing tells by how much. The orchestrator does: its clock was
// compared before, and is compared again before the run goes on.

// rebootWait is how long the run waits for the orchestrator then. Without an answer its
// times are taken as they are.
const rebootWait = 15 * time.Second

// offsetBefore is the orchestrator's clock less the node's as it was before the kernel was
// started again; false: it was not started again, it was compared since, or never before.
func offsetBefore(records func(func(journal.Record) error) error) (before journal.ClockOffset, ok bool, err error) {
	boot, again, known := "", false, false
	err = records(func(r journal.Record) error {
		switch r.Type {
		case journal.TypeRunStarted, journal.TypeRunResumed:
			var b journal.RunStarted
			if err := json.Unmarshal(r.Body, &b); err != nil {
				return err
			}
			again = again || boot != "" && b.Boot != "" && b.Boot != boot
			boot = b.Boot
		case journal.TypeClockStepped:
			var b journal.ClockStepped
			if err := json.Unmarshal(r.Body, &b); err != nil {
				return err
			}
			if !again {
				before.Offset -= b.By
			}
		case journal.TypeClockOffset:
			var b journal.ClockOffset
			if err := json.Unmarshal(r.Body, &b); err != nil {
				return err
			}
			if b.Unknown == "" {
				before, known, again = b, true, false
			}
		}
		return nil
	})
	return before, again && known, err
}

// compareAfterReboot records by how much the node's clock has moved while its kernel was
// started again, if it was. compare compares it with the orchestrator's.
func compareAfterReboot(ctx context.Context, j *journal.File, compare func(ctx context.Context, when string) journal.ClockOffset) error {
	before, ok, err := offsetBefore(j.Records)
	if err != nil || !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rebootWait)
	defer cancel()
	now := compare(ctx, "resumed")
	for now.Unknown != "" {
		if !backoff.Sleep(ctx, time.Second) {
			return nil
		}
		now = compare(ctx, "resumed")
	}
	if by := before.Offset - now.Offset; by.Abs() > before.Error+now.Error+wallclock.LeastStep {
		if _, err := j.Append(journal.TypeClockStepped, journal.ClockStepped{By: by, Reboot: true}); err != nil {
			return err
		}
	}
	_, err = j.Append(journal.TypeClockOffset, now)
	return err
}
