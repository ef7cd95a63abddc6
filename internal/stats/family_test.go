package stats

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// threeOf is a campaign of one reference and three others, whose logarithms differ from it.
func threeOf(n int, effects []float64, rng *rand.Rand) []FamilyComparison {
	out := make([]FamilyComparison, len(effects))
	reference := make([]float64, n)
	for i := range reference {
		reference[i] = rng.NormFloat64()
	}
	for k, effect := range effects {
		out[k] = FamilyComparison{Reference: "tcp", Value: string(rune('a' + k))}
		for i := range n {
			// The common reference makes the comparisons depend on each other.
			out[k].Blocks = append(out[k].Blocks, blocksOf(1, 0, func(r *rand.Rand) float64 {
				return effect + (r.NormFloat64()-reference[i])/1.4142
			}, rng)...)
			out[k].Blocks[i].Iteration = i + 1
		}
	}
	return out
}

func judged(t *testing.T, s Sequential, comparisons []FamilyComparison, completed int) ([]FamilyLook, []string) {
	t.Helper()
	out, beaten, err := s.Family(comparisons, true, completed)
	if err != nil {
		t.Fatal(err)
	}
	return out, beaten
}

// Where one comparison has a difference and two have none, one of the two is decided in at most
// 5 % of campaigns; so also where none has.
func TestFamilyLevel(t *testing.T) {
	s := Sequential{0.05, OBrienFleming, []int{5, 10, 15, 20}}
	for _, effects := range [][]float64{{0, 0, 0}, {0, 0, -2}} {
		rng, wrong, found := rand.New(rand.NewPCG(35, 20)), 0, 0
		const n = 1500
		for range n {
			out, _ := judged(t, s, threeOf(20, effects, rng), 20)
			if slices.ContainsFunc(out[:2], func(j FamilyLook) bool { return j.Stops }) || effects[2] == 0 && out[2].Stops {
				wrong++
			}
			if out[2].Stops && effects[2] != 0 {
				found++
			}
		}
		t.Logf("effects %v: %.2f %% of campaigns decide a comparison without a difference, %.1f %% the one with one", effects, 100*float64(wrong)/n, 100*float64(found)/n)
		if wrong > n*55/1000 || wrong < n/50 {
			t.Errorf("effects %v: %d of %d", effects, wrong, n)
		}
		if effects[2] != 0 && found < n*99/100 {
			t.Errorf("effects %v: found %d of %d", effects, found, n)
		}
	}
}

// A look's boundary at a higher level is never smaller, on which Holm's correction depends.
func TestFamilyLevelsAreNested(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 21))
	for range 200 {
		s := Sequential{0.05, Pocock, []int{6, 8, 10, 12, 15, 18, 20}}
		if rng.IntN(2) == 0 {
			s.Spending = OBrienFleming
		}
		judge := s.judge(threeOf(20, []float64{0}, rng)[0].Blocks)
		for k := range s.Looks {
			before := -1
			for _, parts := range []int{6, 5, 4, 3, 2, 1} {
				j := judge(parts, k)
				if j.Boundary < before {
					t.Fatalf("look %d: boundary %d at alpha/%v and %d below it", k, j.Boundary, parts, before)
				}
				if j.Spent > s.Alpha/float64(parts) {
					t.Fatalf("look %d: spent %v at alpha/%v", k, j.Spent, parts)
				}
				before = j.Boundary
			}
		}
	}
}

// A treatment that is clearly worse is beaten early and has no look afterwards; the others
// are then judged at a higher level.
func TestFamilyDropsTheBeaten(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 22))
	s := Sequential{0.05, OBrienFleming, []int{5, 10, 15, 20}}
	comparisons := threeOf(20, []float64{0, 0, -4}, rng)
	out, beaten := judged(t, s, comparisons, 20)
	if !slices.Equal(beaten, []string{"c"}) || !out[2].Stops || out[2].Iteration != 15 || out[2].Level != 0.05/3 {
		t.Errorf("beaten %v, %+v", beaten, out[2])
	}
	if out[0].Iteration != 20 || out[0].Level != 0.05/2 || out[0].Stops {
		t.Errorf("the others: %+v", out[0])
	}
	// What comes after the stop changes nothing of it.
	cut := slices.Clone(comparisons)
	cut[2].Blocks = cut[2].Blocks[:15]
	again, _ := judged(t, s, cut, 20)
	if again[2] != out[2] || again[0] != out[0] {
		t.Errorf("%+v, and with later pairs %+v", again, out)
	}
	if _, beaten, err := s.Family(comparisons, false, 20); err != nil || !slices.Equal(beaten, []string{"tcp"}) {
		t.Errorf("where lower is better: %v, %v", beaten, err)
	}
	comparisons[1].Blocks[3].Value = 0
	if _, _, err := s.Family(comparisons, true, 20); err == nil || !strings.HasPrefix(err.Error(), "b against tcp: iteration 4: expected positive values") {
		t.Error(err)
	}
}

// The first look that can decide one of so many comparisons is the first that does where one
// treatment is always the better one, and no earlier look has.
func TestFirstDecisive(t *testing.T) {
	for _, c := range []struct {
		rule        Sequential
		comparisons int
		want        int
	}{
		{Sequential{0.05, OBrienFleming, []int{10, 15, 20, 25, 30}}, 1, 15},
		{Sequential{0.05, OBrienFleming, []int{10, 15, 20, 25, 30}}, 6, 15},
		{Sequential{0.05, Pocock, []int{10, 15, 20, 25, 30}}, 6, 10},
		{Sequential{0.05, Pocock, []int{5, 10, 15, 20, 25, 30}}, 6, 15},
		{Sequential{0.05, Pocock, []int{3, 6, 7}}, 3, 0},
		{Sequential{0.05, OBrienFleming, []int{3, 6, 8}}, 3, 8},
		{Sequential{0.5, Pocock, []int{2}}, 1, 2},
	} {
		comparisons := make([]FamilyComparison, c.comparisons)
		for i := range comparisons {
			comparisons[i] = FamilyComparison{Reference: "a", Value: string(rune('b' + i))}
			for iteration := 1; iteration <= c.rule.Looks[len(c.rule.Looks)-1]; iteration++ {
				value := 100 + 10*float64(iteration%7)
				if i > 0 { // the others differ in nothing
					value = 100 + float64(iteration)*(2*float64(iteration%2)-1)
				}
				comparisons[i].Blocks = append(comparisons[i].Blocks, Block{iteration, Pair{Reference: 99, Value: value}})
			}
		}
		first := 0
		for _, look := range c.rule.Looks {
			found, _, err := c.rule.Family(comparisons, false, look)
			if err != nil {
				t.Fatal(err)
			}
			if found[0].Stops {
				first = look
				break
			}
		}
		if got := c.rule.FirstDecisive(c.comparisons); first != c.want || got != c.want {
			t.Errorf("%+v: the look after %d decides, FirstDecisive is %d", c, first, got)
		}
	}
}
