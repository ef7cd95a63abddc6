package figure

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// sampled makes a series for every flow of the last attempts, with a fade
// from the fourth to the sixth second of the channel in which nothing moves.
func sampled(r *report.Run, trials []*report.Trial) (out []report.Series) {
	for _, t := range trials {
		a := &t.Attempts[len(t.Attempts)-1]
		for i := range max(1, len(a.Flows)) {
			s := report.Series{Trial: t.Index, Attempt: a.Attempt, Flow: i}
			elapsed, size := a.Elapsed, a.SizeBytes
			if len(a.Flows) > 0 {
				elapsed, size = a.Flows[i].Elapsed, a.Flows[i].SizeBytes
			}
			if elapsed == 0 {
				elapsed, size = 8*time.Second, size/2
			}
			again := int64(0)
			for at := time.Duration(0); at < elapsed; at += 100 * time.Millisecond {
				moved := at
				if at > 4*time.Second {
					moved = max(4*time.Second, at-2*time.Second)
					again++
				}
				s.Points = append(s.Points, report.SeriesPoint{Elapsed: at, Bytes: int64(float64(size) * float64(moved) / float64(elapsed)), Retransmits: reporttest.Ptr(again / 3), Sent: t.Treatment == "sctp"})
			}
			out = append(out, s)
		}
	}
	return out
}

func TestSequence(t *testing.T) {
	ds := reporttest.Eventful()
	for _, c := range []struct {
		run, iteration, chosen, lines int
		want                          string
	}{
		{0, 0, 1, 4, "UDT: timed-out (transfer-timeout)"},
		{0, 3, 3, 4, "iteration 3"},
		{2, 0, 1, 4, "TCP CUBIC"},
		{2, 2, 2, 2, "not ended"},
	} {
		r := &ds.Runs[c.run]
		iteration, trials, err := report.Sequence(r, c.iteration)
		if err != nil || iteration != c.chosen {
			t.Fatalf("iteration %d: %d, %v", c.iteration, iteration, err)
		}
		if len(trials) != c.lines {
			t.Errorf("%d trials, expected %d", len(trials), c.lines)
		}
		svg, err := Sequence(ds, r, c.iteration, sampled(r, trials), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := checkSVG(t, string(svg))["path"]; n < c.lines {
			t.Errorf("%d lines, expected at least %d", n, c.lines)
		}
		if !strings.Contains(string(svg), c.want) {
			t.Errorf("no %q", c.want)
		}
	}
	for _, iteration := range []int{0, 99} {
		if _, err := Sequence(ds, &report.Run{ID: "r-9"}, iteration, nil, nil); err == nil || !strings.Contains(err.Error(), "r-9") {
			t.Errorf("of nothing: %v", err)
		}
	}
	// Several flows, without any samples.
	ds = reporttest.Swept()
	r := &ds.Runs[len(ds.Runs)-1]
	svg, err := Sequence(ds, r, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := checkSVG(t, string(svg)); n["polygon"]+n["circle"] < 4+3 {
		t.Errorf("marks of flows: %v", n)
	}
	// Numbered as in run sheets and samples.csv.
	if !strings.Contains(string(svg), ", flow 0: ") || strings.Contains(string(svg), ", flow 4: ") {
		t.Errorf("flows of four are not counted from 0: %v", regexp.MustCompile(`, flow \d+: `).FindAllString(string(svg), -1))
	}
}

// A report's diagram has the lines of the other one, as high as half a page, and one path for all
// strokes of a line.
func TestSampledSequence(t *testing.T) {
	ds := reporttest.Eventful()
	r := &ds.Runs[0]
	r.Sampled = report.SequenceIteration(r)
	_, trials, err := report.Sequence(r, r.Sampled.Iteration)
	if err != nil {
		t.Fatal(err)
	}
	r.Sampled.Series = sampled(r, trials)
	whole, err := Sequence(ds, r, r.Sampled.Iteration, r.Sampled.Series, nil)
	if err != nil {
		t.Fatal(err)
	}
	brief, err := SampledSequence(report.Analyse(ds, report.Options{}), 0)
	if err != nil {
		t.Fatal(err)
	}
	count := checkSVG(t, string(brief))
	strokes := regexp.MustCompile(`v10" stroke`).FindAllString(string(brief), -1)
	if len(strokes) == 0 || len(strokes) > len(trials) || count["path"] > 2*len(trials)+2 {
		t.Errorf("%d paths of strokes, %d in all, of %d lines", len(strokes), count["path"], len(trials))
	}
	marks := func(svg []byte) int { return strings.Count(string(svg), "v10") }
	if marks(brief) < marks(whole)/2 || strings.Contains(string(brief), "sent again by") {
		t.Errorf("%d strokes of %d", marks(brief), marks(whole))
	}
	if len(brief) >= len(whole) {
		t.Errorf("%d bytes, and as a file of its own %d", len(brief), len(whole))
	}
	r.Sampled.Iteration = 99
	if _, err := SampledSequence(report.Analyse(ds, report.Options{}), 0); err == nil {
		t.Error("of an iteration that is not there")
	}
}
