package agent

import (
	"context"

	"linktrial/agents/preflight"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
)

// runPreflight carries a preflight out and reports it. It holds the slot of runs:
// no run begins on this node before the queries have ended. Of the radio's sources it
// reads those at the named addresses.
func (a *agent) runPreflight(ctx context.Context, w *linktrialv1.PreflightRequest, named []string) {
	var r preflight.Report
	profile := a.cfg.readProfile(w.RadioProfile, "a preflight")
	if a.cfg.Place == journal.PlaceUnnamed {
		profile = nil // it may be another radio's
	}
	select {
	case a.slot <- struct{}{}:
		r = preflight.Run(ctx, preflight.Config{
			Node: a.cfg.Name, Device: a.cfg.Device, Address: a.cfg.RadioAddress, More: a.cfg.More, StateDir: a.cfg.StateDir, FloorBytes: a.cfg.FloorBytes,
			Drivers: a.runner, Clock: a.offset,
			Role: a.cfg.Role, Emulated: a.cfg.emulated(), Profile: profile, Telemetry: a.cfg.poller(profile, nil, named).Check,
		}, w)
		<-a.slot
	default:
		r = preflight.Busy(a.cfg.Name, w)
	}
	a.reportPreflight(ctx, w, &r)
}

func (a *agent) reportPreflight(ctx context.Context, w *linktrialv1.PreflightRequest, r *preflight.Report) {
	if ctx.Err() != nil {
		return
	}
	report := &linktrialv1.ReportPreflightRequest{Id: w.Id, Checks: r.Checks, Links: r.Links, Transfers: r.Transfers, TransferError: r.TransferError}
	if err := a.session.ReportPreflight(ctx, report); err != nil && ctx.Err() == nil {
		a.cfg.Logger.Error("preflight could not be reported", "preflight", w.Id, "error", err)
	}
}

// offset measures the orchestrator's clock now.
func (a *agent) offset(ctx context.Context) journal.ClockOffset {
	o := a.session.Offset(ctx, "preflight")
	if o.Unknown == "" {
		a.noteClock(o)
	}
	return o
}
