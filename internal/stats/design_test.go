package stats

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %.6f, and the source has %.6f", what, got, want)
	}
}

func equalDesign(t *testing.T, s Spending, alpha float64, looks int) Design {
	t.Helper()
	d, err := EqualDesign(s, alpha, looks)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Jennison and Turnbull (2000): tables 2.1 and 2.3, the constants C_P(K, α) and C_B(K, α) for
// looks at equal distances.
func TestClassicalConstants(t *testing.T) {
	for _, c := range []struct {
		looks                 int
		alpha, pocock, obrien float64
	}{
		{1, 0.05, 1.960, 1.960},
		{2, 0.05, 2.178, 1.977},
		{3, 0.05, 2.289, 2.004},
		{4, 0.05, 2.361, 2.024},
		{5, 0.05, 2.413, 2.040},
		{10, 0.05, 2.555, 2.087},
		{5, 0.10, 2.122, 1.751},
	} {
		for shape, want := range map[Spending]float64{Pocock: c.pocock, OBrienFleming: c.obrien} {
			d := equalDesign(t, shape, c.alpha, c.looks)
			within(t, string(shape), d.Boundaries[c.looks-1], want, 0.00051)
			within(t, "level", d.Power(0), c.alpha, 1e-9)
			if shape == OBrienFleming {
				within(t, "first look", d.Boundaries[0], want*math.Sqrt(float64(c.looks)), 0.00051*math.Sqrt(float64(c.looks)))
			}
		}
	}
}

// SAS/STAT's documentation of SEQDESIGN, example "Creating Two-Sided Pocock and
// O'Brien-Fleming Designs": K = 4, α 0.05 in all, β 0.1, in percent of the design with a fixed
// number. rpact has this code's values, which are lower than the document's by 0.0075.
func TestInformationOfSeqdesign(t *testing.T) {
	i := equalDesign(t, Pocock, 0.05, 4).Information(0.9)
	within(t, "largest", 100*i.Largest, 118.3143, 0.008)
	within(t, "mean under no difference", 100*i.MeanNull, 115.6074, 0.008)
	within(t, "mean under the difference", 100*i.MeanTrue, 69.74805, 0.008)
}

func TestDesignsOfRpact(t *testing.T) {
	b, err := os.ReadFile("testdata/sequential.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Designs []struct {
			Type                         string
			Alpha, Power                 float64
			Fractions, Boundaries, Spent []float64
			Largest                      float64
			MeanNull                     float64 `json:"mean_null"`
			MeanTrue                     float64 `json:"mean_true"`
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Designs) < 20 {
		t.Fatalf("only %d designs", len(golden.Designs))
	}
	for _, g := range golden.Designs {
		shape := map[string]Spending{"P": Pocock, "asP": Pocock, "OF": OBrienFleming, "asOF": OBrienFleming}[g.Type]
		d, err := SpendingDesign(shape, g.Alpha, g.Fractions)
		if g.Type == "P" || g.Type == "OF" {
			d, err = EqualDesign(shape, g.Alpha, len(g.Fractions))
		}
		if err != nil {
			t.Fatal(err)
		}
		spent := 0.0
		for k, p := range d.Stops(0) {
			spent += p
			tolerance := 2e-6
			if d.Boundaries[k] > 4 { // a change of 1e-4 changes the probability by less than 1e-9
				tolerance = 2e-4
			}
			within(t, g.Type+" boundary", d.Boundaries[k], g.Boundaries[k], tolerance)
			within(t, g.Type+" spent", spent, g.Spent[k], 1e-7)
		}
		i := d.Information(g.Power)
		within(t, g.Type+" largest", i.Largest, g.Largest, 1e-6)
		within(t, g.Type+" mean under no difference", i.MeanNull, g.MeanNull, 1e-6)
		within(t, g.Type+" mean under the difference", i.MeanTrue, g.MeanTrue, 1e-6)
	}
}

// The number of points is enough, also for looks at very unequal distances and of many looks:
// another one gives the same.
func TestPointsAreEnough(t *testing.T) {
	for _, fractions := range [][]float64{{0.25, 0.5, 0.75, 1}, {0.5, 0.502, 1}, {0.01, 0.9, 0.91, 1}, equalDesign(t, Pocock, 0.05, 20).Fractions} {
		for _, s := range []Spending{Pocock, OBrienFleming} {
			d, err := SpendingDesign(s, 0.05, fractions)
			if err != nil {
				t.Fatal(err)
			}
			for _, drift := range []float64{0, 3} {
				fine := newWalk(drift, fractions)
				fine.spacing /= 2.3
				for k, p := range d.Stops(drift) {
					within(t, "probability of a stop", p, fine.crossing(fractions[k], d.Boundaries[k]), 1e-9)
					fine.step(fractions[k], d.Boundaries[k])
				}
			}
			within(t, "level", d.Power(0), 0.05, 1e-9)
		}
	}
}

func TestDesignsRefused(t *testing.T) {
	for _, c := range []struct {
		s         Spending
		alpha     float64
		fractions []float64
		want      string
	}{
		{"haybittle", 0.05, []float64{1}, `spending: expected obrien-fleming or pocock, found "haybittle"`},
		{Pocock, 0, []float64{1}, "alpha: expected more than 0 and at most 0.5, found 0"},
		{Pocock, math.NaN(), []float64{1}, "alpha: expected more than 0 and at most 0.5, found NaN"},
		{Pocock, 0.05, nil, "looks: expected 1 to 100, found 0"},
		{Pocock, 0.05, []float64{0.5, 0.5, 1}, "look 2: expected more than 0.001 of the information since the look before, found the fraction 0.5 after 0.5"},
		{Pocock, 0.05, []float64{0.5, 0.9}, "look 2: expected the fraction 1 at the last look, found 0.9"},
	} {
		if _, err := SpendingDesign(c.s, c.alpha, c.fractions); err == nil || err.Error() != c.want {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
	if _, err := EqualDesign(Pocock, 0.05, 0); err == nil {
		t.Error("no look is a design")
	}
}
