package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// latexSpecial is what TeX would read as markup, and the signs that our own
// texts use, in commands that plain LaTeX with its default fonts has.
var latexSpecial = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`,
	'^': `\textasciicircum{}`, '~': `\textasciitilde{}`, '<': `$<$`, '>': `$>$`, '|': `$|$`, '"': `''`,
	'–': `--`, '—': `---`, '−': `$-$`, '×': `$\times$`, '·': `$\cdot$`, '±': `$\pm$`, '°': `$^\circ$`, 'µ': `$\mu$`, 'μ': `$\mu$`,
	'≤': `$\leq$`, '≥': `$\geq$`, '…': `\ldots{}`, '’': `'`, '‘': "`", '“': "``", '”': `''`, 'ß': `\ss{}`, 'æ': `\ae{}`, 'Æ': `\AE{}`,
	'ø': `\o{}`, 'Ø': `\O{}`, 'œ': `\oe{}`, 'Œ': `\OE{}`, 'ł': `\l{}`, 'Ł': `\L{}`, 'ı': `\i{}`, '²': `$^2$`, '³': `$^3$`,
}

// latexAccents are the commands for combining characters.
var latexAccents = map[rune]string{
	'\u0300': "`", '\u0301': `'`, '\u0302': `^`, '\u0303': `~`, '\u0304': `=`, '\u0306': `u`, '\u0307': `.`, '\u0308': `"`,
	'\u030A': `r`, '\u030B': `H`, '\u030C': `v`, '\u0323': `d`, '\u0327': `c`, '\u0331': `b`,
}

