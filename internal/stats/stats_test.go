package stats

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var nan, inf = math.NaN(), math.Inf(1)

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func check(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !same(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestWhatHasNoValue(t *testing.T) {
	for _, c := range []struct {
		name string
		xs   []float64
		want Description
	}{
		{"none", nil, Description{0, nan, nan, nan, nan, nan}},
		{"one", []float64{7}, Description{1, 7, 7, 7, nan, 7}},
		{"without spread", []float64{7, 7, 7}, Description{3, 7, 7, 7, 0, 7}},
		{"a NaN among them", []float64{1, nan, 3}, Description{3, nan, nan, nan, nan, nan}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Describe(c.xs)
			if d.N != c.want.N {
				t.Errorf("n: got %d, want %d", d.N, c.want.N)
			}
			check(t, "mean", d.Mean, c.want.Mean)
			check(t, "min", d.Min, c.want.Min)
			check(t, "max", d.Max, c.want.Max)
			check(t, "sd", d.SD, c.want.SD)
			check(t, "median", d.Median, c.want.Median)
			wantInterval := c.name == "without spread"
			if got := MeanT(c.xs, 0.95).Defined(); got != wantInterval {
				t.Errorf("t interval defined: %v", got)
			}
			if got := (Bootstrap{}).Mean(c.xs, 0.95).Defined(); got != wantInterval {
				t.Errorf("bootstrap interval defined: %v", got)
			}
		})
	}
	for _, level := range []float64{0, 1, -1, 2, nan} {
		xs := []float64{1, 2, 3}
		if MeanT(xs, level).Defined() || (Bootstrap{}).Mean(xs, level).Defined() || Wilson(1, 2, level).Defined() {
			t.Errorf("an interval of level %v", level)
		}
		if _, ok := Iterations(xs, level, 0.1); ok {
			t.Errorf("iterations for level %v", level)
		}
	}
	for _, p := range []float64{-1, 100.5, nan} {
		check(t, "percentile out of range", Percentile([]float64{1, 2}, p), nan)
	}
	for _, kn := range [][2]int{{0, 0}, {-1, 3}, {4, 3}} {
		if Wilson(kn[0], kn[1], 0.95).Defined() {
			t.Errorf("share of %v", kn)
		}
	}
	if (Bootstrap{}).Mean([]float64{1, inf}, 0.95).Defined() {
		t.Error("a bootstrap interval of an infinite value")
	}
}

func TestArgumentsStayAsTheyAre(t *testing.T) {
	xs := []float64{3, -1, 2, 0, -2}
	before := slices.Clone(xs)
	Describe(xs)
	Percentile(xs, 30)
	Bootstrap{Resamples: 10}.Mean(xs, 0.9)
	Wilcoxon(xs)
	Holm(xs)
	Jain(xs)
	if !slices.Equal(xs, before) {
		t.Errorf("changed to %v", xs)
	}
}

// A percentile by selection is that by sorting, ties and order notwithstanding.
func TestPercentileSelect(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		xs := make([]float64, 1+rng.IntN(40))
		for i := range xs {
			xs[i] = float64(rng.IntN(1 + rng.IntN(30)))
		}
		p := 100 * rng.Float64()
		if rng.IntN(4) == 0 {
			p = float64(100 * rng.IntN(2))
		}
		want := Percentile(xs, p)
		if got := percentileSelect(slices.Clone(xs), p); got != want {
			t.Fatalf("percentile %v of %v: %v, expected %v", p, xs, got, want)
		}
	}
}

func TestBootstrapRepeats(t *testing.T) {
	xs := []float64{1, 5, 2, 9, 3, 4, 7, 6}
	a, b := Bootstrap{Seed: 4, Stream: 2}.Mean(xs, 0.95), Bootstrap{Seed: 4, Stream: 2}.Mean(xs, 0.95)
	if a != b {
		t.Errorf("the same seed gave %v and %v", a, b)
	}
	if c := (Bootstrap{Seed: 5, Stream: 2}).Mean(xs, 0.95); c == a {
		t.Error("another seed gave the same interval")
	}
	if c := (Bootstrap{Seed: 4, Stream: 3}).Mean(xs, 0.95); c == a {
		t.Error("another stream gave the same interval")
	}
	// All resamples are on one side of the mean or equal to it: the percentiles remain.
	if one := (Bootstrap{Resamples: 1}).Mean(xs, 0.95); !one.Defined() || one.Low != one.High {
		t.Errorf("one resample gave %v", one)
	}
}

