package store

import (
	"context"
	"time"

	"linktrial/orchestrator/store/dbsqlc"
)

// Batch is what most deliveries are while a trial runs: records that follow on
// what is committed of a node's journal, all of them with samples.
type Batch struct {
	Run, Node, Role string
	First           int64 // number of the first record
	Journal         []dbsqlc.InsertJournalParams
	Samples         []dbsqlc.InsertSamplesParams
}

// The statement is not sqlc's: arrays of it cannot hold NULL. Columns of which
// no sample has a value are passed as NULL, which unnest fills up.
const appendSamples = `
WITH part AS (
    UPDATE run_nodes n SET committed_seq = $4::bigint + cardinality($7::bigint[]) - 1, delivered_at = now()
    FROM runs r
    WHERE n.run_id = $1 AND n.node = $2 AND n.role = $3 AND n.committed_seq = $4::bigint - 1 AND r.id = n.run_id AND r.trials > $5::integer
    RETURNING n.run_id, n.node
), records AS (
    INSERT INTO journal (run_id, node, seq, type, at, body, digest)
    SELECT part.run_id, part.node, x.seq, x.type, x.at, x.body::jsonb, x.digest
    FROM part, unnest($7::bigint[], $6::text[], $8::timestamptz[], $9::text[], $10::bytea[]) AS x (seq, type, at, body, digest)
), taken AS (
    INSERT INTO samples (at, run_id, trial, attempt, flow, side, elapsed_ns, sent_bytes, acked_bytes, cwnd_bytes, ssthresh_bytes,
        flight_bytes, srtt_us, rttvar_us, rto_us, retransmits, timeouts, loss_events, pacing_bps, bandwidth_bps, more)
    SELECT x.at, part.run_id, x.trial, x.attempt, x.flow, x.side, x.elapsed_ns, x.sent_bytes, x.acked_bytes, x.cwnd_bytes, x.ssthresh_bytes,
        x.flight_bytes, x.srtt_us, x.rttvar_us, x.rto_us, x.retransmits, x.timeouts, x.loss_events, x.pacing_bps, x.bandwidth_bps, x.more::jsonb
    FROM part, unnest($11::timestamptz[], $12::integer[], $13::integer[], $14::integer[], $15::text[], $16::bigint[], $17::bigint[], $18::bigint[],
        $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[], $27::bigint[],
        $28::double precision[], $29::double precision[], $30::text[])
        AS x (at, trial, attempt, flow, side, elapsed_ns, sent_bytes, acked_bytes, cwnd_bytes, ssthresh_bytes,
            flight_bytes, srtt_us, rttvar_us, rto_us, retransmits, timeouts, loss_events, pacing_bps, bandwidth_bps, more)
)
SELECT count(*) FROM part`

// AppendSamples stores a batch in one statement, which is a transaction of its
// own. False: nothing was stored, because the batch does not follow on what is
// committed, or the run does not have such a node or trial.
func (s *Store) AppendSamples(ctx context.Context, b *Batch) (bool, error) {
	last := int32(-1)
	seqs, types, ats := make([]int64, len(b.Journal)), make([]string, len(b.Journal)), make([]time.Time, len(b.Journal))
	bodies, digests := make([]string, len(b.Journal)), make([][]byte, len(b.Journal))
	for i := range b.Journal {
		j := &b.Journal[i]
		seqs[i], types[i], ats[i], bodies[i], digests[i] = j.Seq, j.Type, j.At, string(j.Body), j.Digest
	}
	n := len(b.Samples)
	at, trial, attempt, flow, side := make([]time.Time, n), make([]int32, n), make([]int32, n), make([]int32, n), make([]string, n)
	elapsed, sent := make([]int64, n), make([]int64, n)
	var more []*string
	for i := range b.Samples {
		x := &b.Samples[i]
		last = max(last, x.Trial)
		at[i], trial[i], attempt[i], flow[i], side[i], elapsed[i], sent[i] = x.At, x.Trial, x.Attempt, x.Flow, x.Side, x.ElapsedNs, x.SentBytes
		if x.More != nil {
			if more == nil {
				more = make([]*string, n)
			}
			text := string(x.More)
			more[i] = &text
		}
	}
	type sample = dbsqlc.InsertSamplesParams
	ints := func(f func(*sample) *int64) []*int64 { return column(b.Samples, f) }
	floats := func(f func(*sample) *float64) []*float64 { return column(b.Samples, f) }
	var stored int64
	err := s.pool.QueryRow(ctx, appendSamples, b.Run, b.Node, b.Role, b.First, last, types, seqs, ats, bodies, digests,
		at, trial, attempt, flow, side, elapsed, sent,
		ints(func(x *sample) *int64 { return x.AckedBytes }), ints(func(x *sample) *int64 { return x.CwndBytes }),
		ints(func(x *sample) *int64 { return x.SsthreshBytes }), ints(func(x *sample) *int64 { return x.FlightBytes }),
		ints(func(x *sample) *int64 { return x.SrttUs }), ints(func(x *sample) *int64 { return x.RttvarUs }),
		ints(func(x *sample) *int64 { return x.RtoUs }), ints(func(x *sample) *int64 { return x.Retransmits }),
		ints(func(x *sample) *int64 { return x.Timeouts }), ints(func(x *sample) *int64 { return x.LossEvents }),
		floats(func(x *sample) *float64 { return x.PacingBps }), floats(func(x *sample) *float64 { return x.BandwidthBps }), more).Scan(&stored)
	return stored == 1, err
}

// column is one figure of each sample, nil where none has it.
func column[T any](samples []dbsqlc.InsertSamplesParams, of func(*dbsqlc.InsertSamplesParams) *T) []*T {
	var out []*T
	for i := range samples {
		if v := of(&samples[i]); v != nil {
			if out == nil {
				out = make([]*T, len(samples))
			}
			out[i] = v
		}
	}
	return out
}
