package stats

import (
	"math"
	"math/rand/v2"
)

// Dependence is whether values of neighbouring iterations are alike, and what that leaves of
// their number.
type Dependence struct {
	N int
	// R is the correlation of neighbours (autocorrelation of lag 1). P is of the test that
	// it is not above 0, by permutations. It is one-sided: where values alternate, an
	// interval that takes them for independent is too wide, which misleads nobody.
	R, P float64
	// Effective is of how many independent values the mean would be as certain, where each
	// value has the share R of the one before it: N·(1 − R)/(1 + R) (Bayley and Hammersley
	// 1946), and at most N.
	Effective float64
	Mean      float64
	// Interval is of the mean, Student's of so many values; none of fewer than two.
	Interval Interval
}

const (
	dependenceDraws  = 9999
	dependenceEnough = 100
)

// DependenceOf judges values by their iterations, which rise. Two values are neighbours where
// no iteration is between theirs. NaN where there are no neighbours or no spread.
func DependenceOf(iterations []int, values []float64, level float64, seed uint64) Dependence {
	out := Dependence{N: len(values), R: math.NaN(), P: math.NaN(), Effective: math.NaN(), Mean: Mean(values), Interval: undefined}
	if len(iterations) != len(values) || !finite(values) || !isLevel(level) {
		return out
	}
	var pairs []int // the first of every two neighbours
	for i := 1; i < len(iterations); i++ {
		if iterations[i] == iterations[i-1]+1 {
			pairs = append(pairs, i-1)
		}
	}
	off, squares := make([]float64, len(values)), 0.0
	for i, x := range values {
		off[i] = x - out.Mean
		squares += off[i] * off[i]
	}
	if len(pairs) == 0 || squares == 0 {
		return out
	}
	products := func() (sum float64) {
		for _, i := range pairs {
			sum += off[i] * off[i+1]
		}
		return sum
	}
	n, measured := float64(len(values)), products()
	// Were no iteration missing, there would be n − 1 pairs.
	out.R = measured / squares * (n - 1) / float64(len(pairs))
	least := measured - 1e-9*squares // sums in another order differ in their last digits
	rng := rand.New(rand.NewPCG(seed, uint64(len(values))))
	out.P = drawnP(dependenceDraws, dependenceEnough, func() bool {
		rng.Shuffle(len(off), func(i, j int) { off[i], off[j] = off[j], off[i] })
		return products() >= least
	})
	share := min(max(out.R, 0), 1)
	if out.Effective = n * (1 - share) / (1 + share); out.Effective >= 2 {
		out.Interval = OfMean(out.Mean, squares/(n-1)/out.Effective, out.Effective-1, level)
	}
	return out
}
