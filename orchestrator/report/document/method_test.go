package document

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestMethodOfLimits(t *testing.T) {
	ds := described()
	for i := range ds.Runs {
		s := ds.Runs[i].Sheet
		s.Limits.Horizon, s.Limits.Pause, s.SampleInterval = 90*time.Second, 1500*time.Millisecond, 100*time.Millisecond
	}
	ds.Runs[1].Sheet.Control, ds.Runs[1].Sheet.Capture = runsheet.ControlInBand, true
	sections := sectionsOf(t, method, ds)
	for name, value := range map[string]string{
		"Plan": "quickstart", "Order of trials": "fixed: each iteration has the treatments in the order of the plan", "Iterations": "3", "Transfer size": "1 MiB",
		"Seed":             "20150817; all treatments of an iteration meet the same realisation of an emulated channel",
		"Limit to connect": "30 s", "Limit of a transfer": "300 s", "Horizon of the time to delivery": "90 s", "Attempts of a trial": "at most 2", "Pause between trials": "1.5 s",
		"Repetition for faults of the apparatus": "until 600 s have passed; then the run pauses", "Samples": "every 100 ms", "Packet log": "of every trial (run 2)",
		"Control network": "out-of-band: control has a network of its own (runs 1, 3); in-band: control shares the radio, and nodes send none while a trial runs; windows between trials take at most 10 % of the trials' time (run 2)",
	} {
		assert.Equal(t, value, factOf(sections, name), name)
	}
	runs := tableCalled(sections, "Runs")
	require.Len(t, runs.Rows, 3)
	assert.Equal(t, "real radio", cellOf(t, runs, 2, "Measured"))
	assert.Equal(t, "6", cellOf(t, runs, 0, "Trials"))
	assert.Nil(t, tableCalled(sections, "What differs"), "the plan sweeps nothing")
	for _, id := range []string{"method-probes", "method-valid", "method-stop", "method-excluded"} {
		assert.Nil(t, sectionNamed(sections, id), id)
	}
	assert.Empty(t, sectionsOf(t, method, &report.Dataset{}))
}

func TestMethodOfTreatments(t *testing.T) {
	ds := described()
	for i := range ds.Runs {
		s := ds.Runs[i].Sheet
		s.Treatments[0].DriverVersion = "1.3.0"
		s.Treatments[0].Options = map[string]any{"congestion": "cubic", "mss": 400 << i, "share": 0.25}
		s.Treatments[1].Via = []runsheet.Via{{At: radio.RoleRelay, Protocol: "split", DriverVersion: "1.0.0"}}
		s.Treatments[1].DSCP, s.Treatments[1].CompleteKnowledge = 46, true
		s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "haul", Label: "Haul", Protocol: "haul", Missing: "no driver"})
		s.Mixes = []runsheet.Mix{{Name: "both", Label: "Both"}}
		flow := runsheet.Flow{Treatment: "udt", From: radio.RoleClient, To: radio.RoleServer, Duration: time.Minute}
		s.Trials = append(s.Trials, runsheet.Trial{Treatment: "both", Iteration: 1, Flows: []runsheet.Flow{flow, flow, {Treatment: "tcp-cubic", From: radio.RoleRelay, To: radio.RoleServer, SizeBytes: 1024, Start: time.Second}}})
	}
	ds.Runs[1].Sheet.Cell.Settings = []runsheet.Setting{{Axis: "mss", Parameter: "option.mss", Value: "800", Label: "800"}, {Axis: report.CampaignAxis, Label: "c"}}
	sections := sectionsOf(t, method, ds)
	table := tableCalled(sections, "Treatments")
	require.Len(t, table.Rows, 4)
	assert.Equal(t, "congestion cubic, mss 400 / 800 / 1600, share 0.25", cellOf(t, table, 0, "Options"))
	assert.Equal(t, "1.3.0", cellOf(t, table, 0, "Driver"))
	assert.Equal(t, "passes split 1.0.0 at the relay; DSCP 46; is told rate and delay of the link", cellOf(t, table, 1, "Remarks"))
	assert.Equal(t, "not run: no driver", cellOf(t, table, 2, "Remarks"))
	assert.Equal(t, "2 × UDT, client to server for 60 s; 1 × TCP CUBIC, relay to server, 1 KiB, from 1 s on", cellOf(t, table, 3, "A trial carries"))
	assert.Empty(t, cellOf(t, table, 0, "A trial carries"), "one transfer of the run's size, as most do")
	axes := tableCalled(sections, "What differs")
	assert.Equal(t, []string{"mss", "option.mss", "800"}, axes.Rows[0].Cells)
}

