package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const noPublished = "The plan holds no published figures for these runs."

func (l *AgainstLine) place() string {
	parts := slices.DeleteFunc([]string{l.Group, l.Where}, func(s string) bool { return s == "" })
	return clean(cmp.Or(strings.Join(parts, " · "), "all runs"))
}

// off is how far ours lies off, as the kind of figure has it.
func (l *AgainstLine) off() string {
	switch {
	case l.Deviation == nil:
		return ""
	case l.Kind == "change":
		return strings.TrimSuffix(deviation(l.Deviation), " %") + " pt"
	}
	return deviation(l.Deviation)
}

func (l *AgainstLine) ours() string {
	if l.Ours == nil {
		return ""
	}
	if l.Kind == "change" {
		return deviation(l.Ours)
	}
	return short(l.Ours)
}

func (l *AgainstLine) interval() string {
	if l.CI == nil {
		return ""
	}
	return span(l.CI, short)
}

func renderAgainst(v *view) ([]byte, error) {
	a := v.against()
	var b strings.Builder
	paragraph(&b, clean(cmp.Or(v.ds.Plan, "a plan without a name"))+": published figures beside ours")
	for from := 0; from < len(a.Lines); {
		to := from + 1
		for to < len(a.Lines) && a.Lines[to].place() == a.Lines[from].place() {
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
		paragraph(&b, "missing: "+clean(m.Label)+": "+clean(m.Reason))
	}
	for _, s := range a.sentences() {
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
func writeNotes(b *strings.Builder, v *view) {
	for _, n := range v.ds.Notes {
		b.WriteString("\n")
		paragraph(b, clean(n))
	}
	if !v.ds.Complete {
		b.WriteString("\n")
		paragraph(b, "partial: the campaign has not ended")
	}
}

func writeAgainst(b *strings.Builder, lines []AgainstLine) {
	paragraph(b, lines[0].place())
	g := grid{header: []string{"", "metric", "published", "ours", "95 % CI", "n", "off", ""}}
	var notes, sources []string
	for i := range lines {
		l := &lines[i]
		if s := clean(cmp.Or(l.Source, "source not stated")); !slices.Contains(sources, s) {
			sources = append(sources, s)
		}
		label := clean(l.Label)
		switch l.Kind {
		case "text":
			notes = append(notes, clean(l.Statement))
			continue
		case "shape":
			s := label + ", " + l.short + ": " + clean(l.Statement) + ": " + string(l.Outcome)
			if l.Detail != "" {
				s += " (" + clean(l.Detail) + ")"
			}
			notes = append(notes, s)
			continue
		}
		n := ""
		if l.N > 0 {
			n = strconv.Itoa(l.N)
		}
		statement := clip(clean(l.Statement), 34)
		g.rows = append(g.rows, gridRow{cells: []string{label, l.short, statement, l.ours(), l.interval(), n, l.off(), string(l.Outcome)}})
		if l.Detail != "" && l.Outcome != OutcomeGone {
			if note := label + ", " + l.short + ": " + clean(l.Detail); !slices.Contains(notes, note) {
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
func againstColumns() []column[*AgainstLine] {
	number := func(x func(*AgainstLine) *float64) func(*AgainstLine) string {
		return func(l *AgainstLine) string { return digits(x(l)) }
	}
	return []column[*AgainstLine]{
		{"group", func(l *AgainstLine) string { return l.Group }},
		{"where", func(l *AgainstLine) string { return l.Where }},
		{"treatment", func(l *AgainstLine) string { return l.Treatment }},
		{"label", func(l *AgainstLine) string { return l.Label }},
		{"metric", func(l *AgainstLine) string { return l.Metric }},
		{"kind", func(l *AgainstLine) string { return l.Kind }},
		{"statement", func(l *AgainstLine) string { return l.Statement }},
		{"about", func(l *AgainstLine) string { return strconv.FormatBool(l.About) }},
		{"source", func(l *AgainstLine) string { return l.Source }},
		{"published", number(func(l *AgainstLine) *float64 { return l.Published })},
		{"published_low", number(func(l *AgainstLine) *float64 { return l.Low })},
		{"published_high", number(func(l *AgainstLine) *float64 { return l.High })},
		{"ours", number(func(l *AgainstLine) *float64 { return l.Ours })},
		{"ours_ci95_low", number(func(l *AgainstLine) *float64 { return low(l.CI) })},
		{"ours_ci95_high", number(func(l *AgainstLine) *float64 { return high(l.CI) })},
		{"n", func(l *AgainstLine) string { return whole(l.N) }},
		{"runs", func(l *AgainstLine) string { return whole(l.Runs) }},
		{"deviation_percent", number(func(l *AgainstLine) *float64 { return l.Deviation })},
		{"outcome", func(l *AgainstLine) string { return string(l.Outcome) }},
		{"detail", func(l *AgainstLine) string { return l.Detail }},
	}
}

func renderAgainstCSV(v *view) ([]byte, error) {
	a := v.against()
	rows := make([]*AgainstLine, len(a.Lines))
	for i := range a.Lines {
		rows[i] = &a.Lines[i]
	}
	return writeCSV(againstColumns(), rows)
}

func renderAgainstJSON(v *view) ([]byte, error) {
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
		*Against
	}{JSONFormat, v.ds.Campaign, v.ds.Plan, v.ds.Complete, v.ds.Notes, v.against()})
	return b.Bytes(), err
}

func renderAgainstMarkdown(v *view) ([]byte, error) {
	a := v.against()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: published figures beside ours\n\nCampaign %s", md(cmp.Or(v.ds.Plan, "a plan without a name")), md(v.ds.Campaign))
	if !v.ds.Complete {
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
		if p := l.place(); p != place {
			flush()
			place = p
		}
		rows = append(rows, []string{md(l.Label), l.short, md(l.Statement), l.ours(), l.interval(), whole(l.N), l.off(), string(l.Outcome), md(l.Detail), md(l.Source)})
	}
	flush()
	for _, m := range a.Missing {
		fmt.Fprintf(&b, "- missing: %s: %s\n", md(m.Label), md(m.Reason))
	}
	if len(a.Missing) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(strings.Join(a.sentences(), " ") + "\n")
	for _, n := range v.ds.Notes {
		fmt.Fprintf(&b, "\n%s\n", md(n))
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

// fits tells whether a text has room in a table's line.
func fits(s string) bool { return utf8.RuneCountInString(s) <= tableWidth/2 }
