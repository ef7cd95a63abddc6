package results

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

// samplesCSV has a row for each sample.
const samplesCSV = "samples-csv"

// samplesHeader is the columns of samples.csv.
func samplesHeader() []string {
	out := []string{"run", "trial", "iteration", "treatment", "attempt", "flow", "side", "at"}
	for i := range contract.Metrics {
		out = append(out, metricHeader(&contract.Metrics[i]))
	}
	return append(out, "more")
}

// metricHeader is a metric's column in samples.csv: its name, but the time is in seconds.
func metricHeader(f *contract.Metric) string {
	if f.Name == contract.ElapsedNS {
		return "elapsed_s"
	}
	return f.Name
}

// wantedRows is about how many samples one query is for. The database sorts them: that
// many in its memory, many more in files.
const wantedRows = 10_000

// sampleFile is a file that has a row for each sample. What a protocol does not know has no
// value there, because absent is not zero.
type sampleFile interface {
	ofTrial(run string, t *store.Trial) // of the samples that follow
	write(*store.Sample) error          // keeps nothing of it
	close() error
}

// samplesAs writes every sample of the runs, in the order of trials.
func samplesAs[F sampleFile](begin func(io.Writer) (F, error)) rowWriter {
	return func(ctx context.Context, st *store.Store, runs []store.RunHeadsRow, leave leftOut, out *output) error {
		file, err := begin(out)
		if err != nil {
			return err
		}
		if err := writeSamples(ctx, st, runs, leave, file, out.share); err != nil {
			return err
		}
		return file.close()
	}
}

func writeSamples(ctx context.Context, st *store.Store, runs []store.RunHeadsRow, leave leftOut, out sampleFile, tell func(share float64) error) error {
	total, ended := 0, 0
	for i := range runs {
		total += int(runs[i].Trials)
	}
	size := 1 // trials of a query
	for i := range runs {
		id := runs[i].ID
		trials, err := st.Trials(ctx, id)
		if err != nil {
			return fmt.Errorf("trials of run %s: %w", id, err)
		}
		for len(trials) > 0 {
			page := trials[:min(size, len(trials))]
			rows, err := writePage(ctx, st, id, page, leave, out)
			if err != nil {
				return err
			}
			size = max(1, min(4*size, size*wantedRows/max(1, rows), 1000))
			trials = trials[len(page):]
			if err := tell(float64(ended+int(runs[i].Trials)-len(trials)) / float64(max(1, total))); err != nil {
				return err
			}
		}
		ended += int(runs[i].Trials)
	}
	return nil
}

// writePage writes the samples of trials that follow one another, and counts them.
func writePage(ctx context.Context, st *store.Store, run string, page []store.Trial, leave leftOut, out sampleFile) (rows int, err error) {
	k := 0
	out.ofTrial(run, &page[0])
	err = st.EachSampleOfTrials(ctx, run, page[0].Trial, page[len(page)-1].Trial, func(x *store.Sample) error {
		for page[k].Trial != x.Trial {
			if k++; k == len(page) {
				return fmt.Errorf("run %s has samples of trial %d, which it does not have", run, x.Trial)
			}
			out.ofTrial(run, &page[k])
		}
		rows++
		if slices.Contains(leave, page[k].Treatment) {
			return nil
		}
		return out.write(x)
	})
	return rows, err
}

// csvSamples is samples.csv.
type csvSamples struct {
	sampleRow
	out io.Writer
}

func newCSVSamples(out io.Writer) (*csvSamples, error) {
	_, err := io.WriteString(out, strings.Join(samplesHeader(), ",")+"\r\n")
	return &csvSamples{newSampleRow(), out}, err
}

func (c *csvSamples) write(s *store.Sample) error {
	_, err := c.out.Write(c.of(s))
	return err
}

func (c *csvSamples) close() error { return nil }

// sampleRow makes rows of samples.csv, of one trial after the other.
type sampleRow struct {
	head string // of the trial: the cells before the attempt
	row  []byte
	// fields are those of the metrics of sample, which the store uses again for each row.
	sample *store.Sample
	fields []any
	text   *bytes.Buffer
	cells  *csv.Writer // to text
}

func newSampleRow() sampleRow {
	text := &bytes.Buffer{}
	return sampleRow{text: text, cells: csv.NewWriter(text)}
}

// cell is a text as a cell of the file, in quotes where they are needed. It is valid until
// the next call.
func (r *sampleRow) cell(s string) []byte {
	r.text.Reset()
	_ = r.cells.Write([]string{wording.Cell(s)}) // a buffer takes everything
	r.cells.Flush()
	return bytes.TrimSuffix(r.text.Bytes(), []byte("\n"))
}

func (r *sampleRow) ofTrial(run string, t *store.Trial) {
	head := append([]byte(nil), r.cell(run)...)
	head = fmt.Appendf(head, ",%d,%d,", t.Trial, t.Iteration)
	r.head = string(append(head, r.cell(t.Treatment)...))
}

// of returns the row of a sample, which is valid until the next call.
func (r *sampleRow) of(s *store.Sample) []byte {
	if r.sample != s {
		r.sample, r.fields = s, r.fields[:0]
		for i := range contract.Metrics {
			r.fields = append(r.fields, contract.Metrics[i].Field(&s.Metrics))
		}
	}
	b := append(r.row[:0], r.head...)
	b = strconv.AppendInt(append(b, ','), int64(s.Attempt), 10)
	b = strconv.AppendInt(append(b, ','), int64(s.Flow), 10)
	b = append(append(b, ','), r.cell(s.Side)...)
	b = s.At.UTC().AppendFormat(append(b, ','), time.RFC3339Nano)
	for i := range contract.Metrics {
		b = appendMetric(append(b, ','), &contract.Metrics[i], r.fields[i])
	}
	b = append(b, ',')
	if s.More != nil {
		b = append(b, r.cell(string(s.More))...)
	}
	r.row = append(b, "\r\n"...)
	return r.row
}

// appendMetric appends nothing where the protocol does not know the metric.
func appendMetric(b []byte, f *contract.Metric, field any) []byte {
	switch p := field.(type) {
	case *int64:
		if f.Name == contract.ElapsedNS {
			return strconv.AppendFloat(b, time.Duration(*p).Seconds(), 'f', 6, 64)
		}
		return strconv.AppendInt(b, *p, 10)
	case **int64:
		if *p != nil {
			return strconv.AppendInt(b, **p, 10)
		}
	case **float64:
		if *p != nil {
			return strconv.AppendFloat(b, **p, 'g', -1, 64)
		}
	}
	return b
}
