package stats

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// signFlips is the joint distribution of the signed-rank statistic at successive looks,
// given the absolute values of the differences: under no difference each sign is that of a
// fair coin. The statistic is the smaller rank sum, and a look refuses "no difference" where
// it is at most the look's boundary.
//
// What is asked at each look is the probability to refuse there and not before. That of a
// small rank sum alone is counted out; from it goes that of a small rank sum after an earlier
// look has refused. For this the assignments of signs that an earlier look refuses are
// listed: they are few, because a test seldom refuses. Where they are too many, assignments
// are drawn instead, the same ones on every machine.
//
// Tied absolute values have ranks in the order of their iterations, which does not depend on
// the signs.
type signFlips struct {
	ranks      [][]int // at each look, in the order of iterations
	boundaries []int   // at each look; -1 where it cannot refuse
	// refused lists, for each look but the last, the assignments that it is the first to
	// refuse, of those with the smaller sum on the positive side: bit i is set where
	// difference i is positive. Those with all signs changed are refused, too.
	refused [][]uint64
	drawn   *drawnSigns // where they are too many
	spent   float64     // probability that a look up to now refuses
}

const (
	maxListed = 1 << 17 // assignments that are listed for one look
	// draws is how many assignments are drawn where they cannot be listed. The probability
	// that is estimated is at most the level; of 0.05 its standard error is 0.0006.
	draws = 1 << 17
)

// look adds a look at differences that begin with those of the look before. Its boundary is the
// largest with which it refuses first with at most a probability (none where that is below
// 0). The result is the probability, for each rank sum, that the smaller one is at most it and no
// earlier look refuses.
func (f *signFlips) look(differences []float64, probability float64) []float64 {
	f.list()
	ranks := ranksOf(differences)
	here, again := cumulative(ranks), f.again(ranks)
	for s := range here {
		here[s] = max(0, min(1, math.Ldexp(here[s], 1-len(ranks)))-again[s])
	}
	boundary := -1
	for boundary+1 < len(here) && here[boundary+1] <= probability {
		boundary++
	}
	if boundary >= 0 {
		f.spent += here[boundary]
	}
	f.ranks, f.boundaries = append(f.ranks, ranks), append(f.boundaries, boundary)
	return here
}

// ranksOf are the ranks of absolute values, from 1, in the order of the differences.
func ranksOf(differences []float64) []int {
	order := make([]int, len(differences))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(differences[a]), math.Abs(differences[b]))
	})
	ranks := make([]int, len(order))
	for k, i := range order {
		ranks[i] = k + 1
	}
	return ranks
}

// again is, for each rank sum, the probability that the smaller one is at most it after an
// earlier look has refused.
func (f *signFlips) again(ranks []int) []float64 {
	total := len(ranks) * (len(ranks) + 1) / 2
	out := make([]float64, total+1)
	if f.drawn != nil {
		f.drawn.again(ranks, out)
	}
	for look, refused := range f.refused {
		if len(refused) == 0 {
			continue
		}
		known := make([]float64, total+1) // how many of them have which sum
		for _, signs := range refused {
			known[sumOf(ranks, signs)]++
		}
		rest := ways(ranks[len(f.ranks[look]):])
		for a, assignments := range known {
			if assignments == 0 {
				continue
			}
			scale := math.Ldexp(assignments, 1-len(ranks)) // twice: those with all signs changed, too
			for b, more := range rest {
				out[min(a+b, total-a-b)] += scale * more
			}
		}
	}
	for s := 1; s <= total; s++ {
		out[s] += out[s-1]
	}
	return out
}

func sumOf(ranks []int, signs uint64) (sum int) {
	for ; signs != 0; signs &= signs - 1 {
		sum += ranks[bits.TrailingZeros64(signs)]
	}
	return sum
}

// list lists what the last look is the first to refuse, or marks it among the drawn.
func (f *signFlips) list() {
	last := len(f.ranks) - 1
	if last < 0 {
		return
	}
	ranks, boundary := f.ranks[last], f.boundaries[last]
	if f.drawn != nil {
		f.drawn.refuse(ranks, boundary)
		return
	}
	if boundary < 0 {
		f.refused = append(f.refused, nil)
		return
	}
	if len(ranks) > 64 || cumulative(ranks)[boundary] > maxListed {
		f.drawn, f.refused = &drawnSigns{}, nil
		for k := range f.ranks {
			f.drawn.refuse(f.ranks[k], f.boundaries[k])
		}
		return
	}
	at := make([]int, len(ranks)+1) // the difference that has a rank
	for i, r := range ranks {
		at[r] = i
	}
	var found []uint64
	var choose func(rank, left int, signs uint64)
	choose = func(rank, left int, signs uint64) {
		if !f.refuses(last, signs) {
			found = append(found, signs)
		}
		for ; rank <= left && rank < len(at); rank++ {
			choose(rank+1, left-rank, signs|1<<at[rank])
		}
	}
	choose(1, boundary, 0)
	f.refused = append(f.refused, found)
}

// refuses reports whether one of the first looks refuses an assignment.
func (f *signFlips) refuses(looks int, signs uint64) bool {
	for k, ranks := range f.ranks[:looks] {
		if f.boundaries[k] < 0 {
			continue
		}
		n := len(ranks)
		sum := sumOf(ranks, signs&(1<<n-1))
		if min(sum, n*(n+1)/2-sum) <= f.boundaries[k] {
			return true
		}
	}
	return false
}

// drawnSigns are drawn assignments of signs.
type drawnSigns struct {
	signs   [][]uint64 // of each difference, one bit for each assignment
	refused [draws]bool
}

// again adds, for each rank sum, the probability that it is the smaller one after an earlier
// look has refused.
func (d *drawnSigns) again(ranks []int, out []float64) {
	for i, sum := range d.sums(ranks) {
		if d.refused[i] {
			out[sum] += 1.0 / draws
		}
	}
}

// refuse marks what a look refuses.
func (d *drawnSigns) refuse(ranks []int, boundary int) {
	for i, sum := range d.sums(ranks) {
		d.refused[i] = d.refused[i] || sum <= boundary
	}
}

// sums are the smaller rank sums of the assignments.
func (d *drawnSigns) sums(ranks []int) []int {
	for i := len(d.signs); i < len(ranks); i++ {
		source, signs := rand.NewPCG(35, uint64(i)), make([]uint64, draws/64)
		for k := range signs {
			signs[k] = source.Uint64()
		}
		d.signs = append(d.signs, signs)
	}
	sums, all := make([]int, draws), len(ranks)*(len(ranks)+1)/2
	for i, r := range ranks {
		for k, word := range d.signs[i] {
			for ; word != 0; word &= word - 1 {
				sums[64*k+bits.TrailingZeros64(word)] += r
			}
		}
	}
	for i, sum := range sums {
		sums[i] = min(sum, all-sum)
	}
	return sums
}
