package store

import (
	"context"
	"fmt"

	"linktrial/orchestrator/store/dbsqlc"
)

// EachSample hands the samples of one series to f, in order of time, one after
// the other: none but the one in hand is in memory, and f may not keep it. It
// ends with f's first error, or with the window's last sample.
func (s *Store) EachSample(ctx context.Context, of dbsqlc.SeriesWindowParams, window dbsqlc.SeriesWindowRow, f func(*dbsqlc.Sample) error) error {
	// Days without samples of the run are passed over, which they are not where an
	// index gives the order: hence the sum.
	rows, err := s.pool.Query(ctx, `SELECT elapsed_ns, sent_bytes, acked_bytes, cwnd_bytes, ssthresh_bytes, flight_bytes, srtt_us, rttvar_us, rto_us,
			retransmits, timeouts, loss_events, pacing_bps, bandwidth_bps, more
		FROM samples WHERE run_id = $1 AND trial = $2 AND attempt = $3 AND flow = $4 AND side = $5 AND elapsed_ns BETWEEN $6 AND $7
			AND at >= (SELECT first_at FROM sample_spans WHERE run_id = $1) AND at <= (SELECT last_at FROM sample_spans WHERE run_id = $1)
		ORDER BY elapsed_ns + 0`,
		of.RunID, of.Trial, of.Attempt, of.Flow, of.Side, window.FirstNs, window.LastNs)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	defer rows.Close()
	var x dbsqlc.Sample
	for rows.Next() {
		if err := rows.Scan(&x.ElapsedNs, &x.SentBytes, &x.AckedBytes, &x.CwndBytes, &x.SsthreshBytes, &x.FlightBytes, &x.SrttUs, &x.RttvarUs, &x.RtoUs,
			&x.Retransmits, &x.Timeouts, &x.LossEvents, &x.PacingBps, &x.BandwidthBps, &x.More); err != nil {
			return fmt.Errorf("samples: %w", err)
		}
		if err := f(&x); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}
