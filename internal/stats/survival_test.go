package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// goldenSurvival is testdata/survival.json, as testdata/survival.R writes it.
type goldenSurvival struct {
	Cases []struct {
		Name       string
		Time, Came []float64
		At         []struct {
			Time, Left float64
			Low, High  *float64
		}
		Restricted []struct{ Horizon, Mean, SE float64 }
		Median     *float64
		MedianLow  *float64 `json:"median_low"`
		MedianHigh *float64 `json:"median_high"`
	}
}

func TestSurvivalAgreesWithR(t *testing.T) {
	b, err := os.ReadFile("testdata/survival.json")
	if err != nil {
		t.Fatal(err)
	}
	var g goldenSurvival
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Cases) < 8 {
		t.Fatalf("survival.json has %d cases", len(g.Cases))
	}
	for _, c := range g.Cases {
		t.Run(c.Name, func(t *testing.T) {
			waits := make([]Wait, len(c.Time))
			for i := range waits {
				waits[i] = Wait{Time: c.Time[i], Came: c.Came[i] == 1}
			}
			s := KaplanMeier(waits)
			for _, at := range c.At {
				came, of := s.Came(at.Time, 0.95)
				exactly(t, "share", came, 1-at.Left)
				if of.Defined() && at.Low != nil && at.High != nil {
					exactly(t, "low", of.Low, 1-*at.High)
					exactly(t, "high", of.High, 1-*at.Low)
				} else if of.Defined() {
					t.Errorf("at %v: an interval %v where R has none", at.Time, of)
				}
			}
			for _, r := range c.Restricted {
				mean, variance := s.Restricted(r.Horizon)
				exactly(t, "restricted mean", mean, r.Mean)
				exactly(t, "its standard error", math.Sqrt(variance), r.SE)
			}
			median, of := s.Median(0.95)
			exactlyIf(t, "median", median, c.Median)
			exactlyIf(t, "median, low", of.Low, c.MedianLow)
			exactlyIf(t, "median, high", of.High, c.MedianHigh)
		})
	}
}

