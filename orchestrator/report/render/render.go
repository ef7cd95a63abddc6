package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/wording"
)

// File is one report.
type File struct {
	Name      string // as it is best called on disk, without a folder
	MediaType string
	Write     func(io.Writer) error // of the content, any number of times
	// Parts is how many files a figure of many panels has, of which this is one; else 1.
	Parts int
}

// ErrNoPart is of a figure that does not have the part that [report.Options] ask for.
var ErrNoPart = errors.New("there is no such part")

// Content is all that Write writes.
func (f File) Content() ([]byte, error) {
	var b bytes.Buffer
	err := f.Write(&b)
	return b.Bytes(), err
}

type format struct {
	name      string
	file      string
	mediaType string
	bootstrap bool // shows bootstrap intervals, which take longer than all else
	write     func(io.Writer, *report.Analysis) error
	parts     func(*report.Analysis) int // nil: one file, whatever it shows
}

// DelaysSVG is the format that only a campaign with probes has.
const DelaysSVG = "delays-svg"

var formats = []format{
	{"table", "results.txt", "text/plain; charset=utf-8", false, inMemory(renderTable), nil},
	{"csv", "results.csv", "text/csv; charset=utf-8; header=present", true, renderCSV, nil},
	{"trials-csv", "trials.csv", "text/csv; charset=utf-8; header=present", false, renderTrialsCSV, nil},
	{"probes-csv", "probes.csv", "text/csv; charset=utf-8; header=present", false, renderProbesCSV, nil},
	{"breaches-csv", "breaches.csv", "text/csv; charset=utf-8; header=present", false, renderBreachesCSV, nil},
	{"telemetry-csv", "telemetry.csv", "text/csv; charset=utf-8; header=present", false, renderTelemetryCSV, nil},
	{"json", "results.json", "application/json", true, writeJSON, nil},
	{"markdown", "results.md", "text/markdown; charset=utf-8", true, inMemory(renderMarkdown), nil},
	{"latex", "results.tex", "application/x-tex", false, inMemory(renderLaTeX), nil},
	{"svg", "results.svg", "image/svg+xml", false, inMemory(figure.Throughput), figure.RunParts},
	{"cdf-svg", "cdf.svg", "image/svg+xml", false, inMemory(figure.Distribution), figure.RunParts},
	{DelaysSVG, "delays.svg", "image/svg+xml", false, inMemory(figure.Delays), figure.DelayParts},
	{"sweep", "sweep.txt", "text/plain; charset=utf-8", false, inMemory(renderSweep), nil},
	{"sweep-svg", "sweep.svg", "image/svg+xml", false, inMemory(figure.Curves), figure.CurveParts},
	{"against", "against.txt", "text/plain; charset=utf-8", false, inMemory(renderAgainst), nil},
	{"against-csv", "against.csv", "text/csv; charset=utf-8; header=present", false, renderAgainstCSV, nil},
	{"against-json", "against.json", "application/json", false, inMemory(renderAgainstJSON), nil},
	{"against-markdown", "against.md", "text/markdown; charset=utf-8", false, inMemory(renderAgainstMarkdown), nil},
	{"differences", "differences.txt", "text/plain; charset=utf-8", false, inMemory(renderDifferences), nil},
	{"differences-csv", "differences.csv", "text/csv; charset=utf-8; header=present", false, renderDifferencesCSV, nil},
	{"differences-markdown", "differences.md", "text/markdown; charset=utf-8", false, inMemory(renderDifferencesMarkdown), nil},
}

// inMemory is a format that is made in memory: a table or a figure is small.
func inMemory(render func(*report.Analysis) ([]byte, error)) func(io.Writer, *report.Analysis) error {
	return func(w io.Writer, v *report.Analysis) error {
		content, err := render(v)
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	}
}

func writeJSON(w io.Writer, v *report.Analysis) error { return v.WriteJSON(w) }

// Formats lists the names [As] takes.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// As makes one report; whether it has bootstrap intervals is the format's own.
// The same dataset gives the same bytes. The error is one sentence for people:
// an unknown format, or a dataset that holds numbers which are none.
func As(ds *report.Dataset, name string, o report.Options) (File, error) {
	return Checked(ds, name, o, func(*report.Analysis) error { return nil })
}

// Checked is [As] of an analysis that check has seen and not refused.
func Checked(ds *report.Dataset, name string, o report.Options, check func(*report.Analysis) error) (File, error) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return File{}, fmt.Errorf("unknown format %q; there are %s", name, strings.Join(Formats(), ", "))
	}
	f := formats[i]
	o.Bootstrap = f.bootstrap
	v := report.Analyse(ds, o)
	if err := check(v); err != nil {
		return File{}, err
	}
	name, parts := f.file, 1
	if f.parts != nil {
		parts = f.parts(v)
	}
	if o.Part > parts {
		return File{}, fmt.Errorf("%w: %s:%d: the figure has %s", ErrNoPart, f.name, o.Part, wording.Plural(parts, "part", "parts"))
	}
	if parts > 1 {
		ext := filepath.Ext(name)
		name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), max(1, o.Part), ext)
	}
	return File{Name: name, MediaType: f.mediaType, Parts: parts, Write: func(w io.Writer) error {
		if err := f.write(w, v); err != nil {
			return fmt.Errorf("report as %s: %w", f.name, err)
		}
		return nil
	}}, nil
}
