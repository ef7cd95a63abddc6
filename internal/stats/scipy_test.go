package stats

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// golden is testdata/scipy.json, as testdata/scipy.py writes it.
type golden struct {
	Versions map[string]string
	Samples  []struct {
		Name                       string
		X                          []float64
		Mean, Min, Max, SD, Median float64
		Percentiles                []struct{ P, Value float64 }
		T                          []struct{ Level, Low, High float64 }
		Needed                     []struct {
			Level, Relative float64
			N               int
		}
	}
	Bootstraps []struct {
		Name                       string
		X, Means                   []float64
		Level, Observed, Low, High float64
		ManyLow                    float64 `json:"many_low"`
		ManyHigh                   float64 `json:"many_high"`
	}
	Wilson []struct {
		K, N             int
		Level, Low, High float64
	}
	Wilcoxon []struct {
		Name, How    string
		D            []float64
		Statistic, P float64
		WPlus        float64 `json:"w_plus"`
		WMinus       float64 `json:"w_minus"`
		RankBiserial float64 `json:"rank_biserial"`
	}
	Pairs []struct {
		Name             string
		Reference, Value []float64
		Level            float64
		Difference       float64
		DifferenceLow    float64 `json:"difference_low"`
		DifferenceHigh   float64 `json:"difference_high"`
		Ratio            float64
		RatioLow         float64 `json:"ratio_low"`
		RatioHigh        float64 `json:"ratio_high"`
		P                float64
	}
	Holm  []struct{ P, Adjusted []float64 }
	Welch []struct {
		Name                            string
		Reference, Value                []float64
		Level, Difference, Low, High, P float64
	}
	Jain []struct {
		Name  string
		X     []float64
		Index float64
	}
}

func readGolden(t *testing.T) *golden {
	t.Helper()
	b, err := os.ReadFile("testdata/scipy.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if g.Versions["scipy"] == "" || len(g.Samples) < 5 || len(g.Bootstraps) < 3 || len(g.Wilson) < 10 || len(g.Wilcoxon) < 10 || len(g.Pairs) < 2 || len(g.Holm) < 3 || len(g.Welch) < 5 || len(g.Jain) < 5 {
		t.Fatalf("scipy.json is not complete: %v", g.Versions)
	}
	return &g
}

// near fails unless got is want to eleven digits, or both lie within 1e-12 of 0.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	nearBy(t, what, got, want, 1e-11)
}

func nearBy(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)+1e-12) {
		t.Errorf("%s: got %v, SciPy has %v", what, got, want)
	}
}

func TestDescriptionsAsSciPy(t *testing.T) {
	for _, s := range readGolden(t).Samples {
		t.Run(s.Name, func(t *testing.T) {
			d := Describe(s.X)
			if d.N != len(s.X) {
				t.Errorf("n %d of %d", d.N, len(s.X))
			}
			near(t, "mean", d.Mean, s.Mean)
			near(t, "minimum", d.Min, s.Min)
			near(t, "maximum", d.Max, s.Max)
			near(t, "standard deviation", d.SD, s.SD)
			near(t, "median", d.Median, s.Median)
			for _, p := range s.Percentiles {
				near(t, "percentile", Percentile(s.X, p.P), p.Value)
			}
			for _, iv := range s.T {
				got := MeanT(s.X, iv.Level)
				// The quantile of t is good to about ten digits.
				nearBy(t, "t interval, low", got.Low, iv.Low, 1e-9)
				nearBy(t, "t interval, high", got.High, iv.High, 1e-9)
			}
			for _, want := range s.Needed {
				if n, ok := Iterations(s.X, want.Level, want.Relative); !ok || n != want.N {
					t.Errorf("iterations for %v: got %d (%v), want %d", want.Relative, n, ok, want.N)
				}
			}
		})
	}
}

