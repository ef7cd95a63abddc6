package preflight

import (
	"context"
	"fmt"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/nodesensor"
)

var batteryCheck = nodeCheck{checkkind.Battery, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	b, there := nodesensor.ReadBattery(nodesensor.PowerSupplies)
	return one(judgeBattery(b, there))
}, false}

func judgeBattery(b nodesensor.Battery, there bool) *linktrialv1.Check {
	check := &linktrialv1.Check{State: ok, Expected: fmt.Sprintf("on mains, or at least %.0f %%", 100*checkkind.EnoughCharge),
		Meaning: "the node may go off in the middle of a run", Remedy: "connect the laptop to a supply, or change its battery"}
	if !there {
		check.State, check.Found = notChecked, "the node has no battery that reports its charge"
		return check
	}
	state := "not discharging"
	if b.Discharging {
		state = "discharging"
	}
	check.Found = fmt.Sprintf("%.0f %%, %s", 100*b.Charge, state)
	switch {
	case !b.Discharging:
	case b.Charge < checkkind.LowCharge:
		check.State = failed
	case b.Charge < checkkind.EnoughCharge:
		check.State = warning
	}
	return check
}
