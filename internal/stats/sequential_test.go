package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// family is a distribution of the logarithm of a ratio, symmetric about 0 with the standard
// deviation 1.
type family struct {
	name string
	draw func(*rand.Rand) float64
}

// Under no difference the two values of an iteration have one distribution, so that the
// logarithm of their ratio is symmetric however skewed that distribution is: this is what the
// test needs, and why the third family is a difference of two skewed values.
var families = []family{
	{"normal", (*rand.Rand).NormFloat64},
	{"t3", func(r *rand.Rand) float64 {
		sum := 0.0
		for range 3 {
			x := r.NormFloat64()
			sum += x * x
		}
		return r.NormFloat64() / math.Sqrt(sum) // the variance of t with 3 degrees of freedom is 3
	}},
	{"skewed", func(r *rand.Rand) float64 {
		variance := math.E * (math.E - 1) // of exp of a normal
		return (math.Exp(r.NormFloat64()) - math.Exp(r.NormFloat64())) / math.Sqrt(2*variance)
	}},
}

func blocksOf(n int, ratio float64, draw func(*rand.Rand) float64, rng *rand.Rand) []Block {
	blocks := make([]Block, n)
	for i := range blocks {
		blocks[i] = Block{i + 1, Pair{1, math.Exp(ratio + draw(rng))}}
	}
	return blocks
}

// campaigns are shares of simulated campaigns, and mean blocks.
type campaigns struct {
	stops     float64 // the rule stops by refusing
	fixed     float64 // the test of 20 iterations alone refuses
	blocks    float64
	contained float64 // the last interval contains the ratio
}

// fixed20 is the largest smaller rank sum of 20 pairs that the signed-rank test refuses at 5 %,
// two-sided, as tables have it.
const fixed20 = 52

// simulated evaluates campaigns of at most 20 iterations.
func simulated(t *testing.T, s Sequential, f family, effect float64, n int) (out campaigns) {
	t.Helper()
	rng := rand.New(rand.NewPCG(35, uint64(1000*effect)))
	for range n {
		blocks := blocksOf(20, effect, f.draw, rng)
		looks, err := s.Evaluate(blocks, 20)
		if err != nil {
			t.Fatal(err)
		}
		look := looks[len(looks)-1]
		if look.Stops {
			out.stops++
		}
		out.blocks += float64(look.Iteration)
		if !look.Interval.Defined() || look.Interval.Low <= math.Exp(effect) && math.Exp(effect) <= look.Interval.High {
			out.contained++
		}
		if smallerSum(slices.Sorted(slices.Values(blockLogs(blocks)))) <= fixed20 {
			out.fixed++
		}
	}
	for _, x := range []*float64{&out.stops, &out.fixed, &out.blocks, &out.contained} {
		*x /= float64(n)
	}
	return out
}

var (
	fourLooks  = Sequential{0.05, OBrienFleming, []int{5, 10, 15, 20}}
	fourPocock = Sequential{0.05, Pocock, []int{5, 10, 15, 20}}
	eightLooks = Sequential{0.05, OBrienFleming, []int{6, 8, 10, 12, 14, 16, 18, 20}}
)

// Under no difference at most 5 % of campaigns refuse it, whatever the family, and nearly as
// many do: 5000 campaigns give that to 0.6 %.
func TestSequentialLevel(t *testing.T) {
	for _, c := range []struct {
		rule Sequential
		of   []family
	}{{fourLooks, families}, {fourPocock, families}, {eightLooks, families[:1]}} {
		for _, f := range c.of {
			got := simulated(t, c.rule, f, 0, 5000)
			t.Logf("%s, looks %v, %s: %.2f %% refuse; %.2f blocks; fixed n = 20 %.2f %%",
				c.rule.Spending, c.rule.Looks, f.name, 100*got.stops, got.blocks, 100*got.fixed)
			if got.stops > 0.055 || got.stops < 0.042 {
				t.Errorf("%s, looks %v, %s: %v refuse", c.rule.Spending, c.rule.Looks, f.name, got.stops)
			}
			if math.Abs(got.contained+got.stops-1) > 1e-9 {
				t.Errorf("the interval contains 1 in %v, and %v stop", got.contained, got.stops)
			}
		}
	}
}

