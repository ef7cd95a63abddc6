package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

const noPublished = "The plan holds no published values for these runs."

var againstFormat = &Format{Name: "against", Title: "Plain text, beside the published values", File: "against.txt", MediaType: plain, Of: OfPublished,
	Holds: "the plan's published values beside the measured ones",
	write: inMemory(renderAgainst)}

var againstCSVFormat = &Format{Name: "against-csv", Title: "CSV, beside the published values", File: "against.csv", MediaType: csvText, Of: OfPublished,
	Holds: "the same, a row for each published value",
	write: renderAgainstCSV}

var againstJSONFormat = &Format{Name: "against-json", Title: "JSON, beside the published values", File: "against.json", MediaType: jsonText, Of: OfPublished,
	Holds: "the same, for programs",
	write: inMemory(renderAgainstJSON)}

var againstMarkdownFormat = &Format{Name: "against-markdown", Title: "Markdown, beside the published values", File: "against.md", MediaType: markdown, Of: OfPublished,
	Holds: "the same as tables",
	write: inMemory(renderAgainstMarkdown)}

func renderAgainst(v *report.Analysis) ([]byte, error) {
	a := v.Against()
	var b strings.Builder
	paragraph(&b, wording.Clean(cmp.Or(v.Dataset.Plan, "a plan without a name"))+": published values beside ours")
	for from := 0; from < len(a.Lines); {
		to := from + 1
		for to < len(a.Lines) && a.Lines[to].Place() == a.Lines[from].Place() {
			to++
		}
		b.WriteString("\n")
		writeAgainst(&b, a.Lines[from:to])
		from = to
	}
	b.WriteString("\n")
	if len(a.Lines) == 0 {
		paragraph(&b, noPublished)
	}
	for _, m := range a.Missing {
		paragraph(&b, "missing: "+wording.Clean(m.Label)+": "+wording.Clean(m.Reason))
	}
	for _, s := range a.Sentences() {
		paragraph(&b, s)
	}
	if len(a.Lines) > 0 {
		b.WriteString("\n")
		paragraph(&b, "n: trials of ours. off: (ours − published) / published; pt: points of percent. CI: 95 %, Student's t. "+
			"A shape holds within CI where our intervals allow it.")
	}
	writeNotes(&b, v)
	return []byte(b.String()), nil
}

// writeNotes ends a report for terminals.
func writeNotes(b *strings.Builder, v *report.Analysis) {
	for _, n := range v.Dataset.Notes {
		b.WriteString("\n")
		paragraph(b, wording.Clean(n))
	}
	if !v.Dataset.Complete {
		b.WriteString("\n")
		paragraph(b, "partial: the campaign has not ended")
	}
}

// mdNotes ends a report in Markdown.
func mdNotes(b *strings.Builder, v *report.Analysis) {
	for _, n := range v.Dataset.Notes {
		fmt.Fprintf(b, "\n%s\n", md(n))
	}
}

