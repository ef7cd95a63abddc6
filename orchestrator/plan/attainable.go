package plan

import (
	"fmt"
	"slices"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/internal/yamldoc"
)

// canBeMet notes why no results of a run can pass what is required of it; it reports
// whether some can.
func (r *requirement) canBeMet(c *Cell, all []runsheet.Requirement) bool {
	m := &r.made
	switch metric := r.keys.Field(string(m.Metric)); m.Metric {
	case runsheet.MetricIdeal, runsheet.MetricCodedBound:
		if why := c.boundUnknown(all); why != "" {
			metric.Problem("is not known: %s", why)
			return false
		}
	case runsheet.MetricRatioTo:
		if c.Stop != nil {
			metric.Problem("has no interval in a run with a rule to stop by: which treatment delivers sooner than another is what the rule finds")
			return false
		}
	case runsheet.MetricDelivered:
		longest := time.Duration(c.Limits.Attempts) * (c.Limits.Connect + c.Limits.Transfer)
		if c.timed() {
			metric.Problem("the flows of a trial end after a time, whether or not anything was delivered")
			return false
		}
		if m.By > longest {
			r.bounds.Field("by").Problem("%s is beyond the limits of a trial: connect and transfer of all attempts take at most %s, and nothing is delivered later", m.By, longest)
			return false
		}
	}
	return r.canBeShown(c)
}

// timed reports whether times bound the flows of a treatment's trial.
func (c *Cell) timed() bool {
	return slices.ContainsFunc(c.Flows, func(f FlowSpec) bool { return f.Duration > 0 || f.OnMean > 0 })
}

// boundUnknown is why treatments have no share of Ideal and of the coded bound in a run;
// empty: they have.
func (c *Cell) boundUnknown(all []runsheet.Requirement) string {
	switch {
	case c.Radio.Emulation == nil:
		return "radio " + c.Radio.Name + " is not emulated"
	case perTrial(c.Flows) != 1 || c.timed():
		return "Ideal and the coded bound are of one transfer of a size, and a trial has several flows or one that ends after a time"
	case slices.ContainsFunc(all, func(m runsheet.Requirement) bool { return len(c.ProbesOf(m.Treatment)) > 0 }):
		return "Ideal and the coded bound do not contain the load of probes, and some run beside the transfers"
	}
	return ""
}

// canBeShown notes that even the best results of a run's iterations leave it undecided:
// its interval would not be on the right side of the bound, or there would be none.
func (r *requirement) canBeShown(c *Cell) bool {
	var what string
	var at yamldoc.Value
	var shown func(n int) bool
	switch m := &r.made; m.Metric {
	case runsheet.MetricDelivered:
		at, what = r.bounds.Field("at_least"), "not even where every payload is delivered"
		shown = func(n int) bool { return stats.Wilson(n, n, runsheet.RequiredLevel).Low >= *m.AtLeast }
	case runsheet.MetricFailures:
		at, what = r.bounds.Field("at_most"), "not even where no trial fails"
		shown = func(n int) bool { return stats.Wilson(0, n, runsheet.RequiredLevel).High <= *m.AtMost }
	case runsheet.MetricRatioTo:
		at, what = r.keys.Field(string(m.Metric)), "the signed-rank test decides nothing of so few pairs"
		shown = func(n int) bool {
			return stats.SignedRankShift(make([]float64, n), runsheet.RequiredLevel).Interval.Defined()
		}
	default:
		at, what = r.keys.Field(string(m.Metric)), "one trial has no interval"
		shown = func(n int) bool { return n > 1 }
	}
	if shown(c.Iterations) {
		return true
	}
	need := c.Iterations + 1
	for need <= MaxIterations && !shown(need) {
		need++
	}
	if need > MaxIterations {
		at.Problem("cannot be shown by any number of iterations: the interval at 95 %% of a share does not reach the bound")
		return false
	}
	at.Problem("cannot be shown by %s, %s: %d are needed", plural(c.Iterations), what, need)
	return false
}

func plural(iterations int) string {
	if iterations == 1 {
		return "1 iteration"
	}
	return fmt.Sprintf("%d iterations", iterations)
}
