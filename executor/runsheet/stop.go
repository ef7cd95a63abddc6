package runsheet

import (
	"errors"
	"fmt"
	"slices"

	"linktrial/internal/stats"
)

// Stop is the plan's rule by which the run ends before its last iteration: after stated
// iterations it compares every two treatments by their times to delivery; one that is beaten has
// no more trials, and the run ends when one is left ([stats.Sequential.Family]). It is part of
// the sheet, so that it was stated beforehand and the leading node needs nobody to judge by it.
type Stop struct {
	// Looks are the iterations after which the rule looks, ascending; the last is the last
	// of the sheet.
	Looks []int `json:"looks"`
	// Alpha is the probability of at most so much that, over all looks and comparisons, a
	// treatment is beaten by one that is no better.
	Alpha float64 `json:"alpha"`
	// Spending is how alpha is divided over the looks.
	Spending stats.Spending `json:"spending"`
}

// MaxCompared is how many treatments a rule compares: every two of them are a comparison.
const MaxCompared = 20

// Sequential is the test that the rule makes.
func (s *Stop) Sequential() stats.Sequential {
	return stats.Sequential{Alpha: s.Alpha, Spending: s.Spending, Looks: s.Looks}
}

// Compared is the treatments that the rule of a sheet compares, in the order of the sheet:
// those that trials are of, without mixes and without probes.
func (s *Sheet) Compared() (names []string) {
	for i := range s.Trials {
		t := &s.Trials[i]
		if len(t.Flows) > 0 && !slices.Contains(names, t.Treatment) && s.Treatment(t.Treatment) != nil {
			names = append(names, t.Treatment)
		}
	}
	return names
}

// checkStop reports why the rule cannot be followed.
func (s *Sheet) checkStop() error {
	if s.Stop == nil {
		return nil
	}
	n := len(s.Compared())
	if n < 2 || n > MaxCompared {
		return fmt.Errorf("a rule to stop by compares 2 to %d treatments, found %d", MaxCompared, n)
	}
	if err := s.Stop.Sequential().Check(); err != nil {
		return fmt.Errorf("rule to stop by: %w", err)
	}
	last := 0
	for i := range s.Trials {
		last = max(last, s.Trials[i].Iteration)
		for _, f := range s.Trials[i].Flows {
			if f.Duration > 0 || f.Session > 0 {
				return errors.New("a rule to stop by compares times to delivery, and times bound flows of the trials")
			}
		}
	}
	looks := s.Stop.Looks
	if looks[len(looks)-1] != last {
		return fmt.Errorf("the last look is after iteration %d, expected %d, the last one", looks[len(looks)-1], last)
	}
	comparisons := n * (n - 1) / 2
	if least := stats.LeastPairs(1 - s.Stop.Alpha/float64(comparisons)); last < least {
		return fmt.Errorf("a rule to stop by decides none of the %d comparisons of %d treatments with %d iterations: at least %d are needed", comparisons, n, last, least)
	}
	return nil
}