// tex writes text of others as LaTeX in ASCII. A character that needs further
// packages appears as its code point, so that nothing is lost and the document
// compiles.
func tex(s string) string {
	var b strings.Builder
	rs := []rune(norm.NFD.String(wording.Clean(s)))
	for i, r := range rs {
		next := rune(0)
		if i+1 < len(rs) {
			next = rs[i+1]
		}
		accent, combined := latexAccents[next]
		switch special := latexSpecial[r]; {
		case special == "" && r >= ' ' && r < 0x7f && combined:
			b.WriteString(`\` + accent + `{` + string(r) + `}`)
		case special != "":
			b.WriteString(special)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
			// "--" and "---" would become dashes, "?`" and "!`" turned marks.
			if strings.ContainsRune("-?!'`,", r) && strings.ContainsRune("-`',", next) && next != 0 {
				b.WriteString("{}")
			}
		case latexAccents[r] != "" && i > 0 && rs[i-1] >= ' ' && rs[i-1] < 0x7f && latexSpecial[rs[i-1]] == "":
			// written with the letter before it
		default:
			fmt.Fprintf(&b, `\texttt{U+%04X}`, r)
		}
	}
	return b.String()
}

// latexColumns is how many a page holds: Table 2 has as many.
const latexColumns = 12

// latexPages divides the groups of columns among tables.
func latexPages(headings []string, groups [][]latexColumn) (pageHeadings [][]string, pages [][][]latexColumn) {
	room := 0
	for i, g := range groups {
		for len(g) > 0 {
			if room == 0 {
				pageHeadings, pages, room = append(pageHeadings, nil), append(pages, nil), latexColumns
			}
			n, last := min(room, len(g)), len(pages)-1
			pageHeadings[last], pages[last] = append(pageHeadings[last], headings[i]), append(pages[last], g[:n])
			room, g = room-n, g[n:]
		}
	}
	return pageHeadings, pages
}

// latexColumn is one radio under one topology.
type latexColumn struct {
	table   *report.RunTable
	heading string
}

// latexGroups are the topologies in the order of the plan, each with its runs.
func latexGroups(tables []report.RunTable) (headings []string, groups [][]latexColumn) {
	var names []string
	for i := range tables {
		t := &tables[i]
		g := slices.Index(names, t.Topology)
		if g < 0 {
			g = len(names)
			names, groups = append(names, t.Topology), append(groups, nil)
		}
		groups[g] = append(groups[g], latexColumn{table: t})
	}
	for _, columns := range groups {
		first := columns[0].table
		sameSize := !slices.ContainsFunc(columns, func(c latexColumn) bool { return c.table.SizeBytes != first.SizeBytes })
		heading := tex(cmp.Or(first.TopologyTitle, "unknown topology"))
		if sameSize {
			heading += " (" + tex(kilobytes(first.SizeBytes)) + ")"
		}
		headings = append(headings, heading)
		for i := range columns {
			// A title of several parts takes a line each: columns stay narrow.
			lines := strings.Split(cmp.Or(columns[i].table.RadioTitle, "unknown radio"), ", ")
			for j := range lines {
				lines[j] = tex(lines[j])
			}
			if !sameSize {
				lines = append(lines, tex(kilobytes(columns[i].table.SizeBytes)))
			}
			for _, setting := range strings.Split(columns[i].table.Settings, ", ") {
				if setting != "" {
					lines = append(lines, tex(setting))
				}
			}
			if columns[i].table.Partial {
				lines = append(lines, `\emph{partial}`)
			}
			columns[i].heading = `\shortstack{` + strings.Join(lines, `\\{}`) + `}`
		}
	}
	return headings, groups
}

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
	value func(*report.Row) string
}

var latexRows = []latexRow{
	{"Average", func(r *report.Row) string { return texNumber(r.AverageKBps) }},
	{"Max", func(r *report.Row) string { return texNumber(r.MaxKBps) }},
	{"Min", func(r *report.Row) string { return texNumber(r.MinKBps) }},
	{"St. Dev.", func(r *report.Row) string { return texNumber(r.SDKBps) }},
	{"Valid", func(r *report.Row) string { return r.ValidOf() }},
}

func texNumber(x *float64) string {
	if x == nil {
		return "--"
	}
	return wording.Decimals(x, 2)
}

// renderLaTeX lays the campaign out as Table 2 of breedy-2015: treatments as
// groups of rows, a column a radio, under topologies. It needs no packages; the
// lines between the two rules of comments can be taken into another document.
func renderLaTeX(v *report.Analysis) ([]byte, error) {
	var b strings.Builder
	headings, groups := latexGroups(v.Tables)
	b.WriteString("\\documentclass[10pt]{article}\n")
	// An A4 page on its side: twelve columns are too wide for an upright one.
	b.WriteString("\\pdfpagewidth=297mm \\pdfpageheight=210mm\n\\setlength{\\textwidth}{277mm}\\setlength{\\textheight}{190mm}\n")
	b.WriteString("\\setlength{\\oddsidemargin}{-15.4mm}\\setlength{\\topmargin}{-25.4mm}\\setlength{\\headheight}{0mm}\\setlength{\\headsep}{10mm}\n")
	b.WriteString("\\pagestyle{empty}\\setlength{\\parindent}{0mm}\n\\begin{document}\n")
	fmt.Fprintf(&b, "%s, campaign %s: throughput in KB/s (1 KB is 1024 bytes)%s.\\\\[2ex]\n", tex(cmp.Or(v.Dataset.Plan, "a plan without a name")), tex(v.Dataset.Campaign), map[bool]string{false: `, \emph{partial}`}[v.Dataset.Complete])
	pageHeadings, pages := latexPages(headings, groups)
	for i := range pages {
		if i > 0 {
			b.WriteString("\\clearpage\n")
		}
		latexTable(&b, pageHeadings[i], pages[i])
	}
	if len(pages) == 0 {
		b.WriteString("No runs.\n")
	}
	latexNotes(&b, v)
	b.WriteString("\\end{document}\n")
	return []byte(b.String()), nil
}

func latexTable(b *strings.Builder, headings []string, groups [][]latexColumn) {
	var columns []latexColumn
	for _, g := range groups {
		columns = append(columns, g...)
	}
	b.WriteString("% ---- table ----\n{\\scriptsize\\setlength{\\tabcolsep}{3pt}%\n\\begin{tabular}{|l|l|")
	for _, g := range groups {
		b.WriteString(strings.Repeat("r", len(g)) + "|")
	}
	b.WriteString("}\n\\hline\n & ")
	for i, h := range headings {
		fmt.Fprintf(b, "& \\multicolumn{%d}{c|}{%s} ", len(groups[i]), h)
	}
	b.WriteString("\\\\\n & ")
	for _, c := range columns {
		b.WriteString("& " + c.heading + " ")
	}
	b.WriteString("\\\\\n\\hline\n")
	names, labels := treatmentsOf(columns)
	for i, name := range names {
		for j, line := range latexRows {
			if j == 0 {
				b.WriteString(tex(labels[i]))
			}
			b.WriteString(" & " + line.name)
			for _, c := range columns {
				b.WriteString(" & " + latexCell(c.table, name, j, line))
			}
			b.WriteString(" \\\\\n")
		}
		b.WriteString("\\hline\n")
	}
	b.WriteString("\\end{tabular}}\n% ---- end of table ----\n")
}

func latexCell(t *report.RunTable, treatment string, line int, row latexRow) string {
	i := slices.IndexFunc(t.Rows, func(r report.Row) bool { return r.Treatment == treatment })
	switch {
	case i < 0:
		return ""
	case t.Rows[i].Missing != "" && line == 0:
		return `\emph{missing}`
	case t.Rows[i].Missing != "":
		return ""
	}
	return row.value(&t.Rows[i])
}

// treatmentsOf lists the treatments of all columns in the order they appear.
func treatmentsOf(columns []latexColumn) (names, labels []string) {
	for _, c := range columns {
		for i := range c.table.Rows {
			if r := &c.table.Rows[i]; !slices.Contains(names, r.Treatment) {
				names, labels = append(names, r.Treatment), append(labels, r.Label)
			}
		}
	}
	return names, labels
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
			note(tex(t.RadioTitle + " at " + t.TopologyTitle + ": " + s + "."))
		}
		if t.Conclusion != "" {
			where := t.RadioTitle + " at " + t.TopologyTitle + ", " + kilobytes(t.SizeBytes)
			if t.Settings != "" {
				where += ", " + t.Settings
			}
			note(tex(where + ": " + t.Conclusion))
		}
		for j := range t.Rows {
			if r := &t.Rows[j]; r.Missing != "" {
				note(tex(r.Label + " is missing: " + r.Missing + "."))
			}
		}
	}
	for _, n := range v.Dataset.Notes {
		note(tex(n))
	}
	if len(notes) > 0 {
		b.WriteString("\n\\vspace{2ex}{\\scriptsize " + strings.Join(notes, "\\\\{}\n") + "\\par}\n")
	}
}
