package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Whoever looks after every difference is wrong once in at most 5 % of campaigns.
func TestAnytimeLevel(t *testing.T) {
	for _, f := range families {
		rng, wrong := rand.New(rand.NewPCG(35, 10)), 0
		const n = 3000
		for range n {
			xs, crossed := make([]float64, 0, 40), false
			for range 40 {
				xs = append(xs, f.draw(rng))
				crossed = crossed || evidence(xs, 0) >= 20
			}
			if crossed {
				wrong++
			}
		}
		t.Logf("%s: %.2f %% of campaigns have an interval without the shift after one of 40 differences", f.name, 100*float64(wrong)/n)
		if wrong > n*55/1000 || wrong < n/100 {
			t.Errorf("%s: %d of %d", f.name, wrong, n)
		}
	}
}

// The evidence is fair: its mean over all signs of the next difference is what it was.
func TestEvidenceIsFair(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 11))
	for range 200 {
		xs := make([]float64, 1+rng.IntN(15))
		for i := range xs {
			xs[i] = 0.7 + rng.NormFloat64()
		}
		before, by := evidence(xs, 0.2), math.Abs(rng.NormFloat64())
		up, down := evidence(append(xs, 0.2+by), 0.2), evidence(append(xs, 0.2-by), 0.2)
		if math.Abs((up+down)/2-before) > 1e-9*before {
			t.Fatalf("%v before, %v and %v after", before, up, down)
		}
	}
}

// The interval contains all shifts against which there is not enough evidence, and its ends
// touch some.
func TestAnytimeIntervalIsAroundAll(t *testing.T) {
	rng, defined := rand.New(rand.NewPCG(35, 12)), 0
	for range 150 {
		xs := drawn(rng)
		i := Anytime(xs, 0.95)
		if !i.Defined() {
			continue
		}
		defined++
		for range 50 {
			shift := Median(xs) + 3*rng.NormFloat64()
			if (shift < i.Low || shift > i.High) && evidence(xs, shift) < 20 {
				t.Fatalf("%v: shift %v outside %v has the evidence %v", xs, shift, i, evidence(xs, shift))
			}
		}
		if s := SignedRankShift(xs, 0.95).Interval; i.High-i.Low < s.High-s.Low {
			t.Errorf("%v: %v is within the interval of one look, %v", xs, i, s)
		}
		const a = 1e-9
		if evidence(xs, i.Low) >= 20 && evidence(xs, i.Low+a) >= 20 || evidence(xs, i.High) >= 20 && evidence(xs, i.High-a) >= 20 {
			t.Errorf("%v: the interval %v is too wide", xs, i)
		}
	}
	if defined < 40 {
		t.Errorf("only %d intervals", defined)
	}
}

// The interval of reversed signs is reversed, and of few differences or none there is none.
func TestAnytimeEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 13))
	xs, reversed := make([]float64, 25), make([]float64, 25)
	for i := range xs {
		xs[i] = 1 + rng.NormFloat64()
		reversed[i] = -xs[i]
	}
	a, b := Anytime(xs, 0.95), Anytime(reversed, 0.95)
	if !a.Defined() || a.Low != -b.High || a.High != -b.Low || !(a.Low > 0) {
		t.Errorf("%v and %v", a, b)
	}
	for _, few := range [][]float64{nil, {1}, {1, 2, 3, 4, 5, 6, 7, 8}, append(xs[:12:12], math.Inf(1))} {
		if i := Anytime(few, 0.95); i.Defined() {
			t.Errorf("%v: %v", few, i)
		}
	}
	if i := Anytime(xs[:9], 0.95); !i.Defined() {
		t.Error("nine differences have no interval")
	}
	started := make([]float64, 200)
	for i := range started {
		started[i] = rng.NormFloat64()
	}
	if i := Anytime(started, 0.95); !(i.Low < 0 && i.High > 0 && i.High-i.Low < 0.8) {
		t.Errorf("of 200: %v", i)
	}
}
