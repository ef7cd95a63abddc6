package results

import (
	"context"
	"fmt"
	"io"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store"
)

// drawSequence is the time–sequence diagram of one iteration, of the
// first run that has anything to show.
func drawSequence(ctx context.Context, st *store.Store, f *render.Format, ds *report.Dataset, iteration int, leave leftOut) (render.File, error) {
	var first error
	for i := range ds.Runs {
		r := &ds.Runs[i]
		chosen, trials, err := report.Sequence(r, iteration)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		var series []report.Series
		for _, t := range trials {
			rows, err := st.SamplesOfTrial(ctx, r.ID, t.Index)
			if err != nil {
				return render.File{}, err
			}
			series = append(series, asSeries(rows)...)
		}
		svg, err := figure.Sequence(ds, r, chosen, series, leave)
		return render.File{Name: f.File, MediaType: f.MediaType, Write: func(w io.Writer) error {
			_, err := w.Write(svg)
			return err
		}}, err
	}
	if first == nil {
		first = fmt.Errorf("campaign %s has no runs", ds.Campaign)
	}
	return render.File{}, fmt.Errorf("%w: %w", store.ErrNotFound, first)
}

// asSeries is the clients' samples of a trial, which come in the order of
// attempt, flow, side and time.
func asSeries(rows []store.Sample) (out []report.Series) {
	for i := range rows {
		s := &rows[i]
		if s.Side != "client" {
			continue
		}
		last := len(out) - 1
		if last < 0 || out[last].Attempt != int(s.Attempt) || out[last].Flow != int(s.Flow) {
			out = append(out, report.Series{Trial: int(s.Trial), Attempt: int(s.Attempt), Flow: int(s.Flow)})
			last++
		}
		x := &s.Metrics
		p := report.SeriesPoint{Elapsed: time.Duration(x.ElapsedNS), Bytes: x.SentBytes, Sent: x.AckedBytes == nil, Retransmits: x.Retransmits}
		if x.AckedBytes != nil {
			p.Bytes = *x.AckedBytes
		}
		out[last].Points = append(out[last].Points, p)
	}
	return out
}
