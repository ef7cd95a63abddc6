package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"linktrial/orchestrator/store/storedb"
	"linktrial/protocols/contract"
)

// Batch is what most deliveries are while a trial runs: records that follow on
// what is committed of a node's journal, all of them with samples.
type Batch struct {
	Run, Node, Role string
	First           int64 // number of the first record
	Bytes           int64 // of the records, as delivered
	Limit           int64 // of the node's journal of the run, in bytes
	Journal         []storedb.InsertJournalParams
	Samples         []Sample
	Page            []byte // [Page.Content] of all of the records
}

// appendSQL is not sqlc's, whose arrays cannot hold NULL. A column of which no
// sample has a value is passed as NULL, which unnest fills up.
func appendSQL() string {
	const first = 14 // parameters before it are those of the journal
	columns := append([]string{"at", "trial", "attempt", "flow", "side"}, metricColumns()...)
	types := []string{"timestamptz", "integer", "integer", "integer", "text"}
	for i := range contract.Metrics {
		if contract.Metrics[i].Real {
			types = append(types, "double precision")
		} else {
			types = append(types, "bigint")
		}
	}
	types = append(types, "text") // more
	arrays, values := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		arrays[i], values[i] = fmt.Sprintf("$%d::%s[]", first+i, types[i]), "x."+c
	}
	values[len(values)-1] += "::jsonb"
	list := func(s []string) string { return strings.Join(s, ", ") }
	return `
WITH part AS (
    UPDATE run_nodes n SET committed_seq = $4::bigint + cardinality($7::bigint[]) - 1, delivered_at = now(), journal_bytes = n.journal_bytes + $11::bigint
    FROM runs r
    WHERE n.run_id = $1 AND n.node = $2 AND n.role = $3 AND n.committed_seq = $4::bigint - 1 AND n.ended IS NULL AND n.journal_bytes + $11::bigint <= $12::bigint
      AND r.id = n.run_id AND r.trials > $5::integer
    RETURNING n.run_id, n.node
), records AS (
    INSERT INTO journal (run_id, node, seq, type, at, body, digest)
    SELECT part.run_id, part.node, x.seq, x.type, x.at, x.body::jsonb, x.digest
    FROM part, unnest($7::bigint[], $6::text[], $8::timestamptz[], $9::text[], $10::bytea[]) AS x (seq, type, at, body, digest)
), kept AS (
    INSERT INTO journal_pages (run_id, node, first_seq, last_seq, samples, content)
    SELECT part.run_id, part.node, $4::bigint, $4::bigint + cardinality($7::bigint[]) - 1, true, $13::bytea FROM part
), taken AS (
    INSERT INTO samples (run_id, ` + list(columns) + `)
    SELECT part.run_id, ` + list(values) + `
    FROM part, unnest(` + list(arrays) + `) AS x (` + list(columns) + `)
)
SELECT count(*) FROM part`
}

// AppendSamples stores a batch in one statement, which is a transaction of its
// own. False: nothing was stored, because the batch does not follow on what is
// committed, the journal has ended or would be too large, or the run does not have
// such a node or trial.
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
	for i := range b.Samples {
		x := &b.Samples[i]
		last = max(last, x.Trial)
		at[i], trial[i], attempt[i], flow[i], side[i] = x.At, x.Trial, x.Attempt, x.Flow, x.Side
	}
	args := []any{b.Run, b.Node, b.Role, b.First, last, types, seqs, ats, bodies, digests, b.Bytes, b.Limit, b.Page, at, trial, attempt, flow, side}
	for i := range contract.Metrics {
		if f := &contract.Metrics[i]; f.Real {
			args = append(args, column(b.Samples, func(x *Sample) *float64 { return f.Float(&x.Metrics) }))
		} else {
			args = append(args, column(b.Samples, func(x *Sample) *int64 { return f.Whole(&x.Metrics) }))
		}
	}
	args = append(args, column(b.Samples, func(x *Sample) *string {
		if x.More == nil {
			return nil
		}
		return new(string(x.More))
	}))
	var stored int64
	err := s.pool.QueryRow(ctx, s.appendSamples, args...).Scan(&stored)
	return stored == 1, err
}

// column is one metric of each sample, nil where none has it.
func column[T any](samples []Sample, of func(*Sample) *T) []*T {
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