func TestMethodOfProbes(t *testing.T) {
	sections := sectionsOf(t, method, reporttest.Probed())
	table := tableCalled(sections, "Probes")
	require.Len(t, table.Rows, 3)
	assert.Equal(t, "client to server beside TCP CUBIC; client to server beside TCP BBR; client to server alone, for 60 s", cellOf(t, table, 0, "Measured"))
	assert.Equal(t, "pattern voip-g711", cellOf(t, table, 0, "Options"))
	assert.Equal(t, "runs 2, 3", cellOf(t, table, 1, "Runs"))
	assert.Len(t, tableCalled(sections, "Treatments").Rows, 2, "probes are not compared")
}

func TestMethodOfRules(t *testing.T) {
	ds := described()
	ds.Runs[0].Sheet.Valid = &runsheet.Valid{ClockStep: time.Second}
	ds.Runs[0].Trials[0].Attempts[0].Undecided = []string{"clock_step: the journal of the server is not there"}
	all := strings.Join(textsOf(sectionsOf(t, method, ds)), "\n")
	assert.Contains(t, all, "clock_step: a node's clock steps by 1s at most (run 1)")
	assert.Contains(t, all, "It is not known of 1 attempt whether a rule was broken")
	stopped := sectionNamed(sectionsOf(t, method, reporttest.Stopped()), "method-stop")
	require.NotNil(t, stopped)
	assert.Contains(t, stopped.Blocks[0].List[0], "The rule looks after iterations 10, 15, 20.")
	assert.Contains(t, stopped.Blocks[0].List[0], "at most 0.05")
}

// TestMethodOfExclusions has marks as the store gives them, and as an export has them.
func TestMethodOfExclusions(t *testing.T) {
	ds := described()
	mark := func(run, trial int, by string, exported bool) {
		a := &ds.Runs[run].Trials[trial].Attempts[0]
		a.Verdict, a.Reason = journal.Invalid, "marked: a truck\nwas in the way"
		a.Message = "marked invalid by " + by + ": a truck\nwas in the way; the journal says: succeeded"
		if !exported {
			a.Mark = &report.Mark{Reason: "a truck\nwas in the way", By: by, At: time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC), Verdict: journal.Succeeded}
			a.Message = ""
		}
	}
	mark(0, 0, "ada", false)
	mark(0, 1, "ada", true)
	mark(2, 2, journal.Self, true)
	for _, run := range []int{0, 1} {
		a := &ds.Runs[run].Trials[4].Attempts[0]
		a.Verdict, a.Reason = journal.Invalid, "radio-down"
	}
	sections := sectionsOf(t, method, ds)
	marks := tableCalled(sections, "Attempts that were marked")
	require.NotNil(t, marks)
	assert.Equal(t, []string{"1", "1", "TCP CUBIC", "1", "a truck was in the way", "ada", "2026-05-01 08:30:00 UTC", "succeeded"}, marks.Rows[0].Cells)
	assert.Equal(t, []string{"1", "1", "UDT", "1", "a truck was in the way", "ada", "", "succeeded"}, marks.Rows[1].Cells)
	assert.Equal(t, "Linktrial itself", cellOf(t, marks, 2, "Marked by"))
	others := tableCalled(sections, "Attempts that do not count")
	require.Len(t, others.Rows, 1)
	assert.Equal(t, []string{"radio-down", "2", "runs 1, 2"}, others.Rows[0].Cells)
}

func TestMethodOfStatistics(t *testing.T) {
	of := func(ds *report.Dataset) (names []string) {
		for _, r := range tableCalled(sectionsOf(t, method, ds), "How intervals and P are made").Rows {
			require.NotEmpty(t, r.Cells[1], r.Cells[0])
			names = append(names, r.Cells[0])
		}
		return names
	}
	few := of(reporttest.Campaign(reporttest.Quickstart()))
	assert.Contains(t, few, "average throughput, interval")
	assert.NotContains(t, few, "mean delay of a probe, interval")
	assert.NotContains(t, few, "ratio of throughputs, interval", "three iterations have none")
	assert.Contains(t, of(reporttest.Required()), "value of a requirement, interval")
	assert.Contains(t, of(reporttest.Places()), "ratio over runs, interval")
	assert.Contains(t, strings.Join(of(reporttest.Stopped()), "\n"), "under a rule to stop by")
	assert.Contains(t, of(reporttest.Probed()), "mean delay of a probe, interval")
}
