package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// File is one rendered report.
type File struct {
	Name      string // as it is best called on disk, without a folder
	MediaType string
	Content   []byte
}

// view is what every format is rendered from.
type view struct {
	ds     *Dataset
	tables []RunTable
	all    []summarised // with what the tables were made from
}

type format struct {
	name      string
	file      string
	mediaType string
	exported  bool // part of [Export]
	bootstrap bool // shows bootstrap intervals, which take longer than all else
	render    func(*view) ([]byte, error)
}

var formats = []format{
	{"table", "results.txt", "text/plain; charset=utf-8", false, false, renderTable},
	{"csv", "results.csv", "text/csv; charset=utf-8; header=present", true, true, renderCSV},
	{"trials-csv", "trials.csv", "text/csv; charset=utf-8; header=present", true, false, renderTrialsCSV},
	{"json", "results.json", "application/json", true, true, renderJSON},
	{"markdown", "results.md", "text/markdown; charset=utf-8", true, true, renderMarkdown},
	{"latex", "results.tex", "application/x-tex", true, false, renderLaTeX},
	{"svg", "results.svg", "image/svg+xml", true, false, renderSVG},
	{"sweep", "sweep.txt", "text/plain; charset=utf-8", false, false, renderSweep},
	{"sweep-svg", "sweep.svg", "image/svg+xml", false, false, renderSweepSVG},
	{"against", "against.txt", "text/plain; charset=utf-8", false, false, renderAgainst},
	{"against-csv", "against.csv", "text/csv; charset=utf-8; header=present", false, false, renderAgainstCSV},
	{"against-json", "against.json", "application/json", false, false, renderAgainstJSON},
	{"against-markdown", "against.md", "text/markdown; charset=utf-8", false, false, renderAgainstMarkdown},
}

// Formats lists the names [Render] takes.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Render makes one report. The same dataset gives the same bytes. The error is
// one sentence for people: an unknown format, or a dataset that holds numbers
// which are none.
func Render(ds *Dataset, name string) (File, error) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return File{}, fmt.Errorf("unknown format %q; there are %s", name, strings.Join(Formats(), ", "))
	}
	return formats[i].write(newView(ds, formats[i].bootstrap))
}

// Export makes the reports that are kept of a campaign, in a stated order.
func Export(ds *Dataset) ([]File, error) {
	v := newView(ds, true)
	var files []File
	for _, f := range formats {
		if !f.exported {
			continue
		}
		file, err := f.write(v)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func (f format) write(v *view) (File, error) {
	content, err := f.render(v)
	if err != nil {
		return File{}, fmt.Errorf("report as %s: %w", f.name, err)
	}
	return File{Name: f.file, MediaType: f.mediaType, Content: content}, nil
}

func newView(ds *Dataset, bootstrap bool) *view {
	n := inUTC(ds)
	v := &view{ds: n, all: summarize(n, bootstrap)}
	for i := range v.all {
		v.tables = append(v.tables, v.all[i].table)
	}
	return v
}

// inUTC is a copy whose times are UTC: bytes must not depend on the time zone of
// the machine that writes them.
func inUTC(ds *Dataset) *Dataset {
	utc := func(t *time.Time) { *t = t.UTC().Round(0) }
	out := *ds
	utc(&out.Created)
	out.Runs = slices.Clone(ds.Runs)
	for i := range out.Runs {
		r := &out.Runs[i]
		utc(&r.Started)
		utc(&r.Ended)
		r.Trials = slices.Clone(r.Trials)
		for j := range r.Trials {
			t := &r.Trials[j]
			t.Attempts = slices.Clone(t.Attempts)
			for k := range t.Attempts {
				utc(&t.Attempts[k].Started)
			}
		}
	}
	return &out
}
