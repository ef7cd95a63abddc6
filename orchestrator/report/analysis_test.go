package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// What Against says of the campaign with two groups.
func TestAgainst(t *testing.T) {
	a := report.Analyse(reporttest.Swept(), report.Options{}).Against()
	find := func(group, treatment, statement string) *report.AgainstLine {
		t.Helper()
		for i := range a.Lines {
			if l := &a.Lines[i]; l.Group == group && l.Treatment == treatment && strings.Contains(l.Statement, statement) {
				return l
			}
		}
		t.Fatalf("no line of %s, %s, %q", group, treatment, statement)
		return nil
	}
	for _, c := range []struct {
		group, treatment, statement string
		kind                        string
		outcome                     report.Outcome
	}{
		{"test-1", "radio-newrto", "0.61", "value", report.Within25},
		{"test-1", plan.Ideal, "0.65", "value", report.Beyond25},
		{"test-1", "lt-tcp", "0.6", "value", report.OutcomeGone},
		{"test-1", "newreno", "about 0.3 to 0.5", "range", report.Outside},
		{"test-1", "radio-newrto", "at least 80", "range", report.Outside},
		{"test-1", "newreno", "rises with size", "shape", report.Holds},
		{"test-1", "lt-tcp", "rises with size", "shape", report.OutcomeGone},
		{"test-1", "", "TCP-NewReno < LT-TCP < TCP-radio-newRTO", "shape", report.Holds},
		{"loss", "sack", "-70.0 % from loss 0", "change", report.Within25},
		{"loss", "sack", "best at loss 0", "shape", report.Holds},
		{"loss", "sack", "falls with loss", "shape", report.Holds},
		{"loss", "sack", "flat from loss 0.05", "shape", report.DoesNotHold},
		{"loss", "bbr", "0.04", "value", report.Beyond25},
		{"loss", "sack", "dismal", "text", report.OutcomeWords},
	} {
		l := find(c.group, c.treatment, c.statement)
		if l.Kind != c.kind || l.Outcome != c.outcome {
			t.Errorf("%s, %s, %s: %s, %s, expected %s, %s (%s)", c.group, c.treatment, c.statement, l.Kind, l.Outcome, c.kind, c.outcome, l.Detail)
		}
	}
	// 1 MB at 1 Mbit/s over the two channels, four trials each; one of them failed for NewReno.
	if l := find("test-1", "radio-newrto", "0.61"); l.N != 8 || l.Runs != 2 || l.CI == nil {
		t.Errorf("line %+v", l)
	}
	if l := find("test-1", "newreno", "about 0.3"); l.N != 7 || l.Runs != 2 {
		t.Errorf("line %+v", l)
	}
	if len(a.Missing) != 2 || a.Missing[0].Treatment != "lt-tcp" || a.Missing[1].Treatment != "with-lt" {
		t.Errorf("missing %+v", a.Missing)
	}
	if s := a.Summary; s != (report.AgainstSummary{Values: 4, Within25: 2, Ranges: 2, Shapes: 6, Hold: 5, MissingOnes: 2, Words: 1}) {
		t.Errorf("summary %+v", s)
	}
}

// A run is of no interest to values of other runs.
func TestAgainstOfOneRun(t *testing.T) {
	ds := reporttest.Swept()
	ds.Runs = ds.Runs[len(ds.Runs)-1:] // loss 0.1
	a := report.Analyse(ds, report.Options{}).Against()
	for _, l := range a.Lines {
		if l.Group != "loss" || l.Where == "loss 0" {
			t.Errorf("line %+v", l)
		}
	}
	if l := a.Lines[0]; l.Kind != "shape" && l.Outcome != report.OutcomeNone {
		t.Errorf("line %+v", l)
	}
}

// The charts of the campaign with two groups.
func TestCharts(t *testing.T) {
	charts := report.Analyse(reporttest.Swept(), report.Options{}).Charts()
	var got []string
	for _, c := range charts {
		var labels []string
		for _, x := range c.Stations {
			labels = append(labels, x.Label)
		}
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%v", c.Group, c.Metric, report.ConditionText(c.Fixed), strings.Join(labels, "/"), c.Averaged))
	}
	want := []string{
		"test-1|normalised-throughput|bandwidth 16 kbit/s|3000 B/100000 B/1000000 B|[channel]",
		"test-1|normalised-throughput|bandwidth 1 Mbit/s|3000 B/100000 B/1000000 B|[channel]",
		"test-1|gain-percent|bandwidth 16 kbit/s|3000 B/100000 B/1000000 B|[channel]",
		"test-1|gain-percent|bandwidth 1 Mbit/s|3000 B/100000 B/1000000 B|[channel]",
		"loss|throughput-mbit-per-s||0/0.05/0.1|[]",
		"loss|flow-throughput-mbit-per-s||0/0.05/0.1|[]",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("charts\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	c := charts[1]
	line := func(name string) *report.Curve {
		i := slices.IndexFunc(c.Curves, func(l report.Curve) bool { return l.Treatment == name })
		if i < 0 {
			t.Fatalf("no line of %s", name)
		}
		return &c.Curves[i]
	}
	if p := line("radio-newrto").Points[2]; p.N != 8 || p.Published == nil || *p.Published.Value != 0.61 {
		t.Errorf("point %+v", p)
	}
	if l := line("lt-tcp"); l.Missing == "" || l.Points[2].Known || l.Points[2].Published == nil {
		t.Errorf("a missing treatment: %+v", l)
	}
	for k := range c.Stations {
		if p := line("radio-newrto").Points[k]; p.Known && !(p.Ideal >= p.Mean && p.CodedBound <= p.Ideal) {
			t.Errorf("point %+v", p)
		}
	}
	if p := line(plan.Ideal).Points; p[0].Published != nil || p[2].Published == nil || p[2].Known {
		t.Errorf("what is published of Ideal: %+v", p)
	}

	// Without published values every axis but the longest splits.
	ds := reporttest.Swept()
	ds.PublishedValues = nil
	charts = report.Analyse(ds, report.Options{}).Charts()
	if len(charts) != 4+1 || charts[0].Metric != plan.MetricKBps || charts[0].Axis != "size" || report.ConditionText(charts[0].Fixed) != "bandwidth 16 kbit/s, channel long" {
		t.Errorf("%d charts, the first %+v", len(charts), charts[0])
	}
}

func TestPublishedIsMatchedByName(t *testing.T) {
	table := report.Summarize(reporttest.Eventful())
	haul, cubic, bbr := table[0].Rows[0].Published, table[0].Rows[1].Published, table[0].Rows[2].Published
	if haul == nil || haul.AvgDeviation != nil || cubic == nil || bbr != nil {
		t.Fatalf("published %+v, %+v, %+v", haul, cubic, bbr)
	}
	require.InEpsilon(t, 100*(*table[0].Rows[1].AverageKBps-194.15)/194.15, *cubic.AvgDeviation, 1e-6)
	if table[1].Has(report.HasPublished) {
		t.Error("values of one radio are beside another's")
	}
}
