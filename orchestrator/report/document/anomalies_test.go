package document_test

import (
	"strings"
	"testing"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/wording"
)

const quiet = "No trial was repeated, failed or excluded."

func anomaliesOf(t *testing.T, ds *report.Dataset) string {
	t.Helper()
	return textOf(sectionsOf(of(t, report.Analyse(ds, report.Options{})), "anomalies"))
}

// That nothing happened is said where it is true, and nowhere else.
func TestQuiet(t *testing.T) {
	spoilt := func(spoil func(*report.Run)) *report.Dataset {
		ds := reporttest.Probed()
		spoil(&ds.Runs[0])
		return ds
	}
	alone := func(r *report.Run) *report.Trial {
		for i := range r.Trials {
			if r.ProbesAlone(&r.Trials[i]) {
				return &r.Trials[i]
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		ds   *report.Dataset
		want bool
	}{
		"quickstart":      {reporttest.Campaign(reporttest.Quickstart()), true},
		"probed":          {reporttest.Probed(), true},
		"not needed":      {reporttest.Stopped(), true},
		"not ended":       {&report.Dataset{Runs: []report.Run{{ID: "r", State: "queued"}}}, true},
		"no run":          {&report.Dataset{Notes: []string{"Nothing was run."}}, false},
		"eventful":        {reporttest.Eventful(), false},
		"repeated":        {spoilt(func(r *report.Run) { reporttest.Spoil(&r.Trials[0], journal.Invalid, "host", "", false) }), false},
		"unverified":      {spoilt(func(r *report.Run) { r.Trials[0].Attempts[0].Verified = false }), false},
		"probes repeated": {spoilt(func(r *report.Run) { reporttest.Spoil(alone(r), journal.Failed, "exited", "", false) }), false},
		"probes excluded": {spoilt(func(r *report.Run) { alone(r).Attempts[0].Verdict = journal.Invalid }), false},
	} {
		if got := anomaliesOf(t, c.ds); strings.Contains(got, quiet) != c.want {
			t.Errorf("%s: %q said: %v, in:\n%s", name, quiet, !c.want, got)
		}
	}
}

// What happened is said with how often, to which treatment.
func TestAnomaliesAreCounted(t *testing.T) {
	got := anomaliesOf(t, reporttest.Eventful())
	for _, want := range []string{
		"TCP BBR\n10\n9\n1\n0\n0\n0\n1× succeeded (unverified)\n",
		"UDT\n10\n9\n1\n0\n0\n1\n2× timed-out (transfer-timeout)\n",
		"did not exit within 2s of its last event",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	got = anomaliesOf(t, troubled())
	for _, want := range []string{
		"TCP CUBIC\nclock : the server's journal is not there\n1\n",
		"The emulated radio gave packets out late in 1 attempt, by 1.50 ms at most.",
		"ran on a starved host",
		quiet,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// Notes of the data set are there, once.
func TestNotesAreThere(t *testing.T) {
	for name, v := range analyses() {
		count := map[string]int{}
		for _, s := range sectionsOf(of(t, v), "anomalies") {
			for i := range s.Blocks {
				count[s.Blocks[i].Paragraph]++
			}
		}
		for _, n := range v.Dataset.Notes {
			if got := count[wording.Clean(n)]; got != 1 {
				t.Errorf("%s: %q is there %d times", name, n, got)
			}
		}
	}
}

// Readings of telemetry outside their usual range are named, with what usual is; where all are
// usual, nothing is said.
func TestUnusualReadingsAreNamed(t *testing.T) {
	const title = "Telemetry outside its usual range"
	of := func(odd float64, iterations int) string {
		run := reporttest.NewRun("r", "radio", "Radio", "hill", "Hill", 1<<20, iterations, reporttest.Cubic)
		for i := range run.Trials {
			x := 20 + float64(i%3) // their median deviation is 1
			if i == 7 {
				x = odd
			}
			run.Trials[i].Attempts[0].Telemetry = []report.Telemetry{{Node: "client", Source: "modem", Metric: "snr", Unit: "dB", Readings: 1, Minimum: x, Mean: x, Maximum: x}}
		}
		return anomaliesOf(t, reporttest.Campaign(run))
	}
	got := of(3.5, 12)
	for _, want := range []string{title, "TCP CUBIC\n7\n1\nclient\nmodem snr, dB\n3.5\n15.8 to 26.2\n", "excludes nothing by itself"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	if got := of(24, 12); strings.Contains(got, title) {
		t.Errorf("all is usual, and said is:\n%s", got)
	}
}
