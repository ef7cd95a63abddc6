package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// kilobytes is a size as Table 2's paper writes it.
func kilobytes(n int64) string {
	if n%unit.KB == 0 {
		return strconv.FormatInt(n/unit.KB, 10) + " KB"
	}
	return strconv.FormatInt(n, 10) + " B"
}

// latexRow is one line of a treatment's group.
type latexRow struct {
	name  string
	value func(*report.Row, wording.RateUnit) string
}

var latexRows = []latexRow{
	{"Average", func(r *report.Row, u wording.RateUnit) string { return texNumber(r.AverageKBps, u) }},
	{"Max", func(r *report.Row, u wording.RateUnit) string { return texNumber(r.MaxKBps, u) }},
	{"Min", func(r *report.Row, u wording.RateUnit) string { return texNumber(r.MinKBps, u) }},
	{"St. Dev.", func(r *report.Row, u wording.RateUnit) string { return texNumber(r.SDKBps, u) }},
	{"Valid", func(r *report.Row, _ wording.RateUnit) string { return r.ValidOf() }},
}

// latexDelivery is the line below them where trials failed: the average leaves those out.
var latexDelivery = latexRow{"Delivery, s", func(r *report.Row, _ wording.RateUnit) string {
	if r.Delivery == nil {
		return wording.None
	}
	return wording.Number(r.Delivery.MeanSeconds)
}}

// latexLook is what all tables of a document have in common.
type latexLook struct {
	rate wording.RateUnit
	rows []latexRow
}

func latexLookOf(v *report.Analysis) latexLook {
	l := latexLook{v.RateUnit(), latexRows}
	if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool {
		return t.Has(func(r *report.Row) bool { return r.Failed > 0 && r.Delivery != nil })
	}) {
		l.rows = append(latexRows[:len(latexRows):len(latexRows)], latexDelivery)
	}
	return l
}

func texNumber(x *float64, rate wording.RateUnit) string {
	if x == nil {
		return "–"
	}
	return rate.Write(x)
}

var latexFormat = &Format{Name: "latex", Title: "LaTeX table", File: "results.tex", MediaType: "application/x-tex",
	Holds: "the layout of Table 2 of breedy-2015; needs no packages",
	write: inMemory(renderLaTeX)}

// renderLaTeX lays the campaign out as Table 2 of breedy-2015: treatments as
// groups of rows, a column a radio, under topologies. It needs no packages; the
// lines between the two rules of comments can be taken into another document.
func renderLaTeX(v *report.Analysis) ([]byte, error) {
	var b strings.Builder
	look := latexLookOf(v)
	rate := look.rate
	b.WriteString("\\documentclass[10pt]{article}\n")
	// An A4 page on its side: the twelve columns of Table 2 are too wide for an upright one.
	b.WriteString("\\pdfpagewidth=297mm \\pdfpageheight=210mm\n\\setlength{\\textwidth}{277mm}\\setlength{\\textheight}{190mm}\n")
	b.WriteString("\\setlength{\\oddsidemargin}{-15.4mm}\\setlength{\\topmargin}{-25.4mm}\\setlength{\\headheight}{0mm}\\setlength{\\headsep}{10mm}\n")
	b.WriteString("\\pagestyle{empty}\\setlength{\\parindent}{0mm}\n\\begin{document}\n")
	fmt.Fprintf(&b, "%s, campaign %s: throughput in %s (%s)%s.\\\\[2ex]\n", texBreaks(cmp.Or(v.Dataset.Plan, "a plan without a name")), tex(v.Dataset.Campaign), rate.Name, rate.Meaning(), map[bool]string{false: `, \emph{partial}`}[v.Dataset.Complete])
	pages := latexPages(latexGroups(v.Tables), look)
	tables := 0
	for _, groups := range pages {
		for _, treatments := range latexTreatments(groups, look) {
			if tables++; tables > 1 {
				b.WriteString("\\clearpage\n")
			}
			latexTable(&b, groups, treatments, look)
		}
	}
	if len(pages) == 0 {
		b.WriteString("No runs.\n")
	}
	latexNotes(&b, v)
	b.WriteString("\\end{document}\n")
	return []byte(b.String()), nil
}

// latexTreatment is one treatment's rows of a table.
type latexTreatment struct {
	name  string
	label []string // a line each
}

func (t *latexTreatment) rows(look latexLook) int { return max(len(look.rows), len(t.label)) }

// latexTreatments divides the treatments of the columns among tables that a page can hold.
func latexTreatments(groups []latexGroup, look latexLook) (pages [][]latexTreatment) {
	var columns []latexColumn
	heading, lines := 0, 0
	for i := range groups {
		columns = append(columns, groups[i].columns...)
		heading = max(heading, len(groups[i].lines()))
	}
	for i := range columns {
		lines = max(lines, len(columns[i].lines))
	}
	room := latexTableHeight - float64(heading+lines+1)*latexLine
	left := 0.0
	names, labels := report.TreatmentsOf(tablesOf(columns))
	for i, name := range names {
		t := latexTreatment{name: name, label: texWrap(labels[i], latexLabelWidth)}
		need := float64(t.rows(look))*latexLine + latexRule
		if left < need {
			pages, left = append(pages, nil), room
		}
		pages[len(pages)-1], left = append(pages[len(pages)-1], t), left-need
	}
	return pages
}

