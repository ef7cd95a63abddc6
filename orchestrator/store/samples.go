package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/store/storedb"
	"linktrial/protocols/contract"
)

// Sample is a row of the table of samples, which has a column for each of
// [contract.Metrics], of the same name.
type Sample struct {
	At                   time.Time
	RunID                string
	Trial, Attempt, Flow int32
	Side                 string
	Metrics              contract.Sample // but More
	More                 json.RawMessage // Metrics.More as stored; nil: none
}

// sampleKey are the columns of samples that tell whose it is.
var sampleKey = []string{"at", "run_id", "trial", "attempt", "flow", "side"}

// metricColumns are the columns of samples with metrics.
func metricColumns() []string {
	var out []string
	for i := range contract.Metrics {
		out = append(out, contract.Metrics[i].Name)
	}
	return append(out, "more")
}

// metricFields are what a row of [metricColumns] is scanned into.
func (s *Sample) metricFields() []any {
	var out []any
	for i := range contract.Metrics {
		out = append(out, contract.Metrics[i].Field(&s.Metrics))
	}
	return append(out, &s.More)
}

// InsertSamples stores samples of any runs. sqlc generates nothing for them, because
// their columns follow [contract.Metrics].
func (c Conn) InsertSamples(ctx context.Context, samples []Sample) error {
	columns := append(sampleKey[:len(sampleKey):len(sampleKey)], metricColumns()...)
	row := make([]any, len(columns)) // pgx encodes a row before it asks for the next
	_, err := c.CopyFrom(ctx, pgx.Identifier{"samples"}, columns, pgx.CopyFromSlice(len(samples), func(i int) ([]any, error) {
		s := &samples[i]
		row = append(row[:0], s.At, s.RunID, s.Trial, s.Attempt, s.Flow, s.Side)
		for k := range contract.Metrics {
			if f := &contract.Metrics[k]; f.Real {
				row = append(row, f.Float(&s.Metrics))
			} else {
				row = append(row, f.Whole(&s.Metrics))
			}
		}
		row = append(row, s.More)
		return row, nil
	}))
	return err
}

// samplesOfTrials leaves out the days without samples of the run, which it would
// not where an index gives the order: hence the sum.
func samplesOfTrials() string {
	return "SELECT " + strings.Join(sampleKey, ", ") + ", " + strings.Join(metricColumns(), ", ") + ` FROM samples WHERE run_id = $1 AND trial BETWEEN $2 AND $3
		AND at >= (SELECT first_at FROM sample_spans WHERE run_id = $1) AND at <= (SELECT last_at FROM sample_spans WHERE run_id = $1)
	ORDER BY trial + 0, attempt, flow, side, elapsed_ns`
}

// EachSampleOfTrials calls f with the samples of the trials from first to last, in the
// order of trial, attempt, flow, side and time. Only one is in memory, and f must not
// keep it. It ends with f's first error, or after the last sample.
func (s *Store) EachSampleOfTrials(ctx context.Context, run string, first, last int32, f func(*Sample) error) error {
	var x Sample
	fields := append([]any{&x.At, &x.RunID, &x.Trial, &x.Attempt, &x.Flow, &x.Side}, x.metricFields()...)
	err := s.eachSample(ctx, &x, fields, f, samplesOfTrials(), run, first, last)
	if err != nil {
		return fmt.Errorf("run %s, trials %d to %d: %w", run, first, last, err)
	}
	return nil
}

// SamplesOfTrial returns the samples of a trial's attempts, in the order of
// attempt, flow, side and time.
func (s *Store) SamplesOfTrial(ctx context.Context, run string, trial int) (out []Sample, err error) {
	err = s.EachSampleOfTrials(ctx, run, int32(trial), int32(trial), func(x *Sample) error {
		out = append(out, *x)
		return nil
	})
	return out, err
}

// samplesOfSeries orders as [samplesOfTrials] does, for the same reason.
func samplesOfSeries() string {
	return "SELECT " + strings.Join(metricColumns(), ", ") + ` FROM samples
		WHERE run_id = $1 AND trial = $2 AND attempt = $3 AND flow = $4 AND side = $5 AND elapsed_ns BETWEEN $6 AND $7
			AND at >= (SELECT first_at FROM sample_spans WHERE run_id = $1) AND at <= (SELECT last_at FROM sample_spans WHERE run_id = $1)
		ORDER BY elapsed_ns + 0`
}

// EachSample calls f with the samples of one series, in order of time. Only one
// is in memory, its metrics alone are set, and f must not keep it. It ends with
// f's first error, or after the window's last sample.
func (s *Store) EachSample(ctx context.Context, of storedb.SeriesWindowParams, window storedb.SeriesWindowRow, f func(*Sample) error) error {
	var x Sample
	return s.eachSample(ctx, &x, x.metricFields(), f, samplesOfSeries(), of.RunID, of.Trial, of.Attempt, of.Flow, of.Side, window.FirstNs, window.LastNs)
}

// eachSample calls f with x for each row of a query, once fields, which are of x, have it.
func (s *Store) eachSample(ctx context.Context, x *Sample, fields []any, f func(*Sample) error, query string, args ...any) error {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return fmt.Errorf("samples: %w", err)
		}
		if err := f(x); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}