func exactly(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// exactlyIf holds what R has no value for against a value that is none.
func exactlyIf(t *testing.T, what string, got float64, want *float64) {
	t.Helper()
	switch {
	case want != nil:
		exactly(t, what, got, *want)
	case !math.IsNaN(got) && !math.IsInf(got, 0):
		t.Errorf("%s: got %v, want none", what, got)
	}
}

// Without censoring, the variance of the restricted mean is that of a sample's mean, with n
// in place of n − 1.
func TestRestrictedMeanOfASample(t *testing.T) {
	xs := []float64{4, 9, 2, 7, 7, 30}
	var waits []Wait
	for _, x := range xs {
		waits = append(waits, Wait{x, true})
	}
	mean, variance := KaplanMeier(waits).Restricted(100)
	exactly(t, "mean", mean, Mean(xs))
	sd := StdDev(xs)
	exactly(t, "variance", variance, sd*sd*5/6/6)
	i, want := KaplanMeier(waits).RestrictedInterval(100, 0.95), MeanT(xs, 0.95)
	exactly(t, "low", i.Low, max(0, want.Low))
	exactly(t, "high", i.High, want.High)
	if i := KaplanMeier(waits).RestrictedInterval(10, 0.95); i.High > 10 {
		t.Errorf("a mean of at most 10 has the interval %v", i)
	}
}

func TestSurvivalOfNothing(t *testing.T) {
	for name, waits := range map[string][]Wait{"none": nil, "a NaN": {{Time: math.NaN()}}, "negative": {{Time: -1, Came: true}, {Time: 2, Came: true}}} {
		s := KaplanMeier(waits)
		came, of := s.Came(1, 0.95)
		mean, variance := s.Restricted(1)
		median, ofMedian := s.Median(0.95)
		for what, x := range map[string]float64{"share": came, "mean": mean, "variance": variance, "median": median, "low": of.Low, "median's low": ofMedian.Low} {
			if !math.IsNaN(x) {
				t.Errorf("%s: %s is %v", name, what, x)
			}
		}
	}
	s := KaplanMeier([]Wait{{Time: 5, Came: true}, {Time: 10}})
	if came, _ := s.Came(11, 0.95); !math.IsNaN(came) {
		t.Errorf("nothing is known of 11 s, got %v", came)
	}
	if mean, _ := s.Restricted(11); !math.IsNaN(mean) {
		t.Errorf("nothing is known of 11 s, got %v", mean)
	}
	if d := DecideSooner(map[int]Wait{1: {Time: 5}, 2: {5, true}}, map[int]Wait{1: {5, true}, 2: {5, true}}, 10, 0.95, 1); !math.IsNaN(d.Difference) || d.Decided {
		t.Errorf("one was censored before the horizon, got %+v", d)
	}
}

func TestDecideSooner(t *testing.T) {
	at := func(xs ...float64) map[int]Wait { // 0: never
		m := map[int]Wait{}
		for i, x := range xs {
			if m[i] = (Wait{x, true}); x == 0 {
				m[i] = Wait{Time: 100}
			}
		}
		return m
	}
	d := DecideSooner(at(30, 0, 40, 35), at(20, 90, 25, 30), 100, 0.95, 1)
	exactly(t, "difference", d.Difference, (10+10+15+5)/4.0)
	if d.Pairs != 4 || !d.Decided || d.More != 0 {
		t.Errorf("%+v", d)
	}
	three := DecideSooner(at(30, 0, 40, 35), at(20, 90, 25, 30), 100, 0.95, 3)
	exactly(t, "P of three comparisons", three.P, 3*d.P)
	if three.Interval.Low >= d.Interval.Low {
		t.Errorf("%v of three comparisons is not wider than %v", three.Interval, d.Interval)
	}
	if d := DecideSooner(at(30, 22, 40), at(20, 25, 30), 100, 0.95, 1); d.Decided || d.More == 0 {
		t.Errorf("%+v", d)
	}
	if d := DecideSooner(at(0, 0, 0), at(0, 0, 0), 100, 0.95, 1); d.Decided || !math.IsNaN(d.P) || d.Interval.Defined() || d.More != 0 {
		t.Errorf("neither ever came: %+v", d)
	}
	never := DecideSooner(at(10, 11, 12), at(0, 0, 0), 100, 0.95, 1)
	exactly(t, "difference from one that never came", never.Difference, -89)
	if up := -89 + MeanT([]float64{-1, 0, 1}, 0.95).High + 100*Wilson(0, 3, 0.95).High; math.Abs(never.Interval.High-up) > 1e-9 || !never.Decided || never.P > 0.05 {
		t.Errorf("%+v, expected it to end at %v", never, up)
	}
	if at, beyond := MeanT([]float64{-1, 0, 1}, 1-never.P).High+100*Wilson(0, 3, 1-never.P).High, 89.0; math.Abs(at-beyond) > 1e-6 {
		t.Errorf("P %v is not of the interval that ends at no difference, %v", never.P, at-beyond)
	}
	if late := DecideSooner(at(0, 0, 0), at(60, 61, 62), 100, 0.95, 1); late.Decided || late.P < 0.05 || late.Interval.Low > 0 || late.Interval.High < 39 {
		t.Errorf("with three pairs, one that never came may as well come as soon: %+v", late)
	} else if more := 3 + late.More; 100*Wilson(0, more, 0.95).High+1.96/math.Sqrt(float64(more)) > 39 || late.More < 2 {
		t.Errorf("%d more pairs do not decide", late.More)
	}
}

// drawnWaits are one campaign's: an iteration's channel slows both, and each fails in the
// worst share of channels and luck.
func drawnWaits(rng *rand.Rand, n int, referenceFails, valueFails, horizon float64) (reference, value map[int]Wait) {
	reference, value = make(map[int]Wait, n), make(map[int]Wait, n)
	draw := func(channel, slower, fails float64) Wait {
		luck := (channel + rng.NormFloat64()) / math.Sqrt2
		if 0.5*math.Erfc(luck/math.Sqrt2) < fails {
			return Wait{Time: horizon}
		}
		return Wait{Time: min(horizon, 60*slower*math.Exp(0.3*channel+0.2*rng.NormFloat64())), Came: true}
	}
	for i := range n {
		channel := rng.NormFloat64()
		reference[i], value[i] = draw(channel, 1, referenceFails), draw(channel, 0.9, valueFails)
	}
	return reference, value
}

// The interval of the difference of restricted means contains the true one in about 95 % of
// campaigns: in more where few pairs have seen failures of both, and in far fewer where a
// protocol fails so seldom that most campaigns of few pairs have not seen it. What was not
// seen is in no interval; of the campaigns that saw a failure of each protocol that fails, 88 %
// or more contain the difference. docs/exports.md has the table.
func TestCoverageOfSooner(t *testing.T) {
	const campaigns, horizon = 2000, 300
	failed := func(waits map[int]Wait) bool {
		for _, w := range waits {
			if !w.Came {
				return true
			}
		}
		return false
	}
	for _, c := range []struct{ reference, value float64 }{{0, 0}, {0.1, 0.1}, {0.2, 0.2}, {0.4, 0.4}, {0.6, 0.6}, {0, 0.1}, {0, 0.2}, {0, 0.4}, {0, 0.6}, {0.2, 0.4}, {0.3, 0.6}, {0, 0.95}, {0.3, 0.95}} {
		rng := rand.New(rand.NewPCG(35, uint64(100*c.reference+1e4*c.value)))
		truth := 0.0
		reference, value := drawnWaits(rng, 400_000, c.reference, c.value, horizon)
		for i := range reference {
			truth += (reference[i].Time - value[i].Time) / float64(len(reference))
		}
		row := fmt.Sprintf("| %.0f %% | %.0f %% |", 100*c.reference, 100*c.value)
		for _, n := range []int{6, 10, 20, 30} {
			var covered, seen, coveredSeen float64
			for range campaigns {
				a, b := drawnWaits(rng, n, c.reference, c.value, horizon)
				i := DecideSooner(a, b, horizon, 0.95, 1).Interval
				within := i.Low <= truth && truth <= i.High
				if within {
					covered++
				}
				if failed(a) == (c.reference > 0) && failed(b) == (c.value > 0) {
					if seen++; within {
						coveredSeen++
					}
				}
			}
			row += fmt.Sprintf(" %.0f (%.0f) |", 100*covered/campaigns, 100*coveredSeen/seen)
			if coveredSeen/seen < 0.88 {
				t.Errorf("%s with %d pairs: %.1f %% of %.0f campaigns that saw failures contain the difference", row, n, 100*coveredSeen/seen, seen)
			}
		}
		t.Log(row)
	}
}
