package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Friedman is the outcome of the test that treatments do not differ as a whole (Friedman
// 1937), by the ranks of their values within each block.
type Friedman struct {
	Blocks, Treatments int
	// Statistic is corrected for ties; NaN where all values of each block are one.
	Statistic  float64
	ChiSquareP float64 // by the chi-square distribution, which is approximate, as R has it
	// P is that to report: by permutations within the blocks where these are few and it is
	// not very small, else ChiSquareP.
	P float64
}

const (
	// manyBlocks is from how many blocks on the chi-square distribution is near enough: at
	// 0.05 it errs in 2 % of cases with three blocks of eight treatments, 3 % with five, 4 %
	// with ten, 5 % with twenty.
	manyBlocks = 20
	// verySmall needs no draws: of few blocks the true P is smaller than that by chi-square,
	// because the statistic is bounded, and both are shown as below 0.001.
	verySmall     = 0.0005
	friedmanDraws = 999
	// friedmanEnough makes the P, which is shown also where it is not small, vary by 7 %.
	friedmanEnough = 200
)

// FriedmanTest judges blocks, each with one value of every treatment in the same order. NaN
// where there are fewer than two blocks or treatments, or a block has other treatments than
// the first one.
func FriedmanTest(blocks [][]float64, seed uint64) Friedman {
	out := Friedman{Blocks: len(blocks), Statistic: math.NaN(), ChiSquareP: math.NaN(), P: math.NaN()}
	if len(blocks) > 0 {
		out.Treatments = len(blocks[0])
	}
	n, k := float64(len(blocks)), float64(out.Treatments)
	if n < 2 || k < 2 {
		return out
	}
	ranks, ties := make([][]int, len(blocks)), 0.0
	for i, b := range blocks {
		if len(b) != out.Treatments || hasNaN(b) {
			return out
		}
		var t float64
		ranks[i], t = doubledRanks(b)
		ties += t
	}
	scale := n*k*(k+1) - ties/(k-1)
	if scale <= 0 {
		return out
	}
	// All ranks are doubled, and so are the sums: their squares are four times as large.
	measured := spreadOfSums(ranks)
	out.Statistic = 12 * float64(measured) / 4 / scale
	out.ChiSquareP = distuv.ChiSquared{K: k - 1}.Survival(out.Statistic)
	if out.P = out.ChiSquareP; len(blocks) < manyBlocks && out.P >= verySmall {
		rng := rand.New(rand.NewPCG(seed, uint64(len(blocks))))
		out.P = drawnP(friedmanDraws, friedmanEnough, func() bool {
			for _, r := range ranks {
				for i := len(r) - 1; i > 0; i-- { // as rng.Shuffle, in less time
					j := rng.IntN(i + 1)
					r[i], r[j] = r[j], r[i]
				}
			}
			return spreadOfSums(ranks) >= measured
		})
	}
	return out
}

// spreadOfSums is the sum of squares of how far each treatment's sum of doubled ranks is from
// what it would be without a difference.
func spreadOfSums(ranks [][]int) (spread int) {
	k := len(ranks[0])
	even := len(ranks) * (k + 1)
	for j := range k {
		off := -even
		for _, r := range ranks {
			off += r[j]
		}
		spread += off * off
	}
	return spread
}
