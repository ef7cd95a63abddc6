package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

type breachRow struct {
	ds  *report.Dataset
	run *report.Run
	*report.Breach
}

func breachColumns() []column[breachRow] {
	return []column[breachRow]{
		{"campaign", func(r breachRow) string { return r.ds.Campaign }},
		{"plan", func(r breachRow) string { return r.ds.Plan }},
		{"run", func(r breachRow) string { return r.run.ID }},
		{"node", func(r breachRow) string { return r.Node }},
		{"role", func(r breachRow) string { return r.Role }},
		{"at_utc", func(r breachRow) string { return r.At.Format("2006-01-02T15:04:05.000Z07:00") }},
		{"treatment", func(r breachRow) string { return r.Treatment }},
		{"trial", func(r breachRow) string { return ifKnown(r.Trial) }},
		{"attempt", func(r breachRow) string {
			if r.Trial == nil {
				return ""
			}
			return whole(r.Attempt)
		}},
		{"flow", func(r breachRow) string { return ifKnown(r.Flow) }},
		{"message", func(r breachRow) string { return r.Message }},
		{"imported", func(r breachRow) string { return r.run.Imported.Text() }},
	}
}

func ifKnown(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

var breachesFormat = &Format{Name: "breaches-csv", Title: "CSV, what drivers did wrong", File: "breaches.csv", MediaType: csvText,
	Holds: "what drivers did wrong without deciding an attempt by it, a row for each breach of the driver contract",
	write: renderBreachesCSV}

func renderBreachesCSV(w io.Writer, v *report.Analysis) error {
	var rows []breachRow
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		for k := range run.Breaches {
			rows = append(rows, breachRow{v.Dataset, run, &run.Breaches[k]})
		}
	}
	return writeCSV(w, breachColumns(), rows)
}

// shownBreaches is how many breaches a terminal table names.
const shownBreaches = 5

// writeBreaches names the first breaches of the driver contract.
func writeBreaches(b *strings.Builder, v *report.Analysis) {
	n := 0
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		for k := range run.Breaches {
			if n++; n > shownBreaches {
				continue
			}
			if n == 1 {
				b.WriteString("\n")
				paragraph(b, "Breaches of the driver contract that decided no attempt (--format breaches-csv has all):")
			}
			x := &run.Breaches[k]
			where := "run " + run.ID + ", " + wording.Clean(run.LabelOf(x.Treatment))
			if x.Trial != nil {
				where += fmt.Sprintf(", trial %d, attempt %d", *x.Trial, x.Attempt)
			}
			paragraph(b, "- "+where+", on "+wording.Clean(x.Node)+": "+wording.Clean(x.Message))
		}
	}
	if n > shownBreaches {
		paragraph(b, fmt.Sprintf("- and %d more", n-shownBreaches))
	}
}
