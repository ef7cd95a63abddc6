package render

import (
	"strings"
	"testing"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report/reporttest"
)

// The table of many runs lists the requirements that are not passed, and counts the others.
func TestCompactRequirements(t *testing.T) {
	ds := reporttest.Big(mostTables+1, 3)
	if text := render(t, ds, "table"); strings.Contains(text, "Required") {
		t.Errorf("requirements of a plan without any:\n%s", text)
	}
	for i, least := range []float64{1, 1e6, 95} {
		ds.Runs[i].Sheet.Require = []runsheet.Requirement{{Entry: 1, Metric: runsheet.MetricAverage, Treatment: reporttest.Cubic.Name, AtLeast: &least}}
	}
	text := strings.Join(strings.Fields(render(t, ds, "table")), " ")
	for _, want := range []string{
		"Required: 1 of 3 requirements pass. loss 0.000 · Radio 1 at Point to point · 1 KiB · 3 iterations · fixed order · emulated, real time: fail: TCP CUBIC: average ",
		"loss 0.000 · Radio 2 at Point to point · 1 KiB · 3 iterations · fixed order · emulated, real time: undecided: TCP CUBIC: average ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "pass: TCP CUBIC") {
		t.Errorf("what passes is listed:\n%s", text)
	}
}

// A run with nothing but probes has its requirements, too, and names that are markup stay text.
func TestRequirementsOfProbesAlone(t *testing.T) {
	ds := reporttest.Campaign(reporttest.Probed().Runs[0])
	r := &ds.Runs[0]
	most := 0.5
	r.Sheet.Require = []runsheet.Requirement{{Entry: 1, Metric: runsheet.MetricLoss, Probe: "voice", From: "client", AtMost: &most}}
	alone := r.Trials[:0:0]
	for _, trial := range r.Trials {
		if trial.Treatment == "voice" {
			alone = append(alone, trial)
		}
	}
	r.Trials = alone
	for i := range r.Sheet.Treatments {
		if x := &r.Sheet.Treatments[i]; x.Probe {
			x.Label = "*Voice*"
		}
	}
	kept := r.Sheet.Trials[:0:0]
	for _, spec := range r.Sheet.Trials {
		if spec.Treatment == "voice" {
			kept = append(kept, spec)
		}
	}
	r.Sheet.Trials = kept
	for i := range r.Trials {
		r.Trials[i].Index, r.Sheet.Trials[i].Index = i, i
	}
	for format, want := range map[string]string{
		"table":    "pass: *Voice*, alone: loss 1 %, 0.8143 to 1.227 % at 95 %, at most 50 % required\n",
		"markdown": "- **pass**: \\*Voice\\*, alone: loss 1 %, 0.8143 to 1.227 % at 95 %, at most 50 % required\n",
	} {
		if text := render(t, ds, format); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in:\n%s", format, want, text)
		}
	}
}
