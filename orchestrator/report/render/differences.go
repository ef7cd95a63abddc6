package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

const oneCampaign = "Differences are between campaigns: name two or more."

var differencesFormat = &Format{Name: "differences", Title: "Plain text, differences of campaigns", File: "differences.txt", MediaType: plain, Of: OfSeveral,
	Holds: "each treatment that two campaigns have under the same conditions, held against the first campaign",
	write: inMemory(renderDifferences)}

var differencesCSVFormat = &Format{Name: "differences-csv", Title: "CSV, a row a difference of campaigns", File: "differences.csv", MediaType: csvText, Of: OfSeveral,
	Holds: "the same, a row for each difference",
	write: renderDifferencesCSV}

var differencesMarkdownFormat = &Format{Name: "differences-markdown", Title: "Markdown, differences of campaigns", File: "differences.md", MediaType: markdown, Of: OfSeveral,
	Holds: "the same as tables",
	write: inMemory(renderDifferencesMarkdown)}

func renderDifferences(v *report.Analysis) ([]byte, error) {
	d := report.HoldCampaigns(v)
	if len(d.Campaigns) < 2 {
		return []byte(oneCampaign + "\n"), nil
	}
	var b strings.Builder
	rate := v.RateUnit()
	paragraph(&b, "Campaigns compared with "+d.Campaigns[0]+", throughput in "+rate.Name)
	for _, lines := range d.Sections() {
		b.WriteString("\n")
		paragraph(&b, wording.Clean(lines[0].Where)+": "+lines[0].Against())
		g := grid{header: append([]string{""}, report.DifferenceHeader()...)}
		var notes []string
		for i := range lines {
			l := &lines[i]
			g.rows = append(g.rows, gridRow{cells: append([]string{wording.Clean(l.Label)}, l.Cells(rate)...)})
			if s := l.Remarks(); s != "" {
				notes = append(notes, wording.Clean(l.Label)+": "+s)
			}
		}
		g.write(&b)
		for _, n := range notes {
			paragraph(&b, n)
		}
	}
	b.WriteString("\n")
	if len(d.Lines) == 0 {
		paragraph(&b, "No treatment of these campaigns has the same name and conditions.")
	} else {
		paragraph(&b, report.DifferencesMethod+" "+rate.Meaning()+".")
	}
	if s := d.AloneText(); s != "" {
		paragraph(&b, s)
	}
	writeNotes(&b, v)
	return []byte(b.String()), nil
}

func renderDifferencesMarkdown(v *report.Analysis) ([]byte, error) {
	d := report.HoldCampaigns(v)
	if len(d.Campaigns) < 2 {
		return []byte(oneCampaign + "\n"), nil
	}
	var b strings.Builder
	rate := v.RateUnit()
	fmt.Fprintf(&b, "# Campaigns compared with %s\n\nThroughput in %s; %s. %s\n\n", md(d.Campaigns[0]), rate.Name, rate.Meaning(), strings.ReplaceAll(report.DifferencesMethod, "*", `\*`))
	for _, lines := range d.Sections() {
		fmt.Fprintf(&b, "## %s: %s\n\n", md(lines[0].Where), md(lines[0].Against()))
		header := slices.Concat([]string{"treatment"}, report.DifferenceHeader(), []string{"remarks"})
		var rows [][]string
		for i := range lines {
			cells := slices.Concat([]string{lines[i].Label}, lines[i].Cells(rate), []string{lines[i].Remarks()})
			for k := range cells {
				cells[k] = md(cells[k])
			}
			rows = append(rows, cells)
		}
		mdTable(&b, header, rows)
	}
	if s := d.AloneText(); s != "" {
		b.WriteString(md(s) + "\n")
	}
	mdNotes(&b, v)
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

// differenceColumns are those of differences.csv; docs/exports.md describes them.
func differenceColumns() []column[*report.Difference] {
	number := func(x func(*report.Difference) *float64) func(*report.Difference) string {
		return func(d *report.Difference) string { return nine(x(d)) }
	}
	return []column[*report.Difference]{
		{"where", func(d *report.Difference) string { return d.Where }},
		{"treatment", func(d *report.Difference) string { return d.Treatment }},
		{"label", func(d *report.Difference) string { return d.Label }},
		{"reference", func(d *report.Difference) string { return d.Reference }},
		{"campaign", func(d *report.Difference) string { return d.Campaign }},
		{"reference_run", func(d *report.Difference) string { return d.ReferenceRun }},
		{"run", func(d *report.Difference) string { return d.Run }},
		{"reference_valid", func(d *report.Difference) string { return strconv.Itoa(d.ReferenceValid) }},
		{"valid", func(d *report.Difference) string { return strconv.Itoa(d.Valid) }},
		{"reference_average_kb_per_s", number(func(d *report.Difference) *float64 { return d.ReferenceKBps })},
		{"average_kb_per_s", number(func(d *report.Difference) *float64 { return d.AverageKBps })},
		{"difference_kb_per_s", number(func(d *report.Difference) *float64 { return d.DifferenceKBps })},
		{"difference_ci95_low_kb_per_s", number(func(d *report.Difference) *float64 { return low(d.CI) })},
		{"difference_ci95_high_kb_per_s", number(func(d *report.Difference) *float64 { return high(d.CI) })},
		{"change_percent", number(func(d *report.Difference) *float64 { return d.ChangePercent })},
		{"welch_p", number(func(d *report.Difference) *float64 { return d.P })},
		{"welch_p_holm", number(func(d *report.Difference) *float64 { return d.PHolm })},
		{"changed", func(d *report.Difference) string { return d.Changed }},
		{"partial", func(d *report.Difference) string { return strconv.FormatBool(d.Partial) }},
		{"reference_imported", func(d *report.Difference) string { return d.ReferenceImported.Text() }},
		{"imported", func(d *report.Difference) string { return d.Imported.Text() }},
		{"change_ci95_low_percent", number(func(d *report.Difference) *float64 { return low(d.ChangeCI) })},
		{"change_ci95_high_percent", number(func(d *report.Difference) *float64 { return high(d.ChangeCI) })},
		{"reference_failed", func(d *report.Difference) string { return strconv.Itoa(d.ReferenceFailed) }},
		{"failed", func(d *report.Difference) string { return strconv.Itoa(d.Failed) }},
	}
}

func renderDifferencesCSV(w io.Writer, v *report.Analysis) error {
	d := report.HoldCampaigns(v)
	rows := make([]*report.Difference, len(d.Lines))
	for i := range d.Lines {
		rows[i] = &d.Lines[i]
	}
	return writeCSV(w, differenceColumns(), rows)
}