func TestBootstrapAsSciPy(t *testing.T) {
	for _, b := range readGolden(t).Bootstraps {
		t.Run(b.Name, func(t *testing.T) {
			// The same resamples give the same interval.
			means := slices.Sorted(slices.Values(b.Means))
			got := bca(b.X, b.Observed, means, b.Level)
			nearBy(t, "low", got.Low, b.Low, 1e-9)
			nearBy(t, "high", got.High, b.High, 1e-9)
			// Resamples of our own give the interval that very many give, but
			// for chance: with 10 000, its ends stray by some hundredths of its
			// width. Three values have but ten different means, and an end jumps
			// from one to the next.
			if len(b.X) < 10 {
				return
			}
			own := Bootstrap{Seed: 1}.Mean(b.X, b.Level)
			stray := 0.1 * (b.ManyHigh - b.ManyLow)
			if math.Abs(own.Low-b.ManyLow) > stray || math.Abs(own.High-b.ManyHigh) > stray {
				t.Errorf("own resamples: got %v, SciPy has %v to %v", own, b.ManyLow, b.ManyHigh)
			}
		})
	}
}

func TestWilsonAsSciPy(t *testing.T) {
	for _, w := range readGolden(t).Wilson {
		got := Wilson(w.K, w.N, w.Level)
		near(t, "low", got.Low, w.Low)
		near(t, "high", got.High, w.High)
	}
}

func TestWilcoxonAsSciPy(t *testing.T) {
	for _, w := range readGolden(t).Wilcoxon {
		t.Run(w.Name, func(t *testing.T) {
			got := Wilcoxon(w.D)
			near(t, "statistic", got.Statistic(), w.Statistic)
			near(t, "W+", got.WPlus, w.WPlus)
			near(t, "W-", got.WMinus, w.WMinus)
			near(t, "rank-biserial correlation", got.RankBiserial, w.RankBiserial)
			near(t, "P", got.P, w.P)
			if got.Exact != (w.How != "asymptotic") {
				t.Errorf("exact is %v, SciPy went by %s", got.Exact, w.How)
			}
		})
	}
}

func TestPairsAsSciPy(t *testing.T) {
	for _, p := range readGolden(t).Pairs {
		t.Run(p.Name, func(t *testing.T) {
			a, b := map[int]float64{}, map[int]float64{}
			for i := range p.Reference {
				a[i+1], b[i+1] = p.Reference[i], p.Value[i]
			}
			c := Compare(PairUp(a, b), p.Level)
			if c.Pairs != len(p.Reference) {
				t.Errorf("%d pairs", c.Pairs)
			}
			nearBy(t, "difference", c.Difference, p.Difference, 1e-9)
			nearBy(t, "difference, low", c.DifferenceInterval.Low, p.DifferenceLow, 1e-9)
			nearBy(t, "difference, high", c.DifferenceInterval.High, p.DifferenceHigh, 1e-9)
			differences, logs := make([]float64, len(p.Reference)), make([]float64, len(p.Reference))
			for i := range p.Reference {
				differences[i], logs[i] = p.Value[i]-p.Reference[i], math.Log(p.Value[i])-math.Log(p.Reference[i])
			}
			l := MeanT(logs, p.Level)
			nearBy(t, "ratio", math.Exp(Mean(logs)), p.Ratio, 1e-9)
			nearBy(t, "ratio, low", math.Exp(l.Low), p.RatioLow, 1e-9)
			nearBy(t, "ratio, high", math.Exp(l.High), p.RatioHigh, 1e-9)
			near(t, "P", Wilcoxon(differences).P, p.P)
		})
	}
}

func TestHolmAsStatsmodels(t *testing.T) {
	for _, h := range readGolden(t).Holm {
		for i, got := range Holm(h.P) {
			near(t, "adjusted P", got, h.Adjusted[i])
		}
	}
}

func TestWelchAsSciPy(t *testing.T) {
	for _, w := range readGolden(t).Welch {
		t.Run(w.Name, func(t *testing.T) {
			got := Welch(w.Reference, w.Value, w.Level)
			near(t, "difference", got.Difference, w.Difference)
			// The quantile of t is good to about ten digits.
			nearBy(t, "low", got.Interval.Low, w.Low, 1e-9)
			nearBy(t, "high", got.Interval.High, w.High, 1e-9)
			nearBy(t, "p", got.P, w.P, 1e-9)
		})
	}
}

func TestJainAsSciPy(t *testing.T) {
	for _, j := range readGolden(t).Jain {
		near(t, j.Name, Jain(j.X), j.Index)
	}
}
