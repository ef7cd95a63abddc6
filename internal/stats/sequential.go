package stats

import (
	"fmt"
	"math"
	"slices"
)

// Sequential is the rule by which paired trials stop: after stated iterations there is a
// look, and at the first one at which the signed-rank test refuses "no difference" the trials
// stop. Over all looks, the test refuses where there is none with a probability of at most
// Alpha, whatever the distribution of the logarithms of the ratios, as long as it is
// symmetric and iterations are independent. It needs no mean, variance or many pairs.
//
// What may be spent until a look depends on its iteration alone ([Spending.Spent] of its share
// of the last look's), and not on how many pairs there are: a failed trial takes a pair and
// no level. What a look leaves over, because rank sums are whole numbers, the next one has.
type Sequential struct {
	Alpha    float64
	Spending Spending
	Looks    []int // iterations after which there is a look; the last is the largest number of iterations
}

// Block is one iteration's pair.
type Block struct {
	Iteration int // from 1
	Pair
}

// Look is what one look finds.
type Look struct {
	Iteration int // after which it was
	Pairs     int
	// RankSum is the smaller one of positive and negative logarithms of the ratios, of ties
	// and zeros the largest that any way of breaking them gives ([SignedRankShift]).
	RankSum int
	// Boundary is the largest RankSum with which the look stops the trials; -1 where none does.
	Boundary int
	Stops    bool
	// Nominal is the two-sided level of the signed-rank test that has this boundary, by itself.
	Nominal float64
	// Spent is the probability, under no difference, that this look or an earlier one stops,
	// given the absolute values of the logarithms.
	Spent float64
	// P is for a stop at this look, or at the last one without a stop: the probability, under
	// no difference, of a stop at an earlier look, or at this one with a RankSum at most as
	// large (stagewise ordering; Fairbanks and Madsen 1982).
	P float64
	// Ratio is value / reference by the estimate of Hodges and Lehmann, as of a [Comparison].
	// Of trials that stopped early it errs away from 1; see [Sequential.Adjusted].
	Ratio float64
	// Interval is the repeated confidence interval (Jennison and Turnbull 1989) of the ratio:
	// all ratios that the signed-rank test with this look's boundary does not refuse. It excludes
	// 1 where and only where the look stops. With probability 1 − Alpha those of all looks
	// contain the ratio: exactly so where that is 1, for which the boundaries are computed, and of
	// others in 95 % of simulated campaigns (TestRepeatedIntervals).
	Interval Interval
}

// Check reports what is wrong with a rule.
func (s Sequential) Check() error {
	if err := checkSpending(s.Spending, s.Alpha); err != nil {
		return err
	}
	if len(s.Looks) < 1 || len(s.Looks) > MaxLooks {
		return fmt.Errorf("looks: expected 1 to %d, found %d", MaxLooks, len(s.Looks))
	}
	before := 0
	for k, l := range s.Looks {
		if l <= before {
			return fmt.Errorf("look %d: expected an iteration after %d, found %d", k+1, before, l)
		}
		before = l
	}
	if before > MaxBlocks {
		return fmt.Errorf("look %d: expected at most iteration %d, found %d", len(s.Looks), MaxBlocks, before)
	}
	// With all signs alike, the two-sided P of the last look is 2^(1−n).
	if least := LeastPairs(1 - s.Alpha); before < least {
		return fmt.Errorf("look %d: expected at least iteration %d, before which no test can refuse at the level %v, found %d", len(s.Looks), least, s.Alpha, before)
	}
	return nil
}

// MaxBlocks bounds the iterations of a rule: rank sums are counted out one by one.
const MaxBlocks = 500

// Evaluate is what the looks find up to a number of completed iterations, until one stops.
// It depends on nothing else: an agent and the orchestrator find the same.
func (s Sequential) Evaluate(blocks []Block, completed int) ([]Look, error) {
	looks, _, err := s.evaluate(blocks, completed)
	return looks, err
}

