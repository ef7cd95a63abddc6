package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// R's own example of t.test, of the data set sleep (Student 1908): t = -1.8608,
// df = 17.776, p-value = 0.07939, interval -3.3654832 to 0.2054832.
func TestWelch(t *testing.T) {
	first := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	second := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	w := Welch(first, second, 0.95)
	require.InDelta(t, 1.58, w.Difference, 1e-12)
	require.InDelta(t, -0.2054832, w.Interval.Low, 1e-6)
	require.InDelta(t, 3.3654832, w.Interval.High, 1e-6)
	require.InDelta(t, 0.07939, w.P, 5e-6)

	w = Welch(first, first[:1], 0.95)
	require.True(t, math.IsNaN(w.P))
	require.False(t, w.Interval.Defined())
	w = Welch([]float64{2, 2}, []float64{3, 3, 3}, 0.95)
	require.Equal(t, Unpaired{1, Interval{1, 1}, 0}, w)
	w = Welch([]float64{2, 2}, []float64{2, 2}, 0.95)
	require.Equal(t, Unpaired{0, Interval{0, 0}, 1}, w)
}

// The interval contains no difference exactly where the test does not reject it.
func TestWelchAgreesWithItself(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := make([]float64, 2+r.IntN(8)), make([]float64, 2+r.IntN(8))
		for i := range a {
			a[i] = r.NormFloat64()
		}
		shift, spread := 2*r.NormFloat64(), 3*r.Float64()
		for i := range b {
			b[i] = shift + spread*r.NormFloat64()
		}
		w := Welch(a, b, 0.95)
		if math.Abs(w.P-0.05) < 1e-9 {
			continue
		}
		require.Equal(t, w.P < 0.05, w.Interval.Low > 0 || w.Interval.High < 0, "%v %v: %v", a, b, w)
	}
}

// The bounds are the ratios that the test just rejects: (mean(b) − x·mean(a))² is t²·(var(b) + x²·var(a)).
func TestWelchRatioInvertsItsTest(t *testing.T) {
	a, b := []float64{100, 110, 95, 105}, []float64{88, 99, 93, 101, 90}
	w := WelchRatio(a, b, 0.95)
	require.InDelta(t, Mean(b)/Mean(a), w.Ratio, 1e-12)
	va, vb, x := varianceOfMean(a), varianceOfMean(b), w.Ratio
	degrees := (vb + x*x*va) * (vb + x*x*va) / (x*x*x*x*va*va/3 + vb*vb/4)
	for _, bound := range []float64{w.Interval.Low, w.Interval.High} {
		statistic := math.Abs(Mean(b)-bound*Mean(a)) / math.Sqrt(vb+bound*bound*va)
		require.InDelta(t, tQuantile(0.95, degrees), statistic, 1e-9)
	}
	require.Less(t, w.Interval.Low, w.Ratio)
	require.Greater(t, w.Interval.High, w.Ratio)

	// In other units it is the same.
	scaled := func(xs []float64) []float64 {
		out := make([]float64, len(xs))
		for i := range xs {
			out[i] = 1000 * xs[i]
		}
		return out
	}
	s := WelchRatio(scaled(a), scaled(b), 0.95)
	require.InDelta(t, w.Interval.Low, s.Interval.Low, 1e-12)
	require.InDelta(t, w.Interval.High, s.Interval.High, 1e-12)
}

// The interval contains the true ratio about as often as it says, for samples whose
// variances and sizes differ.
func TestWelchRatioCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(n int, mean, sd float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = mean + sd*r.NormFloat64()
		}
		return out
	}
	for _, c := range []struct{ n, m, sdA, sdB float64 }{{5, 5, 5, 5}, {10, 5, 3, 12}, {5, 20, 10, 4}} {
		const tries = 10000
		missed := [2]int{} // below and above
		for range tries {
			w := WelchRatio(draw(int(c.n), 100, c.sdA), draw(int(c.m), 90, c.sdB), 0.95)
			if 0.9 < w.Interval.Low {
				missed[0]++
			}
			if 0.9 > w.Interval.High {
				missed[1]++
			}
		}
		require.InDelta(t, 0.05, float64(missed[0]+missed[1])/tries, 0.015, "%v", c)
		require.InDelta(t, 0.025, float64(missed[0])/tries, 0.012, "%v", c)
	}
}

func TestWelchRatioOfWhatHasNone(t *testing.T) {
	none := func(w UnpairedRatio) bool { return !w.Interval.Defined() }
	for name, c := range map[string]struct{ a, b []float64 }{
		"one value": {[]float64{1, 2}, []float64{2}}, "no values": {nil, []float64{1, 2}}, "reference of 0": {[]float64{0, 0}, []float64{1, 2}},
		"reference that may be 0": {[]float64{0, 1, 30}, []float64{5, 6, 7}}, "no number": {[]float64{1, math.NaN()}, []float64{1, 2}},
	} {
		require.True(t, none(WelchRatio(c.a, c.b, 0.95)), name)
	}
	require.Equal(t, UnpairedRatio{0.5, Interval{0.5, 0.5}}, WelchRatio([]float64{4, 4}, []float64{2, 2, 2}, 0.95))
	require.Equal(t, UnpairedRatio{0, Interval{0, 0}}, WelchRatio([]float64{4, 5}, []float64{0, 0}, 0.95))
}