// Where values are so coarse that logarithms are tied or zero, fewer campaigns refuse.
func TestSequentialLevelWithTies(t *testing.T) {
	coarse := family{"coarse", func(r *rand.Rand) float64 { return math.Round(1.5 * r.NormFloat64()) }}
	if got := simulated(t, fourPocock, coarse, 0, 2000); got.stops > 0.05 || got.stops == 0 {
		t.Errorf("%v refuse", got.stops)
	}
}

// Beside the test of 20 iterations, the rule takes fewer and loses little power, and its
// intervals contain the true ratio.
func TestSequentialPower(t *testing.T) {
	for _, c := range []struct {
		rule   Sequential
		loss   float64    // of power, at most
		blocks [2]float64 // on average of normal ratios, at most
	}{{fourLooks, 0.04, [2]float64{19, 17}}, {fourPocock, 0.12, [2]float64{18, 14.5}}, {eightLooks, 0.05, [2]float64{18.5, 15.5}}} {
		for _, f := range families {
			for k, effect := range []float64{0.5, 0.8} {
				got := simulated(t, c.rule, f, effect, 1000)
				t.Logf("%s, looks %v, %s, effect %.1f: power %.1f %%, %.2f blocks; fixed n = 20 %.1f %%; interval contains the ratio %.1f %%",
					c.rule.Spending, c.rule.Looks, f.name, effect, 100*got.stops, got.blocks, 100*got.fixed, 100*got.contained)
				if got.fixed-got.stops > c.loss || f.name == "normal" && got.blocks > c.blocks[k] || got.contained < 0.95 {
					t.Errorf("%s, looks %v, %s, effect %v: %+v", c.rule.Spending, c.rule.Looks, f.name, effect, got)
				}
			}
		}
	}
}

// The intervals of all looks together contain the ratio, although the boundaries are computed
// for 1: also of campaigns that go on after a stop.
func TestRepeatedIntervals(t *testing.T) {
	for _, s := range []Sequential{fourLooks, fourPocock} {
		for _, f := range families {
			rng, contained := rand.New(rand.NewPCG(35, 7)), 0
			const n, effect = 1000, 0.8
			for range n {
				blocks, all := blocksOf(20, effect, f.draw, rng), true
				var flips signFlips
				for _, iteration := range s.Looks {
					may := s.Spending.Spent(s.Alpha, s.fraction(iteration)) - flips.spent
					i := flips.judge(blockLogs(blocks[:iteration]), may).Interval
					all = all && (!i.Defined() || i.Low <= math.Exp(effect) && math.Exp(effect) <= i.High)
				}
				if all {
					contained++
				}
			}
			t.Logf("%s, %s: all intervals contain the ratio in %.1f %% of campaigns", s.Spending, f.name, 100*float64(contained)/n)
			if contained < n*935/1000 || contained > n*98/100 { // 95 % within two standard errors, or somewhat more
				t.Errorf("%s, %s: %d of %d", s.Spending, f.name, contained, n)
			}
		}
	}
}

// Of one look the rule is the signed-rank test: its boundaries are those of Wilcoxon's tables.
func TestOneLookIsWilcoxons(t *testing.T) {
	for n, want := range map[int]int{6: 0, 8: 3, 10: 8, 15: 25, 20: fixed20, 25: 89, 30: 137} {
		s := Sequential{0.05, Pocock, []int{n}}
		blocks := blocksOf(n, 0.5, (*rand.Rand).NormFloat64, rand.New(rand.NewPCG(35, 4)))
		looks, err := s.Evaluate(blocks, n)
		if err != nil {
			t.Fatal(err)
		}
		shift := SignedRankShift(blockLogs(blocks), 0.95)
		got := looks[0]
		if got.Boundary != want || math.Abs(got.P-shift.P) > 1e-12 || math.Log(got.Ratio) != shift.Estimate && math.Abs(math.Log(got.Ratio)-shift.Estimate) > 1e-12 {
			t.Errorf("%d pairs: boundary %d, want %d; P %v and %v", n, got.Boundary, want, got.P, shift.P)
		}
		if math.Abs(math.Log(got.Interval.Low)-shift.Interval.Low) > 1e-12 || math.Abs(math.Log(got.Interval.High)-shift.Interval.High) > 1e-12 {
			t.Errorf("%d pairs: %v and %v", n, got.Interval, shift.Interval)
		}
	}
}

