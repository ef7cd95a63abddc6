package figure

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// checkSVG reads the figure as XML and counts its elements; every coordinate
// must be a number within the picture.
func checkSVG(t *testing.T, s string) map[string]int {
	t.Helper()
	count := map[string]int{}
	dec := xml.NewDecoder(strings.NewReader(s))
	var width, height float64
	within := func(name, value string, most float64) {
		if x, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(x) || x < 0 || x > most {
			t.Errorf("%s is %s, in a picture of %v by %v", name, value, width, height)
		}
	}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		count[e.Name.Local]++
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "width", "height":
				if e.Name.Local == "svg" {
					x, err := strconv.ParseFloat(a.Value, 64)
					if err != nil || x <= 0 || x > 20000 {
						t.Fatalf("%s of the picture is %s", a.Name.Local, a.Value)
					}
					if a.Name.Local == "width" {
						width = x
					} else {
						height = x
					}
				} else if a.Value != "100%" {
					within(a.Name.Local, a.Value, max(width, height))
				}
			case "x", "x1", "x2", "cx":
				within(a.Name.Local, a.Value, width)
			case "y", "y1", "y2", "cy":
				within(a.Name.Local, a.Value, height)
			}
		}
	}
}

func TestSVGShowsEveryTrial(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) {
			s := drawn(t, Throughput, ds)
			count := checkSVG(t, s)
			valid, failed := 0, 0
			for _, table := range report.Summarize(ds) {
				for i := range table.Rows {
					valid += table.Rows[i].Valid
					failed += table.Rows[i].Failed
				}
			}
			// One more of each is in the legend.
			if got := count["circle"] + count["polygon"] - 1; got != valid {
				t.Errorf("%d iterations are drawn, %d are valid", got, valid)
			}
			if got := count["path"] - 1; got != failed {
				t.Errorf("%d failures are drawn of %d", got, failed)
			}
			if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
				t.Error("a coordinate has no value")
			}
		})
	}
}

func TestScale(t *testing.T) {
	for highest, want := range map[float64][2]float64{
		0: {1, 0.5}, 137.8: {140, 20}, 262.09: {300, 50}, 100: {100, 20}, 0.03: {0.03, 0.005}, 7: {7, 1}, 19000: {20000, 5000}, math.NaN(): {1, 0.5},
	} {
		top, step := scale(highest)
		if math.Abs(top-want[0]) > 1e-9*want[0] || math.Abs(step-want[1]) > 1e-9*want[1] {
			t.Errorf("%v: got %v by %v, want %v", highest, top, step, want)
		}
	}
	for _, highest := range []float64{5e-324, 1e-310, 1e307, math.MaxFloat64, math.Inf(1)} {
		if top, step := scale(highest); !(top >= highest) || !(step > 0) {
			t.Errorf("%v: got %v by %v", highest, top, step)
		}
	}
	for e := -299.0; e < 300; e += 0.37 {
		highest := math.Pow(10, e)
		if top, step := scale(highest); !(top >= highest*(1-1e-6)) || !(step > 0) || !(top/step <= 10.001) {
			t.Errorf("%v: got %v by %v", highest, top, step)
		}
	}
}

func TestColoursStayWithTreatments(t *testing.T) {
	tables := report.Summarize(reporttest.Eventful())
	order := treatmentOrder(tables)
	if len(order) != 5 || order["haul"] != 0 || order["udt"] != 4 {
		t.Errorf("order %v", order)
	}
}

func TestWrap(t *testing.T) {
	for in, want := range map[string]string{
		"UDT":                            "UDT",
		"Haul (in the place of Mockets)": "Haul (in the/place of/Mockets)",
		"averyveryverylongword":          "averyve…ngword",
		"one two three four five six seven eight": "one two three/four five six/seven eight",
		"": "",
	} {
		if got := strings.Join(wrap(in, 14, 3), "/"); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// A drawing has an end, and says what it leaves out.
func TestSVGOfManyRuns(t *testing.T) {
	s := drawn(t, Throughput, reporttest.Big(62, 1))
	if !strings.Contains(s, "2 further runs are left out.") || strings.Count(s, "Throughput (KB/s)") != mostPanels {
		t.Errorf("%d panels", strings.Count(s, "Throughput (KB/s)"))
	}
}

// drawn is a figure of a dataset.
func drawn(t *testing.T, draw func(*report.Analysis) ([]byte, error), ds *report.Dataset) string {
	t.Helper()
	svg, err := draw(report.Analyse(ds, report.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return string(svg)
}
