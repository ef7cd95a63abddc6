package telemetry

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A last known value ends with the failure of its source, and one that was read after a
// failure begins there.
func TestValuesEndWithTheirSource(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds ...int) (out []time.Time) {
		for _, s := range seconds {
			out = append(out, began.Add(time.Duration(s)*time.Second))
		}
		return out
	}
	for _, c := range []struct {
		name    string
		read    []int
		failed  []int
		counter bool
		mean    float64 // of the attempt from 0 to 10 s; NaN: not known
	}{
		{"the last reading before", []int{-20}, nil, false, 0},
		{"the source failed since", []int{-20}, []int{-5}, false, math.NaN()},
		{"it failed before", []int{-20}, []int{-30}, false, 0},
		{"it failed in the attempt", []int{-20}, []int{5}, false, 0},
		{"it failed later", []int{-20}, []int{15}, false, 0},
		{"the first reading after", []int{20}, nil, false, 0},
		{"it was down until then", []int{20}, []int{-100}, false, math.NaN()},
		{"down between both", []int{-20, 20}, []int{5}, false, 0},
		{"down before, read within", []int{-20, 5}, []int{-5}, false, 1},
		{"a counter's growth", []int{-10, 10}, nil, true, 1. / 20},
		{"a counter across a failure", []int{-10, 10}, []int{5}, true, math.NaN()},
	} {
		f := &series{counter: c.counter, at: at(c.read...), failed: at(c.failed...)}
		for i := range f.at {
			f.value = append(f.value, float64(i))
		}
		got := f.during(began, began.Add(10*time.Second))
		if math.IsNaN(c.mean) {
			require.Nil(t, got, c.name)
			continue
		}
		require.NotNil(t, got, c.name)
		require.InDelta(t, c.mean, got.Mean, 1e-9, c.name)
		lo, hi := f.around(began, began.Add(10*time.Second))
		require.Less(t, lo, hi, c.name)
	}
	f := &series{at: at(1, 3), value: []float64{7, 8}, failed: at(0, 2, 4)}
	var drawn []float64
	f.points(func(_ time.Time, value float64) { drawn = append(drawn, value) })
	require.Len(t, drawn, 5)
	require.True(t, math.IsNaN(drawn[0]) && math.IsNaN(drawn[2]) && math.IsNaN(drawn[4]))
	require.Equal(t, []float64{7, 8}, []float64{drawn[1], drawn[3]})
}