func latexTable(b *strings.Builder, groups []latexGroup, treatments []latexTreatment, look latexLook) {
	b.WriteString("% ---- table ----\n{\\scriptsize\\setlength{\\tabcolsep}{3pt}%\n\\begin{tabular}{|l|l|")
	for _, g := range groups {
		b.WriteString(strings.Repeat("r", len(g.columns)) + "|")
	}
	b.WriteString("}\n\\hline\n & ")
	var columns []latexColumn
	for i := range groups {
		fmt.Fprintf(b, "& \\multicolumn{%d}{c|}{%s} ", len(groups[i].columns), latexStack(texts(groups[i].lines())))
		columns = append(columns, groups[i].columns...)
	}
	b.WriteString("\\\\\n & ")
	for _, c := range columns {
		b.WriteString("& " + latexStack(c.lines) + " ")
	}
	b.WriteString("\\\\\n\\hline\n")
	for _, t := range treatments {
		for j := range t.rows(look) {
			if j < len(t.label) {
				b.WriteString(tex(t.label[j]))
			}
			b.WriteString(" & ")
			if j < len(look.rows) {
				b.WriteString(look.rows[j].name)
			}
			for _, c := range columns {
				b.WriteString(" & ")
				if j < len(look.rows) {
					b.WriteString(latexCell(c.table, t.name, j, look.rows[j], look.rate).tex())
				}
			}
			b.WriteString(" \\\\\n")
		}
		b.WriteString("\\hline\n")
	}
	b.WriteString("\\end{tabular}}\n% ---- end of table ----\n")
}

func texts(lines []string) (ts []latexText) {
	for _, l := range lines {
		ts = append(ts, latexText{text: l})
	}
	return ts
}

// latexStack writes lines over each other, a single one as it is.
func latexStack(lines []latexText) string {
	if len(lines) == 1 {
		return lines[0].tex()
	}
	ts := make([]string, len(lines))
	for i, l := range lines {
		ts[i] = l.tex()
	}
	return `\shortstack{` + strings.Join(ts, `\\{}`) + `}`
}

func latexCell(t *report.RunTable, treatment string, line int, row latexRow, rate wording.RateUnit) latexText {
	r := t.RowOf(treatment)
	switch {
	case r == nil:
		return latexText{}
	case r.Missing != "" && line == 0:
		return latexText{text: "missing", emph: true}
	case r.Missing != "":
		return latexText{}
	}
	return latexText{text: row.value(r, rate)}
}

func tablesOf(columns []latexColumn) (tables []*report.RunTable) {
	for _, c := range columns {
		tables = append(tables, c.table)
	}
	return tables
}

func latexNotes(b *strings.Builder, v *report.Analysis) {
	var notes []string
	seen := map[string]bool{}
	note := func(s string) {
		if !seen[s] {
			seen[s], notes = true, append(notes, s)
		}
	}
	for i := range v.Tables {
		t := &v.Tables[i]
		if s := t.PartialNote(); s != "" {
			note(texBreaks(t.RadioTitle + " at " + t.TopologyTitle + ": " + s + "."))
		}
		where := t.RadioTitle + " at " + t.TopologyTitle + ", " + kilobytes(t.SizeBytes)
		if t.Settings != "" {
			where += ", " + t.Settings
		}
		if t.Conclusion != "" {
			note(texBreaks(where + ": " + t.Conclusion))
		}
		for _, s := range t.Notes {
			note(texBreaks(where + ": " + s))
		}
		for j := range t.Requirements {
			note(texBreaks(where + ": required: " + requirementText(&t.Requirements[j])))
		}
		for j := range t.Rows {
			if r := &t.Rows[j]; r.Missing != "" {
				note(texBreaks(r.Label + " is missing: " + r.Missing + "."))
			}
		}
	}
	for i := range v.Tables {
		for _, s := range v.Tables[i].ProbeCaveats() {
			note(texBreaks(v.Tables[i].RadioTitle + " at " + v.Tables[i].TopologyTitle + ": " + s))
		}
	}
	for _, text := range report.OverRunsTexts(report.HoldRuns(v)) {
		note(texBreaks(text))
	}
	for _, n := range v.Dataset.Notes {
		note(texBreaks(n))
	}
	if slices.ContainsFunc(latexLookOf(v).rows, func(r latexRow) bool { return r.name == latexDelivery.name }) {
		note(report.DeliveryRowLegend)
	}
	if len(notes) > 0 {
		b.WriteString("\n\\vspace{2ex}{\\scriptsize\\raggedright " + strings.Join(notes, "\\\\{}\n") + "\\par}\n")
	}
}
