package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// countedOut is how many of all assignments of signs each look is the first to stop.
func countedOut(logs []float64, sizes, boundaries []int) []int {
	first := make([]int, len(sizes))
	for signs := range 1 << len(logs) {
		for k, n := range sizes {
			plus := 0
			for i, r := range ranksOf(logs[:n]) {
				plus += r * (signs >> i & 1)
			}
			if min(plus, n*(n+1)/2-plus) <= boundaries[k] {
				first[k]++
				break
			}
		}
	}
	return first
}

// What the looks spend is what counting all assignments gives, and one more in any boundary
// would spend more than there is.
func TestSpentIsCountedOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 1))
	stopping := 0
	for _, sizes := range [][]int{{6, 9, 12}, {4, 8, 12}, {7, 8, 9, 10, 11}, {10, 10, 13}, {0, 1, 13}} {
		for _, spending := range []Spending{Pocock, OBrienFleming} {
			logs := make([]float64, sizes[len(sizes)-1])
			for i := range logs {
				logs[i] = math.Round(4*rng.NormFloat64()) / 4 // with ties and zeros
			}
			var flips signFlips
			for k, n := range sizes {
				may := spending.Spent(0.05, float64(k+1)/float64(len(sizes))) - flips.spent
				here := flips.look(logs[:n], may)
				if boundary := flips.boundaries[k]; boundary+1 < len(here) && here[boundary+1] <= may {
					t.Fatalf("look %d could spend %v of %v", k, here[boundary+1], may)
				}
			}
			counted, all := 0, math.Ldexp(1, len(logs))
			for k, n := range countedOut(logs, sizes, flips.boundaries) {
				counted += n
				if n > 0 && k < len(sizes)-1 {
					stopping++
				}
			}
			if got := flips.spent; math.Abs(got-float64(counted)/all) > 1e-12 || got > 0.05 {
				t.Errorf("%v %s: spent %v, counted %v", sizes, spending, got, float64(counted)/all)
			}
		}
	}
	if stopping < 6 {
		t.Errorf("only %d looks before the last stop anything", stopping)
	}
}

// Drawn assignments give what listed ones give, within three standard errors.
func TestDrawnAgreesWithListed(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 2))
	logs := make([]float64, 20)
	for i := range logs {
		logs[i] = rng.NormFloat64()
	}
	var listed signFlips
	drawn := signFlips{drawn: &drawnSigns{}}
	for k, n := range []int{8, 12, 16, 20} {
		may := Pocock.Spent(0.05, float64(k+1)/4)
		listed.look(logs[:n], may-listed.spent)
		drawn.look(logs[:n], may-drawn.spent)
		drawn.boundaries[k], drawn.spent = listed.boundaries[k], listed.spent // the next look asks the same of both
	}
	listed.list()
	drawn.list()
	a, b := listed.again(ranksOf(logs)), drawn.again(ranksOf(logs))
	if last := len(a) - 1; math.Abs(a[last]-listed.spent) > 1e-12 {
		t.Errorf("spent %v, and listed %v", listed.spent, a[last])
	}
	for s := range a {
		if !(math.Abs(a[s]-b[s]) <= 3*math.Sqrt(0.05/draws)) {
			t.Errorf("rank sum %d: %v, drawn %v", s, a[s], b[s])
		}
	}
}

// Of many pairs the boundaries approach those of the Brownian motion: not those of one
// campaign, which depend on its absolute values, but their mean.
func TestManyPairsApproachTheDesign(t *testing.T) {
	d, err := SpendingDesign(Pocock, 0.05, []float64{0.25, 0.5, 0.75, 1})
	if err != nil {
		t.Fatal(err)
	}
	const repeated = 16
	rng, nominal := rand.New(rand.NewPCG(35, 3)), make([]float64, len(d.Fractions))
	for range repeated {
		logs := make([]float64, 120)
		for i := range logs {
			logs[i] = rng.NormFloat64()
		}
		var flips signFlips
		for k, fraction := range d.Fractions {
			n := 30 * (k + 1)
			flips.look(logs[:n], Pocock.Spent(0.05, fraction)-flips.spent)
			nominal[k] += math.Ldexp(cumulative(flips.ranks[k])[flips.boundaries[k]], 1-n) / repeated
		}
		if flips.drawn == nil || flips.spent > 0.05 || flips.spent < 0.049 {
			t.Errorf("spent %v, drawn %v", flips.spent, flips.drawn != nil)
		}
	}
	for k, p := range nominal {
		within(t, "nominal level", p, d.Nominal()[k], 0.0007)
	}
}
