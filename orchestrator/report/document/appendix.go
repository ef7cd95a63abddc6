package document

import (
	"strconv"
	"strings"
	"time"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

func appendix(v *report.Analysis) ([]Section, error) {
	s := Section{ID: "appendix", Title: "Every trial", Level: 1}
	names, rate := runNames(v), v.RateUnit()
	for i := range v.Dataset.Runs {
		if r := &v.Dataset.Runs[i]; len(r.Trials) > 0 {
			s.Blocks = append(s.Blocks, tableBlock(trialsTable(r, names[i], rate)))
		}
	}
	if len(s.Blocks) == 0 {
		return nil, nil
	}
	s.Blocks = append([]Block{paragraph("Numbers of trials and iterations are those of the run sheet. Start, size, time and throughput are those of a trial's last attempt; throughput is of valid trials alone, in " + rate.Name + " (" + rate.Meaning() + "). Time: until the last byte was acknowledged, without connecting. Retransmits: as the protocol counts them. The file trials.csv has all attempts.")}, s.Blocks...)
	return []Section{s}, nil
}

// trialsTable has a row a trial of a run, in the order of the sheet.
func trialsTable(r *report.Run, name string, rate wording.RateUnit) *Table {
	number, text := Column{Number: true}, Column{}
	t := plainTable("Every trial: "+name, []column{{"Trial", number}, {"Iteration", number}, {"Treatment", text}, {"Outcome", text}, {"Attempts", number},
		{"Start, UTC", text}, {"Size, B", number}, {"Time, s", number}, {rate.Name, number}, {"Retransmits", number}, {"Reason", text}})
	t.Rows = make([]Row, len(r.Trials))
	cells := make([]string, 0, len(r.Trials)*len(t.Columns)) // of all rows: there may be many thousands
	labels := map[string]string{}
	for i := range r.Trials {
		trial := &r.Trials[i]
		label, known := labels[trial.Treatment]
		if !known {
			label = wording.Clean(r.LabelOf(trial.Treatment))
			labels[trial.Treatment] = label
		}
		if r.ProbesAlone(trial) {
			label += ", alone"
		}
		from := len(cells)
		cells = append(cells, strconv.Itoa(trial.Index), strconv.Itoa(trial.Iteration), label, outcomeOf(r, trial), strconv.Itoa(len(trial.Attempts)))
		cells = append(cells, attemptCells(r, trial, rate)...)
		t.Rows[i] = Row{Cells: cells[from:len(cells):len(cells)], Group: i > 0 && trial.Iteration != r.Trials[i-1].Iteration}
	}
	return t
}

// lastOf is the trial's last attempt; nil: there is none.
func lastOf(t *report.Trial) *report.Attempt {
	if n := len(t.Attempts); n > 0 {
		return &t.Attempts[n-1]
	}
	return nil
}

// outcomeOf is what a trial came to.
func outcomeOf(r *report.Run, t *report.Trial) string {
	a := lastOf(t)
	switch {
	case r.NotNeeded(t):
		return "not needed"
	case a != nil && a.Verdict != "":
		return string(a.Verdict)
	case t.Verdict != "":
		return string(t.Verdict)
	}
	return "not ended"
}

// attemptCells are start, size, time, throughput, retransmits and reason of the last attempt.
func attemptCells(r *report.Run, t *report.Trial, rate wording.RateUnit) []string {
	a := lastOf(t)
	if a == nil {
		return []string{"", "", "", "", "", ""}
	}
	start, size, elapsed, throughput, retransmits := "", "", "", "", ""
	if !a.Started.IsZero() {
		start = a.Started.UTC().Format(time.DateTime)
	}
	if a.SizeBytes > 0 {
		size = strconv.FormatInt(a.SizeBytes, 10)
	}
	if a.Elapsed > 0 {
		elapsed = strconv.FormatFloat(a.Elapsed.Seconds(), 'f', 3, 64)
	}
	if a.Valid() {
		kbps := a.ThroughputBytesPerSecond() / unit.KB
		throughput = rate.Write(&kbps)
	}
	if a.Retransmits != nil {
		retransmits = strconv.FormatInt(*a.Retransmits, 10)
	}
	return []string{start, size, elapsed, throughput, retransmits, reasonOf(r, t, a)}
}

// mostReason is how many characters of a reason a table has room for.
const mostReason = 160

// reasonOf is why the trial has no valid value; empty: it has, or may still get one.
func reasonOf(r *report.Run, t *report.Trial, a *report.Attempt) string {
	switch {
	case a.Verdict == "" || r.Waits(a) || a.Valid():
		return ""
	case r.ProbesAlone(t) && a.Reason == "" && a.Message == "": // no payload to verify
		return ""
	}
	parts := []string{a.Why(), a.Message}
	if parts[0] == "" || parts[1] == "" {
		return wording.Clip(wording.Clean(parts[0]+parts[1]), mostReason)
	}
	return wording.Clip(wording.Clean(strings.Join(parts, ": ")), mostReason)
}
