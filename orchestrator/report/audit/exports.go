package audit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Export is one exported file.
type Export struct {
	Name string // one of [ExportNames]
	From string // its path, or where else it comes from
	Open func() (io.ReadCloser, error)
}

// checkExports holds exported files against the journals.
func (a *auditor) checkExports(values []value) error {
	c := a.check(Exports)
	switch {
	case !a.history.seen:
		c.skip("there is no record of the leading node")
		return nil
	case len(a.run.Exports) == 0:
		c.skip("no exported files were given")
		return nil
	case !a.run.Ended():
		c.skip("the run is under way: its exports change")
		return nil
	}
	x := &exported{a: a, values: values}
	x.names, x.by = a.summaries(values)
	stored := 0
	for i := range values {
		if values[i].rate > 0 && !values[i].derived {
			stored++
		}
	}
	if stored > 0 {
		c.note("the rates of %d attempts of several flows that times bound are held against the store's, not computed again", stored)
	}
	older, marked := a.beforeMarks()
	for i := range a.run.Exports {
		e := &a.run.Exports[i]
		found, err := x.file(e)
		if err != nil {
			return err
		}
		if marked && len(found.Findings) > 0 {
			y := &exported{a: older, values: older.valuesOf()}
			y.names, y.by = older.summaries(y.values)
			before, err := y.file(e)
			if err != nil {
				return err
			}
			if len(before.Findings) == 0 {
				found = before
				found.find(Finding{File: e.From}, "the mark is younger than the file: it has what was measured before an attempt was marked; export it again")
			}
		}
		c.merge(found)
	}
	return nil
}

// beforeMarks is the same run as it was before anybody marked an attempt; false: nobody has.
func (a *auditor) beforeMarks() (*auditor, bool) {
	b, run, marked := *a, *a.run, false
	b.run = &run
	run.Trials = slices.Clone(run.Trials)
	for i := range run.Trials {
		t := &run.Trials[i]
		t.Attempts = slices.Clone(t.Attempts)
		for k := range t.Attempts {
			row := &t.Attempts[k]
			if row.Mark == nil {
				continue
			}
			marked = true
			row.Verdict, row.Reason, row.Mark = row.Mark.Verdict, row.Mark.VerdictReason, nil
			if k == len(t.Attempts)-1 && t.Verdict != "" {
				t.Verdict = row.Verdict
			}
		}
	}
	return &b, marked
}

// ExportNames are the files that are checked.
var ExportNames = []string{"delivery.csv", "results.csv", "results.json", "results.md", "samples.csv", "trials.csv"}

// file checks one file.
func (x *exported) file(e *Export) (*Check, error) {
	x.c, x.from = &Check{}, e.From
	read := map[string]func(io.Reader) error{"trials.csv": x.trials, "results.csv": x.results, "delivery.csv": x.deliveries, "results.json": x.json, "results.md": x.markdown, "samples.csv": x.samples}[e.Name]
	if read == nil {
		return x.c, nil
	}
	f, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := read(f); err != nil {
		x.c.find(Finding{File: e.From}, "it cannot be read: %s", err)
	}
	return x.c, nil
}

// exported is the check of one file after the other.
type exported struct {
	a      *auditor
	c      *Check
	values []value
	names  []string
	by     map[string]*summary
	from   string
}

func (x *exported) find(format string, args ...any) {
	x.c.find(Finding{File: x.from}, format, args...)
}

func (x *exported) findAt(f *value, format string, args ...any) {
	at := ofTrial(f.trial, f.attempt)
	at.File = x.from
	x.c.find(at, format, args...)
}

// row is a line of a CSV file by the names of its columns.
type row struct {
	columns map[string]int
	values  []string
	missing string // a column that was asked for, and is not there
}

func (r *row) text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		r.missing = column
		return ""
	}
	return r.values[i]
}

func (r *row) whole(column string) int {
	n, err := strconv.Atoi(r.text(column))
	if err != nil {
		return -1
	}
	return n
}

// real is a number, NaN where there is none.
func (r *row) real(column string) float64 {
	v, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// each reads the rows of this run.
func (x *exported) each(r io.Reader, f func(*row)) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty, expected a line with the names of the columns")
	} else if err != nil {
		return err
	}
	line := &row{columns: map[string]int{}}
	for i, name := range head {
		line.columns[strings.Clone(name)] = i
	}
	for {
		line.values, err = in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i, cell := range line.values {
			line.values[i] = textOf(cell)
		}
		if line.text("run") == x.a.run.ID {
			f(line)
		}
		if line.missing != "" {
			return fmt.Errorf("it has no column %s", line.missing)
		}
	}
}

// textOf takes the apostrophe away that keeps a spreadsheet from taking a text for a
// formula (docs/exports.md).
func textOf(cell string) string {
	rest, has := strings.CutPrefix(cell, "'")
	if bare := strings.TrimLeft(rest, "'"); has && bare != "" && strings.ContainsRune("=+-@\t\r", rune(bare[0])) {
		return rest
	}
	return cell
}

// decimals is how many decimals a number is written with, and at least so many: files of
// earlier versions have a fixed number of them, later ones nine significant digits without
// the zeros at their end.
func decimals(text string, least int) int {
	mantissa, exponent, _ := strings.Cut(text, "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	power, _ := strconv.Atoi(exponent) // 0 without one
	return max(least, len(fraction)-power)
}

// same reports whether a written number is the computed one, rounded to a number of
// decimals.
func same(written, computed float64, decimals int) bool {
	if math.IsNaN(written) || math.IsNaN(computed) {
		return math.IsNaN(written) && math.IsNaN(computed)
	}
	return math.Abs(written-computed) <= 0.501*math.Pow10(-decimals)+2e-8*math.Abs(computed)
}

func orNaN(v float64, has bool) float64 {
	if !has {
		return math.NaN()
	}
	return v
}
