package stats

import (
	"math"
	"testing"
	"time"
)

// TestRatingOfDefaults: with all default values R is 93.2 (G.107, table 2 and section 7.7).
func TestRatingOfDefaults(t *testing.T) {
	if r := (Codec{Bpl: 4.3}).Rating(0, 0, 1); math.Abs(r-93.2) > 0.05 {
		t.Errorf("R = %.3f, expected 93.2", r)
	}
}

// TestMOSAgreesWithG107: the scores of G.107, annex B, table B.1.
func TestMOSAgreesWithG107(t *testing.T) {
	for r, want := range map[float64]float64{90: 4.34, 80: 4.03, 70: 3.60, 60: 3.10, 50: 2.58, 93.2: 4.41, 0: 1, -5: 1, 100: 4.5} {
		if got := MOS(r); math.Abs(got-want) > 0.01 {
			t.Errorf("R = %g: %.3f, expected %.2f", r, got, want)
		}
	}
}

// TestLossAgreesWithG113: the impairment of G.729A with voice activity detection by losses,
// G.113 (02/2001), table I.4, in whole numbers.
func TestLossAgreesWithG113(t *testing.T) {
	for percent, want := range map[float64]float64{0: 11, 0.5: 13, 1: 15, 1.5: 17, 2: 19, 3: 23, 4: 26, 8: 36, 16: 49} {
		got := (Codec{Bpl: 1}).Rating(0, 0, 1) - G729A.Rating(0, percent/100, 1)
		if math.Abs(got-want) > 0.6 {
			t.Errorf("%g %%: Ie,eff = %.2f, expected %g", percent, got, want)
		}
	}
}

// TestBursts: losses in bursts are worse than independent ones, by G.107, equation 7-29.
func TestBursts(t *testing.T) {
	independent, bursts := G711.Rating(50, 0.02, 1), G711.Rating(50, 0.02, 2)
	if want := 95 * (2/(1+25.1) - 2/(2+25.1)); math.Abs(independent-bursts-want) > 1e-9 {
		t.Errorf("%.4f, expected %.4f", independent-bursts, want)
	}
	if got := burstRatio(0.02, 0.5); got != 1 {
		t.Errorf("ratio %g", got)
	}
	if got := burstRatio(0.2, 5); got != 4 {
		t.Errorf("ratio %g", got)
	}
}

// TestDelay: up to 150 ms most do not mind, at 400 ms many do (G.114, figure 1), and a
// longer delay is never better.
func TestDelay(t *testing.T) {
	before := 100.0
	for ms := 0.0; ms < 3000; ms += 10 {
		r := G711.Rating(ms, 0, 1)
		if r > before+1e-9 {
			t.Fatalf("%g ms: R = %.3f after %.3f", ms, r, before)
		}
		before = r
	}
	if r := G711.Rating(150, 0, 1); r < 85 || r > 92 {
		t.Errorf("150 ms: R = %.2f", r)
	}
	if r := G711.Rating(400, 0, 1); r < 55 || r > 68 {
		t.Errorf("400 ms: R = %.2f", r)
	}
}

// TestPlayout: the buffer waits for what is worth it: not for one packet in a hundred that
// comes a second late, and for all where they come at once.
func TestPlayout(t *testing.T) {
	delays := make([]float64, 101)
	for i := range delays {
		delays[i] = 50
	}
	same := G711.Quality(Call{Percentiles: delays})
	if want := G711.Rating(70, 0, 1); same.PlayoutMS != 50 || same.R != want || same.MOS != MOS(want) {
		t.Errorf("%+v, expected R = %g", same, want)
	}
	delays[100] = 1050
	if got := G711.Quality(Call{Percentiles: delays}); got.PlayoutMS != 50 || got.R != G711.Rating(70, 0.01, 1) {
		t.Errorf("%+v", got)
	}
	for i := 50; i <= 100; i++ {
		delays[i] = 80
	}
	if got := G711.Quality(Call{Percentiles: delays, Loss: 0.1, MeanBurst: 2}); got.PlayoutMS != 80 || math.Abs(got.R-G711.Rating(100, 0.1, 1.8)) > 1e-9 {
		t.Errorf("%+v", got)
	}
	if got := G711.Quality(Call{}); !math.IsNaN(got.MOS) {
		t.Errorf("of nothing: %+v", got)
	}
	if G729A.Own != 25*time.Millisecond {
		t.Error(G729A.Own)
	}
}
