package document

import (
	"fmt"
	"slices"

	"linktrial/orchestrator/report"
)

// mostRunTables is how many runs have a table each; of more, one table has a column that
// names the run.
const mostRunTables = 12

// mostNotes is how many sentences on runs a list has.
const mostNotes = 100

// ofRun is what one run adds: rows with a cell a column, and notes.
type ofRun struct {
	run   int // its place in the analysis
	rows  [][]string
	notes []string
}

// column is how a column is called and set.
type column struct {
	head string
	set  Column
}

func textColumn(head string) column { return column{head, Column{}} }

// numberColumns are columns of numbers with these heads.
func numberColumns(heads ...string) []column {
	out := make([]column, len(heads))
	for i, h := range heads {
		out[i] = column{h, Column{Number: true}}
	}
	return out
}

// plainTable is a table with one row of heads.
func plainTable(caption string, columns []column) *Table {
	t := &Table{Caption: caption, Heads: [][]Head{make([]Head, len(columns))}, Columns: make([]Column, len(columns))}
	for i, c := range columns {
		t.Heads[0][i], t.Columns[i] = Head{Text: c.head}, c.set
	}
	return t
}

// tablesOf are a table for each run; of many runs one. A note that several runs have follows
// the last of them.
func tablesOf(names []string, caption string, columns []column, runs []ofRun) (out []Block) {
	if len(runs) <= mostRunTables {
		for i, r := range runs {
			t := plainTable(caption+": "+names[r.run], columns)
			for _, cells := range r.rows {
				t.Rows = append(t.Rows, Row{Cells: cells})
			}
			for _, n := range r.notes {
				if !slices.ContainsFunc(runs[i+1:], func(later ofRun) bool { return slices.Contains(later.notes, n) }) {
					t.note(n)
				}
			}
			out = append(out, tableBlock(t))
		}
		return out
	}
	t := plainTable(caption, append([]column{textColumn("Run")}, columns...))
	seen := map[string]bool{}
	for _, r := range runs {
		name := names[r.run]
		for i, cells := range r.rows {
			t.Rows = append(t.Rows, Row{Cells: append([]string{name}, cells...), Group: i == 0})
			name = ""
		}
		for _, n := range r.notes {
			if !seen[n] {
				seen[n], t.Notes = true, append(t.Notes, n)
			}
		}
	}
	return []Block{tableBlock(t)}
}

// runNames name the runs by their numbers, from 1, and their conditions; one alone has no number.
func runNames(v *report.Analysis) []string {
	out := make([]string, len(v.Tables))
	for i := range v.Tables {
		if out[i] = v.Tables[i].Where(); len(out) > 1 {
			out[i] = fmt.Sprintf("run %d, %s", i+1, out[i])
		}
	}
	return out
}

// bounded is the first of many sentences, and one on how many are not among them.
func bounded(all []string, format string) (shown []string, rest string) {
	if len(all) <= mostNotes {
		return all, ""
	}
	return all[:mostNotes], fmt.Sprintf(format, len(all)-mostNotes)
}
