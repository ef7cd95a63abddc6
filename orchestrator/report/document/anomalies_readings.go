package document

import (
	"fmt"
	"strconv"
	"strings"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// mostUnusual is how many readings of a run a report names.
const mostUnusual = 100

// readingsPart is which attempts had telemetry outside its usual range.
func readingsPart(v *report.Analysis, names []string) Section {
	s := Section{ID: "anomalies-readings", Title: "Telemetry outside its usual range", Level: 2}
	var runs []ofRun
	limits := false
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		found := v.UnusualReadings(run)
		if len(found) == 0 {
			continue
		}
		limits = limits || run.Sheet != nil && run.Sheet.Valid != nil && len(run.Sheet.Valid.Readings) > 0
		r := ofRun{run: i}
		for k := range found[:min(len(found), mostUnusual)] {
			r.rows = append(r.rows, readingCells(run, &found[k]))
		}
		if more := len(found) - mostUnusual; more > 0 {
			r.notes = []string{wording.Sentence(fmt.Sprintf("%s: %s not in this table; telemetry.csv has all readings", names[i], wording.Plural(more, "more such reading is", "more such readings are")))}
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return s
	}
	text := fmt.Sprintf("Usual is, of a treatment in a run, the median of the metric over its attempts ± %g standard deviations, estimated from the median absolute deviation; where most values are the same, from the mean absolute deviation (Iglewicz and Hoaglin, 1993). "+
		"It is known where at least %d attempts have the metric. The value is the mean over an attempt. A reading in this table excludes nothing by itself.", stats.UsualWidth, report.LeastReadings)
	if limits {
		text += " Attempts that break the plan's limits of readings are excluded, and among the trials above."
	}
	columns := append([]column{textColumn("Treatment")}, numberColumns("Trial", "Attempt")...)
	columns = append(columns, textColumn("Node"), textColumn("Source and metric"))
	columns = append(columns, numberColumns("Value", "Usual")...)
	s.Blocks = append([]Block{paragraph(text)}, tablesOf(names, "Telemetry outside its usual range", columns, runs)...)
	return s
}

func readingCells(run *report.Run, u *report.UnusualReading) []string {
	label := wording.Clean(run.LabelOf(u.Treatment))
	if u.Alone {
		label += ", alone"
	}
	x := u.Telemetry
	value, usual := u.Texts()
	metric := x.Source + " " + x.Metric
	if x.Unit != "" {
		metric += ", " + x.Unit
	}
	return []string{label, strconv.Itoa(u.Trial), strconv.Itoa(u.Attempt), wording.Clean(x.Node), wording.Clean(strings.TrimSpace(metric)), value, usual}
}
