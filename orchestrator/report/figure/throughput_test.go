package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"linktrial/executor/journal"
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
			count := map[string]int{}
			for part, parts := 1, RunParts(report.Analyse(ds, report.Options{})); part <= parts; part++ {
				svg, err := Throughput(report.Analyse(ds, report.Options{Part: part}))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
					t.Error("a coordinate has no value")
				}
				found := checkSVG(t, string(svg))
				rings := strings.Count(string(svg), `r="3" fill="none"`)
				count["marks"] += found["circle"] - rings + found["polygon"] - 1 // one more of each is in the legend
				count["crosses"] += found["path"] - 1
				count["rings"] += rings - 1
			}
			valid, ended := 0, 0
			for _, table := range report.Summarize(ds) {
				for i := range table.Rows {
					valid += table.Rows[i].Valid
					ended += table.Rows[i].Failed
				}
			}
			if count["marks"] != valid {
				t.Errorf("%d iterations are drawn, %d are valid", count["marks"], valid)
			}
			if count["crosses"]+count["rings"] != ended {
				t.Errorf("%d failed trials and %d that say nothing of a treatment are drawn, of %d without a value", count["crosses"], count["rings"], ended)
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

// A treatment has the same colour and marker in every figure, whatever is left out.
func TestColoursStayWithTreatments(t *testing.T) {
	for _, left := range [][]string{nil, {"haul"}, {"tcp-cubic"}} {
		v := report.Analyse(reporttest.Eventful(), report.Options{LeaveOut: left})
		order := v.TreatmentOrder()
		if len(order) != 5 || order["haul"] != 0 || order["udt"] != 4 {
			t.Errorf("without %v: order %v", left, order)
		}
		for name, draw := range map[string]func(*report.Analysis) ([]byte, error){"throughput": Throughput, "distribution": Distribution} {
			svg, err := draw(v)
			if err != nil {
				t.Fatal(err)
			}
			if drawn, want := bytes.Contains(svg, []byte(lookOf(order["tcp-cubic"]).colour)), !slices.Contains(left, "tcp-cubic"); drawn != want {
				t.Errorf("%s without %v: the colour of tcp-cubic is drawn: %v, want %v", name, left, drawn, want)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	for in, want := range map[string]string{
		"UDT":                                     "UDT",
		"Haul (in the place of Mockets)":          "Haul (in the/place of/Mockets)",
		"averyveryverylongword":                   "averyveryveryl/ongword",
		strings.Repeat("a", 50):                   "aaaaaaaaaaaaaa/aaaaaaaaaaaaaa/aaaaaaa…aaaaaa",
		"one two three four five six seven eight": "one two three/four five six/seven eight",
		"": "",
	} {
		if got := strings.Join(wrap(in, 14, 3), "/"); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Many runs are drawn in parts, which say which part they are, and leave none out.
func TestSVGOfManyRuns(t *testing.T) {
	ds := reporttest.Big(30, 1)
	for name, draw := range map[string]func(*report.Analysis) ([]byte, error){"Throughput (KB/s)</text>": Throughput, "share of trials</text>": Distribution} {
		for part, panels := range map[int]int{0: perPart, 1: perPart, 2: perPart, 3: 6} {
			v := report.Analyse(ds, report.Options{Part: part})
			svg, err := draw(v)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(svg), name); n != panels || RunParts(v) != 3 || !strings.Contains(string(svg), fmt.Sprintf("Part %d of 3.", max(1, part))) {
				t.Errorf("%s, part %d: %d panels, expected %d", name, part, n, panels)
			}
		}
	}
	if s := drawn(t, Throughput, reporttest.Big(2, 1)); strings.Contains(s, "Part 1") {
		t.Error("one part is numbered")
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

// A trial that a person skipped or excluded is no failure of its treatment.
func TestSkippedIsNotFailed(t *testing.T) {
	ds := reporttest.Datasets()["quickstart"]
	skipped := &ds.Runs[0].Trials[0]
	skipped.Verdict = journal.Aborted
	skipped.Attempts[0].Verdict, skipped.Attempts[0].Reason = journal.Aborted, journal.ReasonSkipped
	before := elementsOf(t, reporttest.Datasets()["quickstart"])
	after := elementsOf(t, ds)
	if after["path"] != before["path"] || after["ring"] != before["ring"]+1 {
		t.Errorf("%v of a skipped trial, %v before", after, before)
	}
}

func elementsOf(t *testing.T, ds *report.Dataset) map[string]int {
	t.Helper()
	svg, err := Throughput(report.Analyse(ds, report.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	found := checkSVG(t, string(svg))
	found["ring"] = strings.Count(string(svg), `r="3" fill="none"`)
	return found
}

// No two panels of a drawing have the same heading, whatever distinguishes them.
func TestHeadingsAreUnique(t *testing.T) {
	alike := reporttest.Datasets()["quickstart"]
	alike.Runs = append(alike.Runs, alike.Runs[0])
	alike.Runs[len(alike.Runs)-1].ID = "r-again"
	all := reporttest.Datasets()
	all["alike"] = alike
	for name, ds := range all {
		for figure, draw := range map[string]func(*report.Analysis) ([]byte, error){"throughput": Throughput, "distribution": Distribution, "delays": Delays, "curves": Curves} {
			svg, err := draw(report.Analyse(ds, report.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, h := range headingsIn(string(svg)) {
				if seen[h] {
					t.Errorf("%s of %s: two panels are headed %q", figure, name, h)
				}
				seen[h] = true
			}
		}
	}
}

// headingsIn are the headings of a drawing's panels: lines of 13 pixels after the title,
// each with the lines of 11 that follow it at the same place.
func headingsIn(svg string) (out []string) {
	at, lastSize := "", 0
	for _, m := range regexp.MustCompile(`<text x="([\d.]+)" y="[\d.]+" text-anchor="start" fill="[^"]*" font-size="(\d+)">([^<]*)</text>`).FindAllStringSubmatch(svg, -1)[1:] {
		switch last := len(out) - 1; {
		case m[2] == "13" && lastSize == 13 && m[1] == at:
			out[last] += " " + m[3]
		case m[2] == "13":
			out = append(out, m[3])
			at, lastSize = m[1], 13
		case last >= 0 && m[1] == at:
			out[last] += " / " + m[3]
			lastSize = 11
		}
	}
	return out
}
