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
