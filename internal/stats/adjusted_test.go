package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Of campaigns with a true difference, half are estimated above it, where the estimate of
// Hodges and Lehmann is too far from 1 more often.
func TestAdjustedIsMedianUnbiased(t *testing.T) {
	s := Sequential{0.05, Pocock, []int{6, 10, 14, 18}}
	for _, effect := range []float64{0.4, 0.8} {
		rng := rand.New(rand.NewPCG(35, uint64(100*effect)))
		var above, plainAbove, n int
		var mean, plainMean float64
		for range 250 {
			blocks := blocksOf(18, effect, (*rand.Rand).NormFloat64, rng)
			looks, err := s.Evaluate(blocks, 18)
			if err != nil {
				t.Fatal(err)
			}
			last := looks[len(looks)-1]
			estimate := s.medianUnbiased(blockLogs(blocks[:last.Iteration]), looks, 100)
			n++
			if estimate > effect {
				above++
			}
			plain := math.Log(last.Ratio)
			if plain > effect {
				plainAbove++
			}
			mean += estimate
			plainMean += plain
		}
		t.Logf("effect %.1f: adjusted above it in %.1f %%, mean %.3f; not adjusted %.1f %%, mean %.3f",
			effect, 100*float64(above)/float64(n), mean/float64(n), 100*float64(plainAbove)/float64(n), plainMean/float64(n))
		if share := float64(above) / float64(n); share < 0.42 || share > 0.58 { // within 2.8 standard errors
			t.Errorf("effect %v: %v above it", effect, share)
		}
		if plainAbove <= above {
			t.Errorf("effect %v: adjusted %d above it, not adjusted %d", effect, above, plainAbove)
		}
	}
}

func adjusted(t *testing.T, s Sequential, blocks []Block, completed int) float64 {
	t.Helper()
	ratio, err := s.Adjusted(blocks, completed)
	if err != nil {
		t.Fatal(err)
	}
	return ratio
}

// With the two treatments exchanged, the estimate is the reciprocal.
func TestAdjustedIsSymmetric(t *testing.T) {
	s := Sequential{0.05, OBrienFleming, []int{8, 12, 16}}
	rng := rand.New(rand.NewPCG(35, 31))
	for range 12 {
		blocks := blocksOf(16, 0.7, (*rand.Rand).NormFloat64, rng)
		reversed := make([]Block, len(blocks))
		for i, b := range blocks {
			reversed[i] = Block{b.Iteration, Pair{b.Value, b.Reference}}
		}
		looks, err := s.Evaluate(blocks, 16)
		if err != nil {
			t.Fatal(err)
		}
		a, b := adjusted(t, s, blocks, 16), adjusted(t, s, reversed, 16)
		if math.Abs(math.Log(a)+math.Log(b)) > 1e-9 {
			t.Errorf("%v, and reversed %v", a, b)
		}
		last := looks[len(looks)-1]
		if last.Stops && !(a > last.Interval.Low && a < last.Interval.High) {
			t.Errorf("%v outside %v", a, last.Interval)
		}
	}
	for _, completed := range []int{0, 16} {
		if a := adjusted(t, s, nil, completed); !math.IsNaN(a) {
			t.Errorf("of nothing after %d iterations %v", completed, a)
		}
	}
	if _, err := s.Adjusted([]Block{{1, Pair{0, 1}}}, 16); err == nil {
		t.Error("a block without a logarithm is accepted")
	}
}

// Of one look nothing is to be adjusted: the estimate is that of Hodges and Lehmann.
func TestAdjustedOfOneLook(t *testing.T) {
	s := Sequential{0.05, OBrienFleming, []int{20}}
	rng := rand.New(rand.NewPCG(35, 32))
	for range 5 {
		blocks := blocksOf(20, 0.6, (*rand.Rand).NormFloat64, rng)
		looks, err := s.Evaluate(blocks, 20)
		if err != nil {
			t.Fatal(err)
		}
		// A twentieth of a standard error of the estimate.
		within(t, "estimate", math.Log(adjusted(t, s, blocks, 20)), math.Log(looks[0].Ratio), 0.05/math.Sqrt(20))
	}
}

// Walsh averages 1, 1.5, 2, 2.5, 3 and 4: those at the number, but for rounding, count on
// neither side.
func TestEstimateAbove(t *testing.T) {
	for number, want := range map[float64]int{2: 1, 2 + 1e-14: 1, 2 - 1e-14: 1, 2.2: 0, 2.5: -1, 5: -6, 0: 6} {
		if got := estimateAbove([]float64{4, 1, 2}, number); got != want {
			t.Errorf("about %v: %d, want %d", number, got, want)
		}
	}
}
