package report

import (
	"math"
	"testing"
)

func TestQuantity(t *testing.T) {
	for s, want := range map[string]float64{
		"0.05": 0.05, "5 %": 5, "16 kbit/s": 16e3, "1 Mbit/s": 1e6, "3 KiB": 3072, "834ms": 0.834, "10 m": 10, "-3": -3, " 7 ": 7, "1e3": 1000,
	} {
		if got, ok := quantity(s); !ok || math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%q: %v, %v, expected %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "long", "0.001, 0.01", "NaN", "Inf", "%", "fifth 5", "1e999"} {
		if got, ok := quantity(s); ok {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"0.05", "5 %", "16 kbit/s", "3 KiB", "834ms", "1h", "10 m", "Inf", "NaN", "long", "1e400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, ok := quantity(s); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			t.Errorf("%q: %v", s, x)
		}
	})
}
