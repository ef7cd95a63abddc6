package agent

import (
	"context"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/nodesensor"
	"linktrial/internal/wallclock"
)

// clockEvery is how often the orchestrator's clock is measured outside of runs.
// A quartz that is off by 50 ppm drifts by 3 ms in that time.
const clockEvery = time.Minute

// clockAgain is how soon after a measurement that failed.
const clockAgain = 5 * time.Second

// measured is a measurement of the clock, with the moment it was made.
type measured struct {
	journal.ClockOffset
	at time.Time // zero: there is none
}

// watchClock measures the orchestrator's clock from time to time until ctx
// ends, but never while a run restricts calls.
func (a *agent) watchClock(ctx context.Context) {
	t := time.NewTimer(time.Second) // the node registers first
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		next := clockAgain
		if a.session.Gate().Unrestricted() {
			if o := a.session.Offset(ctx, "between runs"); o.Unknown == "" {
				a.noteClock(o)
				a.pruneOld()
				next = clockEvery
			}
		}
		t.Reset(next)
	}
}

func (a *agent) noteClock(o journal.ClockOffset) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock = measured{ClockOffset: o, at: time.Now()}
}

// orchestratorTime is the orchestrator's time of day, whatever this node's clock says;
// false: it was not measured.
func (a *agent) orchestratorTime() (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Unix(0, int64(wallclock.Steady()+a.clock.Offset+a.clock.Epoch)).UTC(), !a.clock.at.IsZero()
}

// addStatus adds battery, telemetry, faults and clock to a poll.
func (a *agent) addStatus(r *linktrialv1.PollRequest) {
	if b, ok := nodesensor.ReadBattery(nodesensor.PowerSupplies); ok {
		r.Battery, r.Discharging = &b.Charge, b.Discharging
	}
	a.addTelemetry(r)
	a.addFaults(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.clock.at.IsZero() {
		// The clock may have stepped since it was measured.
		wall, steady := a.cfg.Clock.Read()
		offset := a.clock.Offset + a.clock.Epoch - (time.Duration(wall.UnixNano()) - steady)
		r.ClockOffsetNs, r.ClockErrorNs = offset.Nanoseconds(), a.clock.Error.Nanoseconds()
	}
}
