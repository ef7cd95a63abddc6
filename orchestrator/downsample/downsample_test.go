package downsample_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/downsample"
)

var nan = math.NaN()

func TestFewSamplesAreKept(t *testing.T) {
	s := downsample.New(0, 3, 3, 10)
	s.Add(0, []float64{5})
	s.Add(1, []float64{6, 1})
	s.Add(3, []float64{nan, 2})
	at, columns := s.Columns()
	require.Equal(t, []float64{0, 1, 3}, at)
	require.False(t, s.Reduced())
	require.Len(t, columns, 2)
	require.Equal(t, []float64{5, 6}, columns[0][:2])
	require.True(t, math.IsNaN(columns[0][2]) && math.IsNaN(columns[1][0]))
}

func TestManySamplesKeepTheirExtremes(t *testing.T) {
	const n, most = 10_000, 600
	s := downsample.New(0, n-1, n, most)
	for i := range n {
		window := float64(i % 100)
		if i == 1234 {
			window = -7
		}
		if i == 7777 {
			window = 1000
		}
		rtt := nan
		if i >= n/2 {
			rtt = 3
		}
		s.Add(float64(i), []float64{float64(2 * i), window, rtt})
	}
	at, columns := s.Columns()
	require.True(t, s.Reduced())
	require.EqualValues(t, n, s.Samples())
	require.LessOrEqual(t, len(at), most)
	require.Greater(t, len(at), most/2)
	require.True(t, slices.IsSorted(at))
	require.EqualValues(t, 0, at[0])
	require.EqualValues(t, n-1, at[len(at)-1])
	for i, x := range at { // a count that only rises is as it was at those times
		require.InDelta(t, 2*x, columns[0][i], 0)
	}
	require.EqualValues(t, -7, slices.Min(columns[1]))
	require.EqualValues(t, 1000, slices.Max(columns[1]))
	// What fell from its high to its low is not shown as if it had risen.
	peak := slices.Index(columns[1], 1000)
	require.InDelta(t, 7777, at[peak], float64(n)/(most/2))
	require.True(t, math.IsNaN(columns[2][0]))
	require.EqualValues(t, 3, columns[2][len(at)-1])
}

func TestOrderWithinAnInterval(t *testing.T) {
	for _, c := range []struct {
		in, want []float64
	}{
		{[]float64{1, 9, 4}, []float64{1, 9}},
		{[]float64{5, 9, 1}, []float64{9, 1}},
		{[]float64{9, 9, 1, 9}, []float64{1, 9}},
		{[]float64{2, 2, 2}, []float64{2, 2}},
		{[]float64{nan, 3, nan}, []float64{3, 3}},
	} {
		s := downsample.New(0, 10, 100, 2)
		for i, x := range c.in {
			s.Add(float64(i), []float64{x})
		}
		at, columns := s.Columns()
		require.Equal(t, []float64{0, float64(len(c.in) - 1)}, at)
		require.Equal(t, c.want, columns[0], "%v", c.in)
	}
}

// For any input, lengths agree, times are in order, and no extreme is lost.
func FuzzSeries(f *testing.F) {
	f.Add(0.0, 10.0, int64(50), 4, []byte{1, 2, 3, 200, 0, 9, 9})
	f.Add(5.0, 5.0, int64(1), 0, []byte{7})
	f.Add(math.Inf(-1), math.NaN(), int64(1<<40), 3, []byte("any text"))
	f.Fuzz(func(t *testing.T, from, to float64, count int64, most int, values []byte) {
		most = most % 1000
		s := downsample.New(from, to, count, most)
		low, high := math.Inf(1), math.Inf(-1)
		for i, v := range values {
			x := float64(int8(v))
			if v == 0 {
				x = nan
			} else {
				low, high = min(low, x), max(high, x)
			}
			s.Add(from+float64(i), []float64{x, float64(i)})
		}
		at, columns := s.Columns()
		for _, c := range columns {
			if len(c) != len(at) {
				t.Fatalf("%d times, %d values", len(at), len(c))
			}
		}
		if !slices.IsSorted(at) && !math.IsNaN(from) {
			t.Errorf("times %v", at)
		}
		if s.Reduced() && len(at) > most {
			t.Errorf("%d points of at most %d", len(at), most)
		}
		if len(columns) > 0 && low <= high {
			known := slices.DeleteFunc(columns[0], math.IsNaN)
			if slices.Min(known) != low || slices.Max(known) != high {
				t.Errorf("extremes %v to %v became %v", low, high, known)
			}
		}
	})
}
