package results

import (
	"io"
	"time"

	"linktrial/orchestrator/report/parquetfile"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

const samplesParquet = "samples-parquet"

// sampleKinds are the types of the columns before the metrics.
var sampleKinds = []parquetfile.Kind{parquetfile.KindText, parquetfile.KindWhole, parquetfile.KindWhole, parquetfile.KindText, parquetfile.KindWhole, parquetfile.KindWhole, parquetfile.KindText, parquetfile.KindInstant}

// parquetSamples is samples.parquet: the columns of samples.csv.
type parquetSamples struct {
	file  *parquetfile.Writer
	cells []parquetfile.Value // of a row; the first four are the trial's
}

func newParquetSamples(out io.Writer) (*parquetSamples, error) {
	columns := make([]parquetfile.Column, 0, 32)
	for i, name := range samplesHeader() {
		c := parquetfile.Column{Name: name} // a text: more
		if i < len(sampleKinds) {
			c.Kind = sampleKinds[i]
		} else if k := i - len(sampleKinds); k < len(contract.Metrics) {
			c.Kind = parquetfile.KindWhole
			if f := &contract.Metrics[k]; f.Real || f.Name == contract.ElapsedNS {
				c.Kind = parquetfile.KindNumber
			}
		}
		columns = append(columns, c)
	}
	return &parquetSamples{file: parquetfile.NewWriter(out, columns...), cells: make([]parquetfile.Value, len(columns))}, nil
}

func (p *parquetSamples) ofTrial(run string, t *store.Trial) {
	copy(p.cells, []parquetfile.Value{parquetfile.Text(run), parquetfile.Whole(int64(t.Trial)), parquetfile.Whole(int64(t.Iteration)), parquetfile.Text(t.Treatment)})
}

func (p *parquetSamples) write(s *store.Sample) error {
	cells := append(p.cells[:4], parquetfile.Whole(int64(s.Attempt)), parquetfile.Whole(int64(s.Flow)), parquetfile.Text(s.Side), parquetfile.Instant(s.At))
	for i := range contract.Metrics {
		cells = append(cells, metric(&contract.Metrics[i], &s.Metrics))
	}
	return p.file.Write(append(cells, parquetfile.Text(string(s.More))))
}

func (p *parquetSamples) close() error { return p.file.Close() }

func metric(f *contract.Metric, s *contract.Sample) parquetfile.Value {
	if x := f.Float(s); x != nil {
		return parquetfile.Number(*x)
	}
	n := f.Whole(s)
	switch {
	case n == nil:
		return parquetfile.Value{}
	case f.Name == contract.ElapsedNS:
		return parquetfile.Number(time.Duration(*n).Seconds())
	}
	return parquetfile.Whole(*n)
}
