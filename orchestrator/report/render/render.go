package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"linktrial/orchestrator/report"
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

// As makes one report; whether it has bootstrap intervals is the format's own.
// The same dataset gives the same bytes. The error is one sentence for people:
// an unknown format, or a dataset that holds numbers which are none.
func As(ds *report.Dataset, name string, o report.Options) (File, error) {
	return Checked(ds, name, o, func(*report.Analysis) error { return nil })
}

// Checked is [As] of an analysis that check has seen and not refused.
func Checked(ds *report.Dataset, name string, o report.Options, check func(*report.Analysis) error) (File, error) {
	f := Find(name)
	if f == nil || f.write == nil {
		return File{}, fmt.Errorf("unknown format %q; there are %s", name, strings.Join(OfDataset(), ", "))
	}
	o.Bootstrap = f.bootstrap
	v := report.Analyse(ds, o)
	if err := check(v); err != nil {
		return File{}, err
	}
	name, parts := f.File, 1
	if f.parts != nil {
		parts = f.parts(v)
	}
	if o.Part > parts {
		return File{}, fmt.Errorf("%w: %s:%d: the figure has %s", ErrNoPart, f.Name, o.Part, wording.Plural(parts, "part", "parts"))
	}
	if parts > 1 {
		ext := filepath.Ext(name)
		name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), max(1, o.Part), ext)
	}
	return File{Name: name, MediaType: f.MediaType, Parts: parts, Write: func(w io.Writer) error {
		if err := f.write(w, v); err != nil {
			if f.Document { // its errors say that it is the report
				return err
			}
			return fmt.Errorf("report as %s: %w", f.Name, err)
		}
		return nil
	}}, nil
}
