package document

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// grid is a table under construction, with one head a column.
type grid struct {
	caption string
	heads   []string
	numbers []string // heads of columns of numbers
	mono    []string // heads of columns of identities and digests
	rows    []Row
	notes   []string
}

// add appends a row; texts that people typed become fit for one line.
func (g *grid) add(cells ...string) {
	for i := range cells {
		cells[i] = wording.Clean(cells[i])
	}
	g.rows = append(g.rows, Row{Cells: cells})
}

// group is [grid.add] of a row that begins a group.
func (g *grid) group(cells ...string) {
	g.add(cells...)
	g.rows[len(g.rows)-1].Group = true
}

// blocks is the table; none without rows. A column without any text is left out.
func (g *grid) blocks() []Block {
	if len(g.rows) == 0 {
		return nil
	}
	t := &Table{Caption: wording.Clean(g.caption), Notes: g.notes, Heads: [][]Head{nil}}
	var kept []int
	for i, head := range g.heads {
		if !slices.ContainsFunc(g.rows, func(r Row) bool { return r.Cells[i] != "" }) {
			continue
		}
		kept = append(kept, i)
		t.Heads[0] = append(t.Heads[0], Head{Text: head})
		t.Columns = append(t.Columns, Column{Number: slices.Contains(g.numbers, head), Mono: slices.Contains(g.mono, head)})
	}
	for _, r := range g.rows {
		row := Row{Group: r.Group}
		for _, i := range kept {
			row.Cells = append(row.Cells, r.Cells[i])
		}
		t.Rows = append(t.Rows, row)
	}
	return []Block{tableBlock(t)}
}

// partOf is a section below a chapter; none without blocks.
func partOf(id, title string, blocks ...[]Block) []Section {
	all := slices.Concat(blocks...)
	if len(all) == 0 {
		return nil
	}
	return []Section{{ID: id, Title: title, Level: 2, Blocks: all}}
}

// chapterOf puts parts below a chapter; none where neither it nor a part has content.
func chapterOf(id, title string, blocks []Block, parts ...[]Section) []Section {
	below := slices.Concat(parts...)
	if len(blocks) == 0 && len(below) == 0 {
		return nil
	}
	return append([]Section{{ID: id, Title: title, Level: 1, Blocks: blocks}}, below...)
}

// paragraphs are blocks of the texts that are not empty.
func paragraphs(texts ...string) (out []Block) {
	for _, s := range texts {
		if s = wording.Clean(s); s != "" {
			out = append(out, paragraph(s))
		}
	}
	return out
}

// factsOf is a list of names and values; none without facts.
func factsOf(all []Fact) []Block {
	if len(all) == 0 {
		return nil
	}
	return []Block{facts(all...)}
}

// listOf is a list; none without entries.
func listOf(items []string) []Block {
	if len(items) == 0 {
		return nil
	}
	for i := range items {
		items[i] = wording.Clean(items[i])
	}
	return []Block{list(items...)}
}

// spread is the distinct texts of something over runs, in the order in which they occur.
type spread struct {
	texts []string
	runs  [][]int // of each text, from 0
}

// add notes the text of a run.
func (s *spread) add(run int, text string) {
	i := slices.Index(s.texts, text)
	if i < 0 {
		i = len(s.texts)
		s.texts, s.runs = append(s.texts, text), append(s.runs, nil)
	}
	if n := len(s.runs[i]); n == 0 || s.runs[i][n-1] != run {
		s.runs[i] = append(s.runs[i], run)
	}
}

// mostSpread is how many texts of a spread are written out.
const mostSpread = 8

// text is the one that so many runs have, or each with its runs, of all runs of the report;
// empty: none is known.
func (s *spread) text(of, all int) string {
	if len(s.texts) == 1 && len(s.runs[0]) == of {
		return s.texts[0]
	}
	var parts []string
	for i, text := range s.texts[:min(len(s.texts), mostSpread)] {
		if text != "" {
			parts = append(parts, text+" ("+runsText(s.runs[i], all)+")")
		}
	}
	if more := len(s.texts) - mostSpread; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "; ")
}

// spreadFacts are facts over runs, in the order in which they were added first.
type spreadFacts struct {
	names []string
	of    map[string]*spread
}

func (f *spreadFacts) add(run int, name, text string) {
	if f.of == nil {
		f.of = map[string]*spread{}
	}
	s := f.of[name]
	if s == nil {
		s = &spread{}
		f.of[name], f.names = s, append(f.names, name)
	}
	s.add(run, text)
}

// facts are those that have a text, of so many runs out of all runs of the report.
func (f *spreadFacts) facts(of, all int) (out []Fact) {
	for _, name := range f.names {
		if text := f.of[name].text(of, all); text != "" {
			out = append(out, Fact{Name: name, Value: text})
		}
	}
	return cleanFacts(out)
}

// cleanFacts makes texts that people typed fit for one line.
func cleanFacts(all []Fact) []Fact {
	for i := range all {
		all[i].Value = wording.Clean(all[i].Value)
	}
	return all
}

// sortedKeys are the keys of a map, in order.
func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// runsText names runs by their numbers in the tables of a report, from 1.
func runsText(runs []int, all int) string { return report.RunNumbers(runs, all) }

// someRuns is [runsText], empty where these are all runs.
func someRuns(runs []int, all int) string {
	if len(runs) == all {
		return ""
	}
	return runsText(runs, all)
}

// sheetsOf calls f for every run whose sheet is known, and returns how many there are.
func sheetsOf(v *report.Analysis, f func(run int, r *report.Run, s *runsheet.Sheet)) (n int) {
	for i := range v.Dataset.Runs {
		if r := &v.Dataset.Runs[i]; r.Sheet != nil {
			f(i, r, r.Sheet)
			n++
		}
	}
	return n
}

// emulatedRun reports whether the radios of a run were emulated.
func emulatedRun(r *report.Run) bool {
	return r.Place == journal.PlaceVirtual || r.Place == journal.PlaceEmulated
}

// radioAt names what a run was over, without what all runs of a plan have.
func radioAt(t *report.RunTable) string {
	if t.RadioTitle == "" && t.TopologyTitle == "" {
		return ""
	}
	return wording.Clean(t.RadioTitle + " at " + t.TopologyTitle)
}

// settingsOf is the group of the plan and what its sweep has set.
func settingsOf(t *report.RunTable) string {
	return wording.Clean(strings.TrimPrefix(strings.TrimSuffix(t.Group+" · "+t.Settings, " · "), " · "))
}

// caseOf is what tells a run from others of its radio and place: its settings, and its size
// where runs differ in it.
func caseOf(v *report.Analysis, t *report.RunTable) string {
	settings := settingsOf(t)
	differ := slices.ContainsFunc(v.Tables, func(other report.RunTable) bool { return other.SizeBytes != v.Tables[0].SizeBytes })
	if !differ || t.RadioTitle == "" {
		return settings
	}
	return strings.TrimPrefix(settings+" · "+unit.FormatPayload(t.SizeBytes), " · ")
}

// exact writes a number with all its digits, without what the binary form of it adds.
func exact(x float64) string {
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64); err == nil {
		x = rounded
	}
	return wording.Minus(strconv.FormatFloat(x, 'f', -1, 64))
}

// lasting writes a time for people: "300 s", "20 ms".
func lasting(d time.Duration) string {
	if d >= time.Second || d == 0 {
		return exact(d.Seconds()) + " s"
	}
	return exact(float64(d)/1e6) + " ms"
}

// momentOf is a moment for people; empty: it is not known.
func momentOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return unit.Moment(t)
}