// What a look finds does not depend on what comes later, nor on the order in which blocks are
// given; it stops where and only where its interval excludes 1, and P is then within what is
// spent; also with ties, zeros and missing pairs.
func TestLooksAreConsistent(t *testing.T) {
	rng, stops := rand.New(rand.NewPCG(35, 5)), 0
	for range 300 {
		effect, coarse := rng.NormFloat64(), rng.IntN(2) == 0
		blocks := blocksOf(20, 0, func(r *rand.Rand) float64 {
			x := effect + r.NormFloat64()
			if coarse {
				x = math.Round(x)
			}
			return x
		}, rng)
		blocks = slices.DeleteFunc(blocks, func(Block) bool { return rng.IntN(6) == 0 })
		all, err := fourLooks.Evaluate(blocks, 20)
		if err != nil {
			t.Fatal(err)
		}
		rng.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		for k, look := range all {
			some, err := fourLooks.Evaluate(blocks, look.Iteration)
			if err != nil || len(some) != k+1 || fmt.Sprint(some[k]) != fmt.Sprint(look) { // NaN is not equal
				t.Fatalf("%v, %v, and later %v", err, some, look)
			}
			excludes := look.Interval.Defined() && !(look.Interval.Low <= 1 && look.Interval.High >= 1)
			if look.Stops != excludes || look.Stops && look.P > look.Spent || look.Stops && k < len(all)-1 {
				t.Fatalf("look %d of %d: %+v", k+1, len(all), look)
			}
			if look.Stops {
				stops++
			}
		}
	}
	if stops < 50 {
		t.Errorf("only %d stops", stops)
	}
}

func TestLooksWithoutPairs(t *testing.T) {
	looks, err := fourLooks.Evaluate([]Block{{7, Pair{1, 2}}}, 12)
	if err != nil || len(looks) != 2 {
		t.Fatal(looks, err)
	}
	if l := looks[0]; l.Pairs != 0 || l.Stops || l.Boundary != -1 || l.P != 1 || !math.IsNaN(l.Ratio) || l.Interval.Defined() {
		t.Errorf("%+v", l)
	}
	if l := looks[1]; l.Pairs != 1 || l.Stops || l.Boundary != -1 || math.Abs(l.Ratio-2) > 1e-12 || l.Spent != 0 {
		t.Errorf("%+v", l)
	}
}

// Many iterations, of which early looks refuse more assignments than can be listed.
func TestManyLooks(t *testing.T) {
	s := Sequential{0.05, Pocock, []int{20, 40, 60, 80, 100}}
	blocks := blocksOf(100, 0, (*rand.Rand).NormFloat64, rand.New(rand.NewPCG(35, 6)))
	looks, err := s.Evaluate(blocks, 100)
	if err != nil || len(looks) != 5 {
		t.Fatal(looks, err)
	}
	if spent := looks[4].Spent; spent > 0.05 || spent < 0.049 {
		t.Errorf("spent %v", spent)
	}
}

func TestSequentialRefused(t *testing.T) {
	one := []Block{{1, Pair{1, 2}}}
	for _, c := range []struct {
		s      Sequential
		blocks []Block
		want   string
	}{
		{Sequential{0.05, "", []int{20}}, one, `spending: expected obrien-fleming or pocock, found ""`},
		{Sequential{0.7, Pocock, []int{20}}, one, "alpha: expected more than 0 and at most 0.5, found 0.7"},
		{Sequential{0.05, Pocock, nil}, one, "looks: expected 1 to 100, found 0"},
		{Sequential{0.05, Pocock, []int{10, 10}}, one, "look 2: expected an iteration after 10, found 10"},
		{Sequential{0.05, Pocock, []int{0, 10}}, one, "look 1: expected an iteration after 0, found 0"},
		{Sequential{0.05, Pocock, []int{501}}, one, "look 1: expected at most iteration 500, found 501"},
		{Sequential{0.05, Pocock, []int{3, 5}}, one, "look 2: expected at least iteration 6, before which no test can refuse at the level 0.05, found 5"},
		{fourLooks, []Block{{0, Pair{1, 2}}}, "iteration: expected 1 or more, found 0"},
		{fourLooks, []Block{{2, Pair{1, 2}}, {2, Pair{1, 3}}}, "iteration 2: expected one pair, found several"},
		{fourLooks, []Block{{4, Pair{1, 0}}}, "iteration 4: expected positive values, found 1 and 0"},
		{fourLooks, []Block{{4, Pair{math.NaN(), 1}}}, "iteration 4: expected positive values, found NaN and 1"},
	} {
		if _, err := c.s.Evaluate(c.blocks, 20); err == nil || err.Error() != c.want {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}
