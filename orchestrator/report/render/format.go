package render

import (
	"io"
	"slices"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/parquetfile"
)

// Format is a kind of file that results are exported as. All that is known of it stands
// here: the API, `linktrial results` and its help, the menu of the pages, tools/bench
// and the table in docs/exports.md have it from [Formats].
type Format struct {
	Name      string // as --format takes it
	Title     string // a few words, for a menu
	Holds     string // what is in it, for docs/exports.md: Markdown, without a full stop
	File      string // its name, without a folder
	MediaType string
	Of        Of
	Source    Source
	Numbered  Numbered
	// OnScreen is of what is for a terminal, and so not among the files that are written
	// where no format is named.
	OnScreen bool
	// Telemetry is of what shows it: a data set has it only where it is asked for.
	Telemetry bool
	// Samples is of what draws those of one iteration a run: as [Format.Telemetry].
	Samples bool
	// Document is of a report for people, which a command and a button of their own ask for:
	// it is not among the files that are written where no format is named, either.
	Document bool

	bootstrap bool                                    // shows bootstrap intervals, which take longer than all else
	write     func(io.Writer, *report.Analysis) error // nil: Source is not a data set
	parts     func(*report.Analysis) int              // of a format that has any
}

// Of is of which results there is a format.
type Of string

const (
	OfAll       Of = ""
	OfProbes    Of = "probes"                 // in the plan
	OfSamples   Of = "a trial that has begun" // of the client's samples something can be drawn
	OfSweeps    Of = "sweeps"                 // or several transfer sizes
	OfPublished Of = "published values"       // in the plan
	OfSeveral   Of = "several campaigns at once"
)

// Source is what a file is made of.
type Source int

const (
	FromDataset Source = iota
	// FromRows is of files whose rows are read from the store as they are sent, because
	// they may be larger than any memory. Imported campaigns have none.
	FromRows
	// FromSamples is of drawings of samples, which no data set holds. Imported campaigns
	// have none.
	FromSamples
)

// Numbered is what the number in `NAME:2` is of.
type Numbered string

const (
	ByNothing   Numbered = ""
	ByPart      Numbered = "a part" // of a figure of many panels
	ByIteration Numbered = "an iteration"
)

// The kinds of media.
const (
	csvText     = "text/csv; charset=utf-8; header=present"
	plain       = "text/plain; charset=utf-8"
	markdown    = "text/markdown; charset=utf-8"
	jsonText    = "application/json"
	svgImage    = "image/svg+xml"
	pdfDocument = "application/pdf"
)

// formats are all there are, in the order in which they are listed.
var formats = []*Format{
	tableFormat, csvFormat, trialsFormat, samplesFormat, trialsParquetFormat, samplesParquetFormat,
	channelsFormat, telemetryFormat, readingsFormat, deliveryCSVFormat, probesFormat, breachesFormat,
	jsonFormat, markdownFormat, latexFormat,
	throughputFormat, distributionFormat, deliveryFormat, delaysFormat, sequenceFormat,
	sweepFormat, curvesFormat,
	againstFormat, againstCSVFormat, againstJSONFormat, againstMarkdownFormat,
	differencesFormat, differencesCSVFormat, differencesMarkdownFormat,
	reportFormat, reportPDFFormat,
}

// Formats are all there are.
func Formats() []*Format { return slices.Clone(formats) }

// Names are those of all formats.
func Names() []string { return namesOf(formats) }

// Find returns the format of a name; nil: there is none.
func Find(name string) *Format {
	return firstOf(func(f *Format) bool { return f.Name == name })
}

// OfFile returns the format of a file's name; nil: there is none.
func OfFile(name string) *Format {
	return firstOf(func(f *Format) bool { return f.File == name })
}

func firstOf(is func(*Format) bool) *Format {
	i := slices.IndexFunc(formats, is)
	if i < 0 {
		return nil
	}
	return formats[i]
}

// Own reports whether there is one only of what this orchestrator measured itself.
func (f *Format) Own() bool { return f.Source != FromDataset }

// Drawing reports whether it is a picture.
func (f *Format) Drawing() bool { return f.MediaType == svgImage }

// Text reports whether it can be read as it is, on a terminal too.
func (f *Format) Text() bool {
	return f.MediaType != parquetfile.MediaType && f.MediaType != pdfDocument
}

func namesOf(of []*Format) []string {
	out := make([]string, len(of))
	for i, f := range of {
		out[i] = f.Name
	}
	return out
}

// OfDataset are the names of those that [As] makes.
func OfDataset() []string {
	return namesOf(slices.DeleteFunc(Formats(), func(f *Format) bool { return f.Source != FromDataset }))
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