func writeAgainst(b *strings.Builder, lines []report.AgainstLine) {
	paragraph(b, lines[0].Place())
	g := grid{header: []string{"", "metric", "published", "ours", "95 % CI", "n", "off", ""}}
	var notes, sources []string
	for i := range lines {
		l := &lines[i]
		if s := wording.Clean(cmp.Or(l.Source, "source not stated")); !slices.Contains(sources, s) {
			sources = append(sources, s)
		}
		label := wording.Clean(l.Label)
		switch l.Kind {
		case "text":
			notes = append(notes, wording.Clean(l.Statement))
			continue
		case "shape":
			s := label + ", " + l.Short + ": " + wording.Clean(l.Statement) + ": " + string(l.Outcome)
			if l.Detail != "" {
				s += " (" + wording.Clean(l.Detail) + ")"
			}
			notes = append(notes, s)
			continue
		}
		n := ""
		if l.N > 0 {
			n = strconv.Itoa(l.N)
		}
		statement := wording.Clip(wording.Clean(l.Statement), 34)
		g.rows = append(g.rows, gridRow{cells: []string{label, l.Short, statement, l.OursText(), l.CIText(), n, l.OffText(), string(l.Outcome)}})
		if l.Detail != "" && l.Outcome != report.OutcomeGone {
			if note := label + ", " + l.Short + ": " + wording.Clean(l.Detail); !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	if len(g.rows) > 0 {
		g.write(b)
	}
	for _, n := range notes {
		paragraph(b, n)
	}
	paragraph(b, "source: "+strings.Join(sources, "; "))
}

// againstColumns are those of against.csv; docs/exports.md describes them.
func againstColumns() []column[*report.AgainstLine] {
	number := func(x func(*report.AgainstLine) *float64) func(*report.AgainstLine) string {
		return func(l *report.AgainstLine) string { return nine(x(l)) }
	}
	return []column[*report.AgainstLine]{
		{"group", func(l *report.AgainstLine) string { return l.Group }},
		{"where", func(l *report.AgainstLine) string { return l.Where }},
		{"treatment", func(l *report.AgainstLine) string { return l.Treatment }},
		{"label", func(l *report.AgainstLine) string { return l.Label }},
		{"metric", func(l *report.AgainstLine) string { return l.Metric }},
		{"kind", func(l *report.AgainstLine) string { return l.Kind }},
		{"statement", func(l *report.AgainstLine) string { return l.Statement }},
		{"about", func(l *report.AgainstLine) string { return strconv.FormatBool(l.About) }},
		{"source", func(l *report.AgainstLine) string { return l.Source }},
		{"published", number(func(l *report.AgainstLine) *float64 { return l.Published })},
		{"published_low", number(func(l *report.AgainstLine) *float64 { return l.Low })},
		{"published_high", number(func(l *report.AgainstLine) *float64 { return l.High })},
		{"ours", number(func(l *report.AgainstLine) *float64 { return l.Ours })},
		{"ours_ci95_low", number(func(l *report.AgainstLine) *float64 { return low(l.CI) })},
		{"ours_ci95_high", number(func(l *report.AgainstLine) *float64 { return high(l.CI) })},
		{"n", func(l *report.AgainstLine) string { return whole(l.N) }},
		{"runs", func(l *report.AgainstLine) string { return whole(l.Runs) }},
		{"deviation_percent", number(func(l *report.AgainstLine) *float64 { return l.Deviation })},
		{"outcome", func(l *report.AgainstLine) string { return string(l.Outcome) }},
		{"detail", func(l *report.AgainstLine) string { return l.Detail }},
		{"imported", func(l *report.AgainstLine) string { return l.Imported }},
	}
}

func renderAgainstCSV(w io.Writer, v *report.Analysis) error {
	a := v.Against()
	rows := make([]*report.AgainstLine, len(a.Lines))
	for i := range a.Lines {
		rows[i] = &a.Lines[i]
	}
	return writeCSV(w, againstColumns(), rows)
}

func renderAgainstJSON(v *report.Analysis) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(struct {
		Format   int      `json:"format"`
		Campaign string   `json:"campaign"`
		Plan     string   `json:"plan"`
		Complete bool     `json:"complete"`
		Notes    []string `json:"notes,omitempty"`
		*report.Against
	}{report.JSONFormat, v.Dataset.Campaign, v.Dataset.Plan, v.Dataset.Complete, v.Dataset.Notes, v.Against()})
	return b.Bytes(), err
}

func renderAgainstMarkdown(v *report.Analysis) ([]byte, error) {
	a := v.Against()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: published values beside ours\n\nCampaign %s", md(cmp.Or(v.Dataset.Plan, "a plan without a name")), md(v.Dataset.Campaign))
	if !v.Dataset.Complete {
		b.WriteString(", **partial**: it has not ended")
	}
	b.WriteString(". n: trials of ours. Off: (ours − published) / published; pt: points of percent. CI: Student's t. A shape holds within CI where our intervals allow it.\n\n")
	if len(a.Lines) == 0 {
		b.WriteString(noPublished + "\n\n")
	}
	place := ""
	var rows [][]string
	flush := func() {
		if len(rows) > 0 {
			fmt.Fprintf(&b, "## %s\n\n", md(place))
			mdTable(&b, []string{"Treatment", "Metric", "Published", "Ours", "95 % CI", "n", "Off", "Outcome", "Detail", "Source"}, rows)
		}
		rows = nil
	}
	for i := range a.Lines {
		l := &a.Lines[i]
		if p := l.Place(); p != place {
			flush()
			place = p
		}
		rows = append(rows, []string{md(l.Label), l.Short, md(l.Statement), l.OursText(), l.CIText(), whole(l.N), l.OffText(), string(l.Outcome), md(l.Detail), md(l.Source)})
	}
	flush()
	for _, m := range a.Missing {
		fmt.Fprintf(&b, "- missing: %s: %s\n", md(m.Label), md(m.Reason))
	}
	if len(a.Missing) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(strings.Join(a.Sentences(), " ") + "\n")
	mdNotes(&b, v)
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

// fits reports whether a text has room in a table's line.
func fits(s string) bool { return utf8.RuneCountInString(s) <= tableWidth/2 }
