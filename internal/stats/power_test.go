package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// foundShare is the share of simulated campaigns in which the report's test finds a ratio
// on its own side.
func foundShare(pairs int, ratio, spread float64, comparisons, campaigns int) float64 {
	rng := rand.New(rand.NewPCG(2026, uint64(1000*pairs+comparisons)))
	found := 0
	ps := make([]Pair, pairs)
	for range campaigns {
		for i := range ps {
			// What the iteration does to both treatments does not count.
			both := 100 * math.Exp(rng.NormFloat64())
			ps[i] = Pair{both, both * ratio * math.Exp(spread*rng.NormFloat64())}
		}
		if d := Decide(ps, 0.95, comparisons); d.Decided && d.Interval.Low > 1 {
			found++
		}
	}
	return float64(found) / float64(campaigns)
}

func TestPowerIsTheShareOfCampaignsThatDecide(t *testing.T) {
	for _, c := range []struct {
		pairs, comparisons int
		spread             float64
	}{{6, 1, 0.2}, {10, 3, 0.35}, {20, 6, 0.05}, {30, 1, 1}, {51, 1, 0.2}, {90, 8, 0.2}} {
		w := NewPower(0.95, c.comparisons)
		for chance, within := range map[float64]float64{0.8: 0.015, 0.95: 0.01} {
			ratio := math.Exp(c.spread * w.Shift(c.pairs, chance))
			if share := foundShare(c.pairs, ratio, c.spread, c.comparisons, 10_000); math.Abs(share-chance) > within {
				t.Errorf("%+v: a ratio of %.4g is found in %.4g of campaigns, expected %g ± %g", c, ratio, share, chance, within)
			}
		}
	}
}

// With the fewest pairs the test refuses only samples of one sign, so that the chance is
// that of one value's sign to the power of their number.
func TestPowerOfTheFewestPairs(t *testing.T) {
	for comparisons, least := range map[int]int{1: 6, 3: 7, 6: 8} {
		w := NewPower(0.95, comparisons)
		if got := w.LeastPairs(); got != least {
			t.Errorf("%d comparisons: %d pairs, expected %d", comparisons, got, least)
		}
		if got := w.Shift(least-1, 0.8); !math.IsInf(got, 1) {
			t.Errorf("%d pairs of %d comparisons: shift %v", least-1, comparisons, got)
		}
		exact := distuv.UnitNormal.Quantile(math.Pow(0.8, 1/float64(least)))
		nearBy(t, "shift", w.Shift(least, 0.8), exact, 0.02)
	}
}

// The paired t test finds half a standard deviation with 80 % chance from 33.37 pairs on,
// with 95 % from 53.94 on (power.t.test of R, type "paired"); the efficiency of the
// signed-rank test is 3/π of that (Hodges and Lehmann 1956).
func TestPowerBesideThePairedTTest(t *testing.T) {
	w := NewPower(0.95, 1)
	for chance, pairs := range map[float64]float64{0.8: 33.36713, 0.95: 53.94061} {
		got, ok := w.Pairs(0.5, chance, 1000)
		if want := pairs * math.Pi / 3; !ok || math.Abs(float64(got)-want) > 2 {
			t.Errorf("chance %g: %d pairs, expected about %.1f", chance, got, want)
		}
	}
}

func TestPowerPairsAreTheFewest(t *testing.T) {
	w := NewPower(0.95, 5)
	for _, shift := range []float64{0.1, 0.2, 0.9, 5} {
		n, ok := w.Pairs(shift, 0.8, 10_000)
		if !ok || w.Shift(n, 0.8) > shift || n > w.LeastPairs() && w.Shift(n-1, 0.8) <= shift {
			t.Errorf("shift %g: %d pairs, %v", shift, n, ok)
		}
	}
	for _, shift := range []float64{0.001, 0, -1, math.NaN()} {
		if n, ok := w.Pairs(shift, 0.8, 10_000); ok {
			t.Errorf("shift %g: %d pairs", shift, n)
		}
	}
	if n, ok := w.Pairs(5, 0.8, w.LeastPairs()-1); ok {
		t.Errorf("fewer than the fewest: %d pairs", n)
	}
}

// The same every time, and where draws and approximation meet there is no step.
func TestPowerIsSeeded(t *testing.T) {
	a, b := NewPower(0.95, 2), NewPower(0.95, 2)
	if x, y := a.Shift(12, 0.8), b.Shift(12, 0.8); x != y || x != a.Shift(12, 0.8) {
		t.Errorf("%v and %v", x, y)
	}
	for _, chance := range []float64{0.8, 0.95} {
		step := a.Shift(maxExact, chance) / a.Shift(maxExact+1, chance)
		nearBy(t, "step", step, math.Sqrt(51./50), 0.012)
	}
}

func TestRankSumPower(t *testing.T) {
	nearBy(t, "no shift", rankSumPower(40, 40*41/4, 0), 0.5, 0.01)
	nearBy(t, "a large shift", rankSumPower(60, 0, 30), 1, 0)
	// Under no difference it is half of the test's own P.
	p := rankSumP(80)
	for _, sum := range []int{900, 1200, 1500} {
		nearBy(t, "P", 2*rankSumPower(80, sum, 0), p(sum), 1e-9)
	}
}
