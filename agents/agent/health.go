package agent

import (
	"context"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/nodesensor"
)

// clockEvery is how often the orchestrator's clock is measured outside of runs.
// A quartz that is off by 50 ppm drifts by 3 ms in that time.
const clockEvery = time.Minute

// clockAgain is how soon after a measurement that failed.
const clockAgain = 5 * time.Second

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

// pruneOld removes runs that were stored long ago by the orchestrator's time, once a
// start: this node's clock may be wrong by any time.
func (a *agent) pruneOld() {
	now, known := a.orchestratorTime()
	if !known || a.pruned {
		return
	}
	a.pruned = true
	notes, _, err := readNotes(a.cfg.runsDir())
	if err == nil {
		err = prune(a.cfg.runsDir(), notes, now)
	}
	if err != nil {
		a.cfg.Logger.Warn("runs that were stored long ago could not be removed", "error", err)
	}
}

// addStatus adds battery, telemetry, faults and clock to a poll.
func (a *agent) addStatus(r *linktrialv1.PollRequest) {
	if b, ok := nodesensor.ReadBattery(nodesensor.PowerSupplies); ok {
		r.Battery, r.Discharging = &b.Charge, b.Discharging
	}
	a.addTelemetry(r)
	a.addFaults(r)
	a.addInterfaces(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.clock.at.IsZero() {
		// The clock may have stepped since it was measured.
		wall, steady := a.cfg.Clock.Read()
		offset := a.clock.Offset + a.clock.Epoch - (time.Duration(wall.UnixNano()) - steady)
		r.ClockOffsetNs, r.ClockErrorNs = offset.Nanoseconds(), a.clock.Error.Nanoseconds()
	}
}

// addTelemetry adds the newest readings to a poll. While calls are restricted
// they are left out.
func (a *agent) addTelemetry(r *linktrialv1.PollRequest) {
	if !a.session.Gate().Unrestricted() {
		return
	}
	for _, s := range a.radio.current().States() {
		t := &linktrialv1.TelemetryState{Source: s.Source, Kind: string(s.Kind), Error: s.Error}
		if !s.At.IsZero() {
			t.AgeSeconds = time.Since(s.At).Seconds()
		}
		for _, v := range s.Values {
			t.Values = append(t.Values, &linktrialv1.TelemetryReading{Name: v.Name, Value: v.Value, Unit: v.Unit, Counter: v.Counter})
		}
		if t.Error != "" || len(t.Values) > 0 {
			r.Telemetry = append(r.Telemetry, t)
		}
	}
}
