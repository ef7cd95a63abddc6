package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
)

var driversCheck = nodeCheck{checkkind.Drivers, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	return c.checkDrivers(ctx, w.Treatments)
}, false}

// checkDrivers checks those that a plan needs, or all of the node.
func (c Config) checkDrivers(ctx context.Context, wanted []string) []*linktrialv1.Check {
	one := func(state linktrialv1.CheckState, found, remedy string) *linktrialv1.Check {
		expected := "every driver here can run"
		if len(wanted) > 0 {
			expected = "can run " + strings.Join(wanted, ", ")
		}
		return &linktrialv1.Check{State: state, Found: found, Expected: expected,
			Meaning: "a plan's trials of that protocol cannot run on this node", Remedy: remedy}
	}
	states, err := c.Drivers.List(ctx)
	if err != nil {
		return []*linktrialv1.Check{one(unknown, "could not be found out: "+err.Error(), "see that the agent's folder of drivers is there (--drivers)")}
	}
	var can, cannot, without []string
	there := map[string]bool{}
	for _, s := range states {
		there[s.Driver.Name] = true
		if len(wanted) > 0 && !slices.Contains(wanted, s.Driver.Name) {
			continue
		}
		switch {
		case s.Runs():
			can = append(can, strings.TrimSpace(s.Driver.Name+" "+s.Driver.Version))
		case len(wanted) == 0 && s.Manifest != nil && s.Manifest.External != "":
			without = append(without, fmt.Sprintf("%s would need %s", s.Driver.Name, s.Manifest.External))
		default:
			cannot = append(cannot, s.Driver.Name+": "+s.Driver.Unsupported)
		}
	}
	var missing []string
	for _, w := range wanted {
		if !there[w] {
			missing = append(missing, w)
		}
	}
	var out []*linktrialv1.Check
	if len(missing) > 0 {
		out = append(out, one(failed, "not here: "+strings.Join(missing, ", "), "install the driver on the node, in the agent's folder of drivers, and start the agent again"))
	}
	if len(cannot) > 0 {
		state := warning // it may not be needed
		if len(wanted) > 0 {
			state = failed
		}
		out = append(out, one(state, strings.Join(cannot, "; "), "give the node what the driver asks for, or leave the protocol out of the plan"))
	}
	switch {
	case len(out) > 0:
	case len(can) == 0:
		out = append(out, one(failed, "no driver", "install drivers on the node, in the agent's folder of drivers, and start the agent again"))
	default:
		out = append(out, one(ok, strings.Join(append([]string{strings.Join(can, ", ")}, without...), "; "), ""))
	}
	return out
}
