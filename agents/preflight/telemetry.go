package preflight

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"linktrial/agents/telemetry"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/telemetrysource"
)

var telemetryCheck = nodeCheck{checkkind.Telemetry, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	var states []telemetry.State
	if c.Telemetry != nil {
		states = c.Telemetry(ctx)
	}
	return judgeTelemetry(states)
}, true}

// judgeTelemetry judges what the sources reported just now.
func judgeTelemetry(states []telemetry.State) []*linktrialv1.Check {
	words := func() *linktrialv1.Check {
		return &linktrialv1.Check{Expected: "every source of the radio's profile answers",
			Meaning: "nothing of it is recorded beside the trials; they run all the same"}
	}
	if len(states) == 0 {
		c := words()
		c.State, c.Found = notChecked, "the radio's profile names nothing that could be read"
		return []*linktrialv1.Check{c}
	}
	var out []*linktrialv1.Check
	for _, s := range states {
		c := words()
		switch {
		case s.Error != "" && remedyOf(s.Kind) == "": // nothing is wrong with a node that has none
			c.State, c.Found = notChecked, s.Source+": "+s.Error
		case s.Error != "":
			c.State, c.Found, c.Remedy = warning, s.Source+": "+s.Error, remedyOf(s.Kind)
		default:
			var values []string
			for _, v := range s.Values {
				values = append(values, strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Name, decimal(v.Value), v.Unit)))
			}
			c.State, c.Found = ok, s.Source+": "+strings.Join(values, ", ")
		}
		out = append(out, c)
	}
	return out
}

// remedyOf is what to do where a source does not answer; empty: nothing is wrong.
func remedyOf(k telemetrysource.Kind) string {
	if d := telemetrysource.Of(k); d != nil {
		return d.Remedy
	}
	return "install the same version of Linktrial on this node and on the orchestrator"
}

// decimal writes a value with up to four decimals, and without an exponent.
func decimal(v float64) string {
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 4, 64), "0"), ".")
}
