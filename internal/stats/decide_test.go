package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// normalPairs are pairs whose logarithms of the ratios are the quantiles of a normal
// distribution: a sample without luck, whose estimate and spread do not change with n.
func normalPairs(n int, mean, sd float64) []Pair {
	pairs := make([]Pair, n)
	for i := range pairs {
		z := distuv.UnitNormal.Quantile((float64(i) + 0.5) / float64(n))
		pairs[i] = Pair{Reference: 100, Value: 100 * math.Exp(mean+sd*z)}
	}
	return pairs
}

// The number of further pairs is that at which a sample of the same estimate and spread
// decides: not with a fifth fewer in all, and with a fifth more.
func TestMoreIsWhereItIsDecided(t *testing.T) {
	for _, c := range []struct {
		n           int
		mean, sd    float64
		comparisons int
	}{
		{10, 0.1, 0.2, 1}, {10, -0.1, 0.2, 1}, {20, 0.1, 0.4, 1}, {10, 0.1, 0.2, 6}, {30, 0.05, 0.2, 1}, {40, 0.03, 0.15, 10}, {5, 0.1, 0.15, 1}, {8, 0.2, 0.4, 3},
	} {
		d := Decide(normalPairs(c.n, c.mean, c.sd), 0.95, c.comparisons)
		if d.Decided || d.More < 1 {
			t.Errorf("%+v: decided %v, more %d", c, d.Decided, d.More)
			continue
		}
		all := float64(c.n + d.More)
		if few := int(all * 0.8); Decide(normalPairs(few, c.mean, c.sd), 0.95, c.comparisons).Decided {
			t.Errorf("%+v: %d more, but %d pairs decide", c, d.More, few)
		}
		if many := int(math.Ceil(all * 1.2)); !Decide(normalPairs(many, c.mean, c.sd), 0.95, c.comparisons).Decided {
			t.Errorf("%+v: %d more, but %d pairs do not decide", c, d.More, many)
		}
	}
}

func TestMoreSaysNothing(t *testing.T) {
	for name, pairs := range map[string][]Pair{
		"none":              nil,
		"two pairs":         {{100, 150}, {100, 160}},
		"equal":             {{100, 100}, {90, 90}, {80, 80}},
		"within noise":      normalPairs(12, 0.05, 0.3), // a standard error of 0.087
		"not positive":      {{100, 120}, {0, 120}, {100, 130}, {100, 140}},
		"decided":           normalPairs(12, 0.5, 0.1),
		"nothing to divide": {{100, math.Inf(1)}, {100, 100}, {100, 120}},
	} {
		if d := Decide(pairs, 0.95, 1); d.More != 0 {
			t.Errorf("%s: %d more", name, d.More)
		}
	}
}

// Three pairs can decide nothing at 95 %, however clear they are; six of one sign can.
func TestMoreIsWhatTheTestNeeds(t *testing.T) {
	clear := []Pair{{100, 150}, {100, 151}, {100, 152}, {100, 153}, {100, 154}, {100, 155}, {100, 156}, {100, 157}, {100, 158}, {100, 159}}
	for comparisons, least := range map[int]int{1: 6, 3: 7, 6: 8, 10: 9} {
		if d := Decide(clear[:3], 0.95, comparisons); d.More != least-3 || d.Decided || d.Interval.Defined() {
			t.Errorf("%d comparisons: %+v", comparisons, d)
		}
		if d := Decide(clear[:least-1], 0.95, comparisons); d.Decided || d.More != 1 {
			t.Errorf("%d comparisons of %d pairs: %+v", comparisons, least-1, d)
		}
		d := Decide(clear[:least], 0.95, comparisons)
		if !d.Decided || !(d.Interval.Low > 1) || !(d.P < 0.05) {
			t.Errorf("%d comparisons of %d pairs: %+v", comparisons, least, d)
		}
	}
}

func TestMoreIsBounded(t *testing.T) {
	// 1.1 standard errors away, with an interval of a hundred comparisons.
	if d := Decide(normalPairs(300, 0.0635, 1), 0.95, 100); d.More != ManyMore+1 {
		t.Errorf("%+v", d)
	}
}

// Decided, the interval and P are one judgement, and one comparison is that of Compare.
func TestDecideAsCompare(t *testing.T) {
	for n := 2; n < 30; n++ {
		for _, mean := range []float64{-0.3, -0.08, 0, 0.02, 0.08, 0.3} {
			pairs := normalPairs(n, mean, 0.2)
			c, d := Compare(pairs, 0.95), Decide(pairs, 0.95, 1)
			if c.Ratio != d.Ratio || c.RatioP != d.P || d.Decided != (d.P < 0.05) {
				t.Errorf("n %d, mean %v: %+v, %+v", n, mean, c, d)
			}
			if six := Decide(pairs, 0.95, 6); six.Decided != (six.P < 0.05) || six.Decided && !d.Decided || six.P < d.P {
				t.Errorf("n %d, mean %v, of six: %+v", n, mean, six)
			}
		}
	}
}