// evaluate gives the logarithms of the last look's ratios, too.
func (s Sequential) evaluate(blocks []Block, completed int) (out []Look, logs []float64, err error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	sorted, err := inOrder(blocks)
	if err != nil {
		return nil, nil, err
	}
	all := blockLogs(sorted)
	var flips signFlips
	for _, iteration := range s.Looks {
		if iteration > completed || len(out) > 0 && out[len(out)-1].Stops {
			break
		}
		may := s.Spending.Spent(s.Alpha, s.fraction(iteration)) - flips.spent
		logs = all[:until(sorted, iteration)]
		look := flips.judge(logs, may)
		look.Iteration = iteration
		out = append(out, look)
	}
	return out, logs, nil
}

func (s Sequential) fraction(iteration int) float64 {
	return float64(iteration) / float64(s.Looks[len(s.Looks)-1])
}

// until is how many blocks are of an iteration or an earlier one.
func until(sorted []Block, iteration int) int {
	n := slices.IndexFunc(sorted, func(b Block) bool { return b.Iteration > iteration })
	if n < 0 {
		return len(sorted)
	}
	return n
}

// inOrder sorts blocks by iteration and refuses what has no place or no logarithm.
func inOrder(blocks []Block) ([]Block, error) {
	sorted := slices.SortedStableFunc(slices.Values(blocks), func(a, b Block) int { return a.Iteration - b.Iteration })
	for i, b := range sorted {
		log := math.Log(b.Value) - math.Log(b.Reference)
		switch {
		case b.Iteration < 1:
			return nil, fmt.Errorf("iteration: expected 1 or more, found %d", b.Iteration)
		case i > 0 && sorted[i-1].Iteration == b.Iteration:
			return nil, fmt.Errorf("iteration %d: expected one pair, found several", b.Iteration)
		case math.IsNaN(log) || math.IsInf(log, 0):
			return nil, fmt.Errorf("iteration %d: expected positive values, found %v and %v", b.Iteration, b.Reference, b.Value)
		}
	}
	return sorted, nil
}

func blockLogs(blocks []Block) []float64 {
	pairs := make([]Pair, len(blocks))
	for i, b := range blocks {
		pairs[i] = b.Pair
	}
	return logRatios(pairs)
}

// noLook is what is known before there is a look, and of one without pairs.
var noLook = Look{Boundary: -1, P: 1, Ratio: math.NaN(), Interval: undefined}

// judge adds a look at the logarithms of ratios, with what it may spend.
func (f *signFlips) judge(logs []float64, may float64) Look {
	before := f.spent
	here := f.look(logs, may)
	boundary := f.boundaries[len(f.boundaries)-1]
	out := noLook
	out.Pairs, out.Boundary, out.Spent = len(logs), boundary, f.spent
	if len(logs) == 0 {
		return out
	}
	d := slices.Sorted(slices.Values(logs))
	all := len(d) * (len(d) + 1) / 2
	out.RankSum = smallerSum(d)
	out.Stops = out.RankSum <= boundary
	out.P = min(1, before+here[min(out.RankSum, all)])
	out.Ratio = math.Exp((walsh(d, (all+1)/2) + walsh(d, all/2+1)) / 2)
	if boundary >= 0 {
		out.Nominal = math.Ldexp(cumulative(f.ranks[len(f.ranks)-1])[boundary], 1-len(d))
		out.Interval = Interval{math.Exp(walsh(d, boundary+1)), math.Exp(walsh(d, all-boundary))}
	}
	return out
}

// smallerSum is the smaller rank sum of sorted differences, ties and zeros broken towards no
// difference.
func smallerSum(sorted []float64) int {
	all := len(sorted) * (len(sorted) + 1) / 2
	return min(walshUpTo(sorted, 0), all-walshUpTo(sorted, math.Nextafter(0, -1)))
}
