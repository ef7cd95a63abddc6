package stats

import (
	"fmt"
	"math"
	"slices"
)

// FamilyComparison is one comparison of a family: the pairs of two treatments.
type FamilyComparison struct {
	Reference, Value string
	Blocks           []Block
}

// FamilyLook is a comparison at its last look.
type FamilyLook struct {
	Look
	Level float64 // at which the comparison was judged there: its part of the family's Alpha
}

// Family judges several comparisons at the looks up to a number of completed iterations, so
// that with a probability of at least 1 − Alpha no comparison without a difference is decided.
// Decided is what stops ([Look.Stops]). It names the treatments that are beaten, in the order
// in which they were, because a decided comparison found them worse; they need no more trials,
// and their comparisons have no more looks.
//
// At each look, each comparison that is not decided is judged at Alpha over the number of those
// comparisons, and again wherever that number falls (Holm 1979; of group-sequential tests,
// Maurer and Bretz 2013). This needs tests of which one at a higher level refuses wherever
// one at a lower level does. Therefore what a look leaves over is lost here, and not carried
// on to the next one as in [Sequential.Evaluate]: each look then spends more at a higher
// level, of fewer assignments of signs that no look has refused, and its boundary cannot be
// smaller.
func (s Sequential) Family(comparisons []FamilyComparison, higherIsBetter bool, completed int) ([]FamilyLook, []string, error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	judges := make([]func(parts, look int) FamilyLook, len(comparisons))
	for i, c := range comparisons {
		sorted, err := inOrder(c.Blocks)
		if err != nil {
			return nil, nil, fmt.Errorf("%s against %s: %w", c.Value, c.Reference, err)
		}
		judges[i] = s.judge(sorted)
	}
	out, left := make([]FamilyLook, len(comparisons)), len(comparisons)
	for i := range out {
		out[i].Look = noLook
	}
	var beaten []string
	for k, iteration := range s.Looks {
		if iteration > completed {
			break
		}
		open := func(i int) bool {
			return !out[i].Stops && !slices.Contains(beaten, comparisons[i].Reference) && !slices.Contains(beaten, comparisons[i].Value)
		}
		var worse []string // beaten at this look: their comparisons are judged at it still
		for before := -1; before != left; {
			before = left
			for i := range comparisons {
				if !open(i) {
					continue
				}
				out[i] = judges[i](before, k)
				if out[i].Stops {
					left--
					worse = append(worse, comparisons[i].worse(out[i].Ratio, higherIsBetter))
				}
			}
		}
		for _, name := range worse {
			if !slices.Contains(beaten, name) {
				beaten = append(beaten, name)
			}
		}
	}
	return out, beaten, nil
}

// FirstDecisive is the iteration of the first look at which [Sequential.Family] can decide one of
// so many comparisons: where all pairs of it have the better value on the same side, and every
// iteration until there has a pair. 0: no look can. It is for rules that [Sequential.Check] takes.
func (s Sequential) FirstDecisive(comparisons int) int {
	level, spent := s.Alpha/float64(max(1, comparisons)), 0.0
	for _, iteration := range s.Looks {
		allowed := s.Spending.Spent(level, s.fraction(iteration))
		if math.Ldexp(1, 1-iteration) <= allowed-spent {
			return iteration
		}
		spent = allowed
	}
	return 0
}

func (c FamilyComparison) worse(ratio float64, higherIsBetter bool) string {
	if (ratio > 1) == higherIsBetter {
		return c.Reference
	}
	return c.Value
}

// judge judges the blocks of a comparison at one part of the level, of so many, and at a look. It
// keeps what it found of earlier looks.
func (s Sequential) judge(sorted []Block) func(parts, look int) FamilyLook {
	logs := blockLogs(sorted)
	flips, found := map[int]*signFlips{}, map[int][]FamilyLook{}
	return func(parts, look int) FamilyLook {
		if flips[parts] == nil {
			flips[parts] = &signFlips{}
		}
		level, spent := s.Alpha/float64(parts), 0.0
		for k, iteration := range s.Looks[:look+1] {
			allowed := s.Spending.Spent(level, s.fraction(iteration))
			if k == len(found[parts]) {
				l := flips[parts].judge(logs[:until(sorted, iteration)], allowed-spent)
				l.Iteration = iteration
				found[parts] = append(found[parts], FamilyLook{l, level})
			}
			spent = allowed
		}
		return found[parts][look]
	}
}