func TestMetrics(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"half of 16 kbit/s", NormalisedThroughput(1000, 16000), 0.5},
		{"no bandwidth", NormalisedThroughput(1000, 0), nan},
		{"gain", GainPercent(80, 20), 75},
		{"loss", GainPercent(20, 30), -50},
		{"gain without a reference", GainPercent(0, 3), nan},
		{"deviation", DeviationPercent(200, 190), -5},
		{"deviation from 0", DeviationPercent(0, 1), nan},
		{"share of a bound", ShareOfBound(3, 4), 0.75},
		{"no bound", ShareOfBound(0, 4), nan},
		{"no time", ShareOfBound(1, 0), nan},
		{"fair", Jain([]float64{2, 2, 2, 2}), 1},
		{"one has all", Jain([]float64{0, 8, 0, 0}), 0.25},
		{"two of three", Jain([]float64{1, 1, 0}), 2.0 / 3},
		{"large shares", Jain([]float64{1e200, 1e200}), 1},
		{"no flows", Jain(nil), nan},
		{"all are zero", Jain([]float64{0, 0}), nan},
		{"negative share", Jain([]float64{1, -1}), nan},
	} {
		if !same(c.got, c.want) && math.Abs(c.got-c.want) > 1e-15 {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestPairUpLeavesHalvesOut(t *testing.T) {
	got := PairUp(map[int]float64{1: 10, 2: 20, 4: 40}, map[int]float64{4: 4, 2: 2, 3: 3})
	if want := []Pair{{20, 2}, {40, 4}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c := Compare(nil, 0.95)
	if c.Pairs != 0 || !math.IsNaN(c.Difference) || !math.IsNaN(c.Ratio) || !math.IsNaN(c.Wilcoxon.P) || c.RatioInterval.Defined() {
		t.Errorf("without pairs: %+v", c)
	}
	c = Compare([]Pair{{1, 2}, {0, 3}}, 0.95)
	if !math.IsNaN(c.Ratio) || c.RatioInterval.Defined() || c.Difference != 2 {
		t.Errorf("with a reference of 0: %+v", c)
	}
}

func TestWilcoxonEdges(t *testing.T) {
	for _, d := range [][]float64{nil, {nan, 1}, {0, 0}} {
		if w := Wilcoxon(d); !math.IsNaN(w.P) || !math.IsNaN(w.RankBiserial) || w.N != 0 {
			t.Errorf("%v: %+v", d, w)
		}
	}
	if w := Wilcoxon([]float64{0, 0}); w.Zeros != 2 || w.Statistic() != 0 {
		t.Errorf("zeros alone: %+v", w)
	}
	// Three differences of one sign: 2/8 is the least P that three can give.
	if w := Wilcoxon([]float64{3, 1, 2, 0}); w.P != 0.25 || w.RankBiserial != 1 || w.Zeros != 1 || !w.Exact {
		t.Errorf("three of one sign: %+v", w)
	}
	// The exact distribution and the approximation meet where one hands over to the other.
	d, twice := make([]float64, maxExact+1), make([]int, maxExact+1)
	for i := range d {
		d[i], twice[i] = float64(i+1), 2*(i+1)
		if i%3 == 0 {
			d[i] = -d[i]
		}
	}
	over := Wilcoxon(d)
	if exact := exactP(twice, int(2*over.Statistic())); over.Exact || math.Abs(over.P-exact) > 0.05*exact {
		t.Errorf("P %v by approximation (%v), %v counted out", over.P, !over.Exact, exact)
	}
	if !Wilcoxon(d[:maxExact]).Exact {
		t.Errorf("%d differences were not counted out", maxExact)
	}
}

func TestHolmKeepsNaN(t *testing.T) {
	got := Holm([]float64{0.03, nan, 0.02})
	if got[0] != 0.04 || !math.IsNaN(got[1]) || got[2] != 0.04 {
		t.Errorf("got %v", got)
	}
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestIterations(t *testing.T) {
	if n, ok := Iterations([]float64{5, 5, 5}, 0.95, 0.01); !ok || n != 2 {
		t.Errorf("without spread: %d, %v", n, ok)
	}
	for name, xs := range map[string][]float64{"one": {5}, "none": nil, "mean 0": {-1, 1}, "spread too large": {-1e6, 1e6 + 1}, "NaN": {1, nan}} {
		if n, ok := Iterations(xs, 0.95, 0.01); ok {
			t.Errorf("%s: %d", name, n)
		}
	}
	if _, ok := Iterations([]float64{1, 2}, 0.95, 0); ok {
		t.Error("perfect precision was promised")
	}
}

// floats reads values from fuzzed bytes, eight for each.
func floats(b []byte) []float64 {
	var xs []float64
	for ; len(b) >= 8 && len(xs) < 200; b = b[8:] {
		xs = append(xs, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return xs
}

func bytesOf(xs ...float64) []byte {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func seeds(f *testing.F) {
	for _, xs := range [][]float64{nil, {1}, {1, 2}, {0, 0, 1, -1, 2}, {nan, 1}, {inf, -inf, 3}, {inf, -inf}, {1e308, 1e308, -1e308}, {5e-324, 1}, {3, 3, 3, 3}} {
		f.Add(bytesOf(xs...))
	}
}

func FuzzDescribe(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		xs := floats(b)
		d := Describe(xs)
		low, high := Percentile(xs, 10), Percentile(xs, 90)
		MeanT(xs, 0.95)
		j := Jain(xs)
		if n, ok := Iterations(xs, 0.95, 0.05); ok && (n < 2 || n > maxIterations) {
			t.Errorf("%d iterations", n)
		}
		if !math.IsNaN(j) && (j < 0 || j > 1+1e-9) {
			t.Errorf("fairness %v", j)
		}
		if len(xs) == 0 || hasNaN(xs) {
			if !math.IsNaN(d.Median) || !math.IsNaN(d.Min) || !math.IsNaN(d.Max) || !math.IsNaN(d.Mean) {
				t.Errorf("a value from nothing: %+v", d)
			}
			return
		}
		if !finite(xs) {
			return // between two infinities there is no value
		}
		if !(d.Min <= low && low <= d.Median && d.Median <= high && high <= d.Max) {
			t.Errorf("out of order: %v %v %v %v %v", d.Min, low, d.Median, high, d.Max)
		}
		if d.SD < 0 {
			t.Errorf("standard deviation %v", d.SD)
		}
		if len(xs) <= 20 {
			if i := (Bootstrap{Resamples: 50}).Mean(xs, 0.9); i.Defined() && i.Low > i.High {
				t.Errorf("interval %v", i)
			}
		}
	})
}

func FuzzWilcoxon(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		xs := floats(b)
		turned := make([]float64, len(xs))
		for i, x := range xs {
			turned[i] = -x
		}
		w, v := Wilcoxon(xs), Wilcoxon(turned)
		if w.N == 0 {
			if !math.IsNaN(w.P) {
				t.Errorf("P %v of nothing", w.P)
			}
			return
		}
		if !(w.P >= 0 && w.P <= 1) || w.P == 0 && w.Exact {
			t.Errorf("P %v", w.P)
		}
		if w.P != v.P || w.RankBiserial != -v.RankBiserial || w.WPlus != v.WMinus {
			t.Errorf("not the same when turned: %+v, %+v", w, v)
		}
		if want := float64(w.N) * float64(w.N+1) / 2; w.WPlus+w.WMinus != want {
			t.Errorf("rank sums %v and %v, together %v", w.WPlus, w.WMinus, want)
		}
	})
}

func FuzzHolm(f *testing.F) {
	seeds(f)
	f.Add(bytesOf(0.01, 0.04, 0.03))
	f.Fuzz(func(t *testing.T, b []byte) {
		ps := floats(b)
		for i, a := range Holm(ps) {
			if p := ps[i]; p >= 0 && p <= 1 && !(a >= p && a <= 1) {
				t.Errorf("%v became %v", p, a)
			}
		}
	})
}

func TestRatioOfMeans(t *testing.T) {
	r := RatioOfMeans([]Pair{{2, 1}, {4, 2}, {6, 3}})
	check(t, "ratio", r.Ratio, 0.5)
	check(t, "variance of a constant ratio", r.Variance, 0)
	r = RatioOfMeans([]Pair{{1, 2}, {3, 2}})
	check(t, "ratio", r.Ratio, 1)
	// Residuals 1 and −1 about the ratio; their variance 2, over 2 pairs, over a mean reference of 2 squared.
	check(t, "variance", r.Variance, 0.25)
	for _, pairs := range [][]Pair{nil, {{0, 1}}, {{-1, 1}, {1, 1}}} {
		if r := RatioOfMeans(pairs); !math.IsNaN(r.Ratio) || !math.IsNaN(r.Variance) {
			t.Errorf("%v: %+v", pairs, r)
		}
	}
	if r := RatioOfMeans([]Pair{{2, 3}}); r.Ratio != 1.5 || !math.IsNaN(r.Variance) {
		t.Errorf("one pair: %+v", r)
	}
}

// The interval of a mean by its own variance is that of the sample.
func TestOfMean(t *testing.T) {
	xs := []float64{3, 1, 4, 1, 5}
	sd := StdDev(xs)
	got, want := OfMean(Mean(xs), sd*sd/5, 4, 0.95), MeanT(xs, 0.95)
	if math.Abs(got.Low-want.Low) > 1e-12 || math.Abs(got.High-want.High) > 1e-12 {
		t.Errorf("got %v, expected %v", got, want)
	}
	for _, i := range []Interval{OfMean(1, nan, 3, 0.95), OfMean(1, 1, 0, 0.95), OfMean(1, 1, nan, 0.95), OfMean(nan, 1, 3, 0.95), OfMean(1, -1, 3, 0.95), OfMean(1, 1, 3, 1)} {
		if i.Defined() {
			t.Errorf("defined: %v", i)
		}
	}
	if i := OfMean(2, 0, 3, 0.95); i.Low != 2 || i.High != 2 {
		t.Errorf("without variance: %v", i)
	}
}

// Counting out all resamples gives what very many drawn ones approach.
func TestCountedBootstrap(t *testing.T) {
	for _, xs := range [][]float64{{1, 5}, {1, 5, 2}, {1, 1, 4, 9}, {1, 5, 2, 9, 3}, {3, 1, 4, 1, 5, 9, 2.6}} {
		counted, drawn := Bootstrap{}.Mean(xs, 0.9), Bootstrap{Resamples: 200_000, Seed: 1}.Mean(xs, 0.9)
		// An end that lies on the edge of a step may fall to either side of it.
		step := (slices.Max(xs) - slices.Min(xs)) / float64(len(xs)) / 2
		if len(xs) > 4 {
			step /= 5
		}
		if math.Abs(counted.Low-drawn.Low) > step || math.Abs(counted.High-drawn.High) > step {
			t.Errorf("%v: counted %v, drawn %v", xs, counted, drawn)
		}
		if m := Mean(xs); counted.Low > m || counted.High < m || (Bootstrap{Seed: 9}).Mean(xs, 0.9) != counted {
			t.Errorf("%v: %v", xs, counted)
		}
	}
}

// Three throughputs that lie far apart have a Student's interval that begins below 0; what
// people see begins at 0. Differences keep theirs.
func TestMeanIntervalOfPositiveValues(t *testing.T) {
	if raw := MeanT([]float64{50, 80, 230}, 0.95); raw.Low >= 0 {
		t.Fatalf("%+v", raw)
	}
	raw, got := MeanT([]float64{50, 80, 230}, 0.95), MeanInterval([]float64{50, 80, 230}, 0.95)
	if got.Low != 0 || got.High != raw.High {
		t.Errorf("%+v, want 0 to %v", got, raw.High)
	}
	if got, raw := MeanInterval([]float64{-1, 2, 3}, 0.95), MeanT([]float64{-1, 2, 3}, 0.95); got != raw {
		t.Errorf("%+v, want %+v", got, raw)
	}
	if MeanInterval([]float64{1}, 0.95).Defined() || MeanInterval(nil, 0.95).Defined() {
		t.Error("an interval of fewer than two values")
	}
}

// By hand: the deviations of the first sample from its median 11 are 0, 1, 1, 2 and 89.
func TestUsual(t *testing.T) {
	got := Usual([]float64{9, 10, 11, 12, 100})
	check(t, "low", got.Low, 11-UsualWidth*(1/0.6745))
	check(t, "high", got.High, 11+UsualWidth*(1/0.6745))
	got = Usual([]float64{20, 20, 20, 20, 20, 20, 20, 12}) // mean deviation 1
	check(t, "low, of same values", got.Low, 20-UsualWidth*1.253314)
	check(t, "high, of same values", got.High, 20+UsualWidth*1.253314)
	for _, none := range [][]float64{nil, {1}, {7, 7, 7}, {1, nan, 2}} {
		if i := Usual(none); i.Defined() {
			t.Errorf("%v: %v is usual", none, i)
		}
	}
}
