package store

import "context"

// ForgetSheets empties the cache of decoded sheets.
func (s *Store) ForgetSheets() { s.decoded = newSheetCache() }

// ForgetRuns empties the cache of runs that have ended.
func (s *Store) ForgetRuns() { s.ended = newRunCache() }

// SamplesOfTrialsSQL and SamplesOfSeriesSQL are the statements that samples are read with.
func SamplesOfTrialsSQL() string { return samplesOfTrials() }
func SamplesOfSeriesSQL() string { return samplesOfSeries() }

// ExecForTest runs a statement.
func (s *Store) ExecForTest(ctx context.Context, sql string, args ...any) error {
	_, err := s.pool.Exec(ctx, sql, args...)
	return err
}
