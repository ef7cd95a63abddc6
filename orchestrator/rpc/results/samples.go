package results

import (
	"bytes"
	"context"
	"encoding/csv"
	"strconv"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

// samplesCSV is the one format that report does not write: samples are read
// from the store a trial at a time, so that only the text is in memory.
const samplesCSV = "samples-csv"

// samplesHeader is the columns of samples.csv.
func samplesHeader() []string {
	out := []string{"run", "trial", "iteration", "treatment", "attempt", "flow", "side", "at"}
	for i := range contract.Figures {
		out = append(out, figureHeader(&contract.Figures[i]))
	}
	return append(out, "more")
}

// figureHeader is a figure's column in samples.csv: its name, but the time is in seconds.
func figureHeader(f *contract.Figure) string {
	if f.Name == contract.ElapsedNS {
		return "elapsed_s"
	}
	return f.Name
}

// writeSamples is every sample of the runs, in the order of trials; what a
// protocol does not know is left empty, because absent is not zero.
func writeSamples(ctx context.Context, st *store.Store, ds *report.Dataset) (render.File, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.Write(samplesHeader()); err != nil {
		return render.File{}, err
	}
	for _, r := range ds.Runs {
		for _, t := range r.Trials {
			rows, err := st.SamplesOfTrial(ctx, r.ID, t.Index)
			if err != nil {
				return render.File{}, err
			}
			for i := range rows {
				if err := w.Write(wording.Cells(sampleRow(&t, &rows[i]))); err != nil {
					return render.File{}, err
				}
			}
		}
	}
	w.Flush()
	return render.File{Name: "samples.csv", MediaType: "text/csv; charset=utf-8", Content: out.Bytes()}, w.Error()
}

func sampleRow(t *report.Trial, s *store.Sample) []string {
	row := []string{s.RunID, strconv.Itoa(t.Index), strconv.Itoa(t.Iteration), t.Treatment, strconv.Itoa(int(s.Attempt)), strconv.Itoa(int(s.Flow)), s.Side,
		s.At.UTC().Format(time.RFC3339Nano)}
	for i := range contract.Figures {
		row = append(row, figureText(&contract.Figures[i], &s.Figures))
	}
	return append(row, string(s.More))
}

// figureText is empty where the protocol does not know the figure.
func figureText(f *contract.Figure, s *contract.Sample) string {
	if f.Name == contract.ElapsedNS {
		return strconv.FormatFloat(time.Duration(s.ElapsedNS).Seconds(), 'f', 6, 64)
	}
	if x := f.Float(s); x != nil {
		return strconv.FormatFloat(*x, 'g', -1, 64)
	}
	if n := f.Whole(s); n != nil {
		return strconv.FormatInt(*n, 10)
	}
	return ""
}
