package document

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

func published(v *report.Analysis) ([]Section, error) {
	a := v.Against()
	if len(a.Lines) == 0 {
		return nil, nil
	}
	s := Section{ID: "published", Title: "Published values", Level: 1}
	if sentences := a.Sentences(); len(sentences) > 0 {
		s.Blocks = append(s.Blocks, paragraph(strings.Join(sentences, " ")))
	}
	var places [][]report.AgainstLine
	for i := range a.Lines {
		if i == 0 || a.Lines[i].Place() != a.Lines[i-1].Place() {
			places = append(places, nil)
		}
		last := len(places) - 1
		places[last] = append(places[last], a.Lines[i])
	}
	s.Blocks = append(s.Blocks, publishedTables(places)...)
	s.Blocks = append(s.Blocks, paragraph("n: trials of ours. Off: (ours − published) / published; pt: points of percent. CI: 95 %, Student's t. A shape holds within CI where our intervals allow it."))
	if texts := withoutCounterpart(v, a); len(texts) > 0 {
		s.Blocks = append(s.Blocks, paragraph("Without a counterpart:"), list(texts...))
	}
	return []Section{s}, nil
}

func publishedColumns() []column {
	return slices.Concat([]column{textColumn("Treatment"), textColumn("Metric"), textColumn("Published")}, numberColumns("Ours", "95 % CI", "n", "Off"), []column{textColumn("Outcome")})
}

// publishedTables are a table for each place; of many places one, with a column that names it.
func publishedTables(places [][]report.AgainstLine) (out []Block) {
	if len(places) > mostRunTables {
		t := plainTable("Published values beside ours", append([]column{textColumn("Where")}, publishedColumns()...))
		for _, lines := range places {
			addPublished(t, lines, lines[0].Place())
		}
		return []Block{tableBlock(t)}
	}
	for _, lines := range places {
		t := plainTable("Published values beside ours: "+lines[0].Place(), publishedColumns())
		addPublished(t, lines)
		out = append(out, tableBlock(t))
	}
	return out
}

// addPublished adds a row a value, with further cells before those of the first, and what
// only words say as notes.
func addPublished(t *Table, lines []report.AgainstLine, first ...string) {
	place := ""
	if len(first) > 0 {
		place = first[0] + ": "
	}
	var sources []string
	for i, before := range lines {
		l := &before
		if s := wording.Clean(cmp.Or(l.Source, "source not stated")); !slices.Contains(sources, s) {
			sources = append(sources, s)
		}
		label, n := wording.Clean(l.Label), ""
		if l.Kind == "text" {
			t.note(place + wording.Clean(l.Statement))
			continue
		}
		if l.N > 0 {
			n = strconv.Itoa(l.N)
		}
		cells := append(make([]string, 0, len(t.Columns)), first...)
		t.Rows = append(t.Rows, Row{Group: i == 0 || lines[i-1].Label != l.Label,
			Cells: append(cells, label, l.Short, wording.Clean(l.Statement), l.OursText(), l.CIText(), n, l.OffText(), string(l.Outcome))})
		if l.Detail != "" && l.Outcome != report.OutcomeGone && l.Outcome != report.OutcomeNone {
			t.note(place + label + ", " + l.Short + ": " + wording.Clean(l.Detail))
		}
		clear(first)
	}
	t.note("Source: " + strings.Join(sources, "; "))
}

// withoutCounterpart says which published values have none of ours, and why.
func withoutCounterpart(v *report.Analysis, a *report.Against) (out []string) {
	for _, m := range a.Missing {
		out = append(out, wording.Clean(m.Label)+": could not be run: "+wording.Clean(m.Reason))
	}
	for i := range a.Lines {
		if l := &a.Lines[i]; l.Outcome == report.OutcomeNone {
			out = append(out, l.Place()+", "+wording.Clean(l.Label)+", "+l.Short+": "+wording.Clean(cmp.Or(l.Detail, "we have no value")))
		}
	}
	if n := unmatched(v); n > 0 {
		out = append(out, wording.Plural(n, "published row is", "published rows are")+" of radios, topologies or treatments that no run here has, or that only a radio without a name was planned as.")
	}
	shown, rest := bounded(out, "%d more.")
	if rest != "" {
		shown = append(slices.Clone(shown), rest)
	}
	return shown
}

// unmatched is how many rows of the plan's published table are beside no row of ours.
func unmatched(v *report.Analysis) (n int) {
	for _, p := range v.Dataset.Published {
		if !slices.ContainsFunc(v.Tables, func(t report.RunTable) bool {
			return t.Has(func(r *report.Row) bool { return r.Published != nil && sameRow(&r.Published.PublishedRow, &p) })
		}) {
			n++
		}
	}
	return n
}

func sameRow(a, b *report.PublishedRow) bool {
	return a.Group == b.Group && a.Topology == b.Topology && a.Radio == b.Radio && a.Treatment == b.Treatment && slices.Equal(a.Where, b.Where)
}
