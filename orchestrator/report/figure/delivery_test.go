package figure

import (
	"strings"
	"testing"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestDeliveriesAreWellFormed(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) { checkSVG(t, drawn(t, Delivery, ds)) })
	}
}

// A line for each treatment that has an outcome, also where nothing was delivered, and a mark
// for each time at which one more was.
func TestDeliveryShowsEveryTreatment(t *testing.T) {
	ds := reporttest.Eventful()
	s := drawn(t, Delivery, ds)
	count := checkSVG(t, s)
	lines, steps, treatments := 0, 0, map[string]bool{}
	for _, table := range report.Summarize(ds) {
		for _, r := range table.Rows {
			if treatments[r.Treatment] = true; r.Delivery != nil {
				lines++
				steps += len(r.Delivery.Curve)
			}
		}
	}
	if count["path"] != lines {
		t.Errorf("%d lines, %d treatments have times to delivery", count["path"], lines)
	}
	if got := count["circle"] + count["polygon"]; got != steps+len(treatments) {
		t.Errorf("%d marks of %d steps and %d in the legend", got, steps, len(treatments))
	}
	if !strings.Contains(s, "UDT: 8 of 10 trials delivered by 18.42 s (49 to 94 % at 95 %)") {
		t.Error("the last delivery of a treatment is not named")
	}
}

// Where nothing was delivered, the chart reaches to the horizon and says so.
func TestNothingDelivered(t *testing.T) {
	ds := reporttest.Datasets()["quickstart"]
	for i := range ds.Runs[0].Trials {
		trial := &ds.Runs[0].Trials[i]
		trial.Verdict = journal.Failed
		trial.Attempts[len(trial.Attempts)-1].Verdict = journal.Failed
	}
	s := drawn(t, Delivery, ds)
	if !strings.Contains(s, "nothing was delivered in time") || !strings.Contains(s, ">300</text>") {
		t.Errorf("%.3000s", s)
	}
	if count := checkSVG(t, s); count["path"] != 4 {
		t.Errorf("%d lines of 4 treatments", count["path"])
	}
}

// Few treatments have bands, many would hide each other's.
func TestDeliveryBands(t *testing.T) {
	ds := reporttest.Datasets()["quickstart"]
	without := checkSVG(t, drawn(t, Delivery, ds))["rect"]
	a := report.Analyse(ds, report.Options{LeaveOut: []string{"udt"}})
	out, err := Delivery(a)
	if err != nil {
		t.Fatal(err)
	}
	if with := checkSVG(t, string(out))["rect"]; with != without+9 {
		t.Errorf("%d rectangles, expected %d and a band for each of nine deliveries", with, without)
	}
}
