package results

import (
	"context"
	"fmt"
	"math"
	"time"

	"linktrial/orchestrator/downsample"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
)

// Of a time–sequence diagram in a report, in points: of all its flows, and of one of them.
const (
	pointsOfDiagram = 2400
	leastOfFlow     = 32
	mostOfFlow      = 400
)

// fillSampled reads the samples of one iteration of each run, until as many runs as a report
// draws have some. Imported runs have none. One trial's samples are in memory at a time; of long
// series fewer points are kept ([downsample.New]), the same whenever the report is made.
func fillSampled(ctx context.Context, st *store.Store, ds *report.Dataset) error {
	drawn := 0
	for _, r := range sampledFirst(ds) {
		if drawn == report.MostSequences {
			return nil
		}
		sampled := report.SequenceIteration(r)
		_, trials, err := report.Sequence(r, sampled.Iteration)
		if err != nil {
			return err
		}
		if sampled.Series, err = sampledSeries(ctx, st, r.ID, trials); err != nil {
			return err
		}
		r.Sampled = sampled
		if len(sampled.Series) > 0 {
			drawn++
		}
	}
	return nil
}

// sampledFirst are the runs with transfers, those first that a report draws if they have samples:
// as they are spread over the plan, whose neighbours differ least.
func sampledFirst(ds *report.Dataset) []*report.Run {
	var all []*report.Run
	for i := range ds.Runs {
		if r := &ds.Runs[i]; r.Imported == nil && report.SequenceIteration(r) != nil {
			all = append(all, r)
		}
	}
	if len(all) <= report.MostSequences {
		return all
	}
	first, rest := make([]*report.Run, 0, len(all)), []*report.Run(nil)
	for i, r := range all {
		// The first of each of so many equal parts.
		if part := i * report.MostSequences / len(all); i == 0 || part > (i-1)*report.MostSequences/len(all) {
			first = append(first, r)
		} else {
			rest = append(rest, r)
		}
	}
	return append(first, rest...)
}

// sampledSeries are the series of the last attempts of trials, each thinned.
func sampledSeries(ctx context.Context, st *store.Store, run string, trials []*report.Trial) (out []report.Series, err error) {
	flows := 0
	for _, t := range trials {
		flows += max(1, len(t.Attempts[len(t.Attempts)-1].Flows))
	}
	most := min(mostOfFlow, max(leastOfFlow, pointsOfDiagram/flows))
	for _, t := range trials {
		rows, err := st.SamplesOfTrial(ctx, run, t.Index)
		if err != nil {
			return nil, fmt.Errorf("samples for the report: %w", err)
		}
		last := t.Attempts[len(t.Attempts)-1].Attempt
		for _, s := range asSeries(rows) {
			if s.Attempt == last {
				s.Points = thinnedSeries(s.Points, most)
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// thinnedSeries are at most so many of the points, with the extremes of those that are left out.
func thinnedSeries(points []report.SeriesPoint, most int) []report.SeriesPoint {
	n := len(points)
	if n <= most {
		return points
	}
	s := downsample.New(points[0].Elapsed.Seconds(), points[n-1].Elapsed.Seconds(), int64(n), most)
	for _, p := range points {
		again, sent := math.NaN(), 0.0
		if p.Retransmits != nil {
			again = float64(*p.Retransmits)
		}
		if p.Sent {
			sent = 1
		}
		s.Add(p.Elapsed.Seconds(), []float64{float64(p.Bytes), again, sent})
	}
	at, columns := s.Columns()
	out := make([]report.SeriesPoint, len(at))
	for i := range at {
		out[i] = report.SeriesPoint{Elapsed: time.Duration(math.Round(at[i] * 1e9)), Bytes: int64(columns[0][i]), Sent: columns[2][i] > 0}
		if again := columns[1][i]; !math.IsNaN(again) {
			whole := int64(again)
			out[i].Retransmits = &whole
		}
	}
	return out
}
