package main

import (
	"math"
	"testing"
)

func TestHeld(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		difference, low, high float64
		said, missed          bool
	}{
		{1, 0.5, 1.5, false, false},
		{-2.9, -8, 2, false, false},
		{5, 4, 6, true, true},
		{-5, -6, -4, true, true},
		{5, -1, 11, true, false},
		{-5, -11, 1, true, false},
		{5, nan, nan, true, true}, // of one trial each: no reason to doubt it
		{nan, nan, nan, true, true},
	} {
		verdict, missed := held(tt.difference, tt.low, tt.high)
		if missed != tt.missed || (verdict != "") != tt.said {
			t.Errorf("%+v: %q, %t", tt, verdict, missed)
		}
	}
}

func TestPairedRatio(t *testing.T) {
	// The logarithms are 0 and 2·ln 2: mean ln 2, standard error ln 2, and t is 12.706.
	ratio, i, ok := pairedRatio([]float64{3, 8}, []float64{3, 2})
	if !ok || math.Abs(ratio-2) > 1e-9 || math.Abs(math.Log(i.High)-13.706*math.Ln2) > 0.01 || math.Abs(math.Log(i.Low)+11.706*math.Ln2) > 0.01 {
		t.Errorf("%g, %+v, %t", ratio, i, ok)
	}
	for _, v := range [][2][]float64{{{1}, {1}}, {{1, 2}, {1, 2, 3}}, {nil, nil}} {
		if _, _, ok := pairedRatio(v[0], v[1]); ok {
			t.Errorf("%v have a ratio", v)
		}
	}
}

// TestWelch compares with values that were computed by hand.
func TestWelch(t *testing.T) {
	x, y := []float64{1, 2, 3, 4}, []float64{2, 4, 6, 8}
	got := welch(x, y)
	// Difference 2.5, variance 5/12 + 20/12, degrees (25/12)²/((5/12)²/3+(20/12)²/3) = 4.41.
	if math.Abs(got.Low+1.365) > 0.01 || math.Abs(got.High-6.365) > 0.01 {
		t.Errorf("%+v", got)
	}
	if got := welch([]float64{5, 5}, []float64{6, 6}); got.Low != 1 || got.High != 1 {
		t.Errorf("without spread: %+v", got)
	}
	if got := welch([]float64{5}, []float64{6, 6}); got.Defined() {
		t.Errorf("of one value: %+v", got)
	}
}
