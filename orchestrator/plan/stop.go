package plan

import (
	"fmt"
	"slices"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/internal/yamldoc"
)

// leastCompared is how many treatments a comparison takes.
const leastCompared = 2

// stopRule is a rule to stop by as the plan or a group states it. Its looks follow from the
// iterations of each group that it is for.
type stopRule struct {
	at           yamldoc.Value
	keys         yamldoc.Mapping
	first, every int
	alpha        float64 // as a share
	spending     stats.Spending
}

// readStop reads a rule to stop by; nil: there is none, or it has a mistake.
func readStop(v yamldoc.Value) *stopRule {
	if !v.Present() {
		return nil
	}
	m := stopKeys.Read(v)
	r := &stopRule{at: v, keys: m.Mapping, first: m.Int("first"), every: m.Int("every"), spending: stats.Spending(m.Word("spending"))}
	percent := defaultAlpha
	if stated, _ := number(m.Field("alpha"), "%", true, leastAlpha, mostAlpha); stated != nil {
		percent = *stated
	}
	r.alpha = percent / 100
	for _, k := range stopKeys.Keys {
		if f := m.Field(k.Name); (k.Required || f.Present()) && !f.OK() {
			return nil
		}
	}
	return r
}

// placeStop gives a cell its rule to stop by: the group's own, or the plan's, over the
// iterations of the cell.
func (ps *parser) placeStop(c *Cell, group yamldoc.Mapping, iterations yamldoc.Value) {
	rule := ps.rule
	if f := group.Field("stop"); c.Group != "" && f.Present() {
		rule = readStop(f)
	}
	if rule == nil || !iterations.OK() {
		return // its own problem is noted
	}
	of := ofGroup(c)
	switch n := c.Iterations; {
	case n > stats.MaxBlocks:
		rule.at.Problem("a rule to stop by is for at most %d iterations%s, found %d", stats.MaxBlocks, of, n)
	case rule.first > n:
		rule.keys.Field("first").Problem("the first look is after iteration %d, expected at most %d, the last one%s", rule.first, n, of)
	case rule.looks(n) > stats.MaxLooks:
		rule.keys.Field("every").Problem("makes %d looks at %d iterations%s, expected at most %d looks", rule.looks(n), n, of, stats.MaxLooks)
	default:
		c.Stop = rule.over(n)
		ps.stopAt[c.Stop] = rule
	}
}

// looks is how many looks there are at so many iterations.
func (r *stopRule) looks(iterations int) int { return (iterations-r.first+r.every-1)/r.every + 1 }

// over is the rule at so many iterations, of which the last is always a look.
func (r *stopRule) over(iterations int) *runsheet.Stop {
	s := &runsheet.Stop{Alpha: r.alpha, Spending: r.spending}
	for look := r.first; look < iterations; look += r.every {
		s.Looks = append(s.Looks, look)
	}
	s.Looks = append(s.Looks, iterations)
	return s
}

// needs is the least number of iterations, above a stated one, at which a look can decide one of so
// many comparisons; 0: there is none with so many looks as a rule may have.
func (r *stopRule) needs(above, comparisons int) int {
	for n := above + 1; n <= stats.MaxBlocks && r.looks(n) <= stats.MaxLooks; n++ {
		if r.over(n).Sequential().FirstDecisive(comparisons) > 0 {
			return n
		}
	}
	return 0
}

// compared is how many treatments a rule to stop by compares: those with trials of their own that
// have flows.
func (c *Cell) compared() (n int) {
	for _, t := range c.Treatments {
		if t.Missing == "" && !t.Probe {
			n++
		}
	}
	return n
}

// anyTimed reports whether a time bounds flows of the cell's trials, those of mixes among them.
func (c *Cell) anyTimed() bool {
	bounded := func(f FlowSpec) bool { return f.Duration > 0 }
	return c.timed() || slices.ContainsFunc(c.Mixes, func(m Mix) bool {
		return m.Missing == "" && slices.ContainsFunc(m.Flows, bounded)
	})
}

// checkStops notes rules to stop by that cells cannot follow, and says where a first look can
// decide nothing: each once.
func (ps *parser) checkStops() {
	checked := map[*runsheet.Stop]bool{}
	for i := range ps.plan.Cells {
		c := &ps.plan.Cells[i]
		// The runs of a group share a rule; sweeps may give some of them flows that a time bounds.
		if c.Stop == nil || !ps.checkStop(c) || checked[c.Stop] {
			continue
		}
		checked[c.Stop] = true
		if first := c.Stop.Sequential().FirstDecisive(pairsOf(c.compared())); first > c.Stop.Looks[0] {
			ps.plan.Notes = append(ps.plan.Notes, fmt.Sprintf("The rule to stop by%s can decide nothing after iteration %d: the first look that can is after iteration %d.",
				ofGroup(c), c.Stop.Looks[0], first))
		}
	}
}

// checkStop reports whether a cell can follow its rule.
func (ps *parser) checkStop(c *Cell) bool {
	rule := ps.stopAt[c.Stop]
	n := c.compared()
	pairs := pairsOf(n)
	switch {
	case n < leastCompared || n > runsheet.MaxCompared:
		rule.at.Problem("a rule to stop by compares %d to %d treatments that are not missing and are no probes; a run%s has %d", leastCompared, runsheet.MaxCompared, ofGroup(c), n)
	case c.anyTimed():
		rule.at.Problem("a rule to stop by compares times to delivery; flows%s are bounded by a time and have none", ofGroup(c))
	case c.Stop.Sequential().FirstDecisive(pairs) == 0:
		more := "no number of iterations is enough with these looks"
		if need := rule.needs(c.Iterations, pairs); need > 0 {
			more = fmt.Sprintf("at least %d iterations are needed", need)
		}
		rule.at.Problem("with %d iterations%s no look can decide anything between %d treatments, compared pair by pair: %s", c.Iterations, ofGroup(c), n, more)
	default:
		return true
	}
	return false
}

// pairsOf is how many pairs there are of so many treatments.
func pairsOf(n int) int { return n * (n - 1) / 2 }

func ofGroup(c *Cell) string {
	if c.Group == "" {
		return ""
	}
	return " of group " + c.Group
}
