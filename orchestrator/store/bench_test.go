package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// BenchmarkDataset reads a campaign of 500 runs of 20 trials, each with its
// attempts, flows, receptions and nodes.
func BenchmarkDataset(b *testing.B) {
	url := storetest.URL(b)
	s, err := store.Open(b.Context(), url, nil)
	require.NoError(b, err)
	defer s.Close()
	sheet := storetest.Sheet(20)
	run := storetest.AddRun(b, s, "data", sheet)
	deliver(b, s, storetest.Lead(run, sheet, 19))
	deliver(b, s, storetest.Serve(run, sheet))
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	defer func() { _ = conn.Close(b.Context()) }()
	for _, q := range []string{
		`CREATE TEMP TABLE n AS SELECT 'data-' || i AS id, i - 1 AS cell FROM generate_series(2, 500) i`,
		`INSERT INTO runs (id, campaign_id, cell, state, message, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds, abort_fault)
		 SELECT n.id, campaign_id, n.cell, state, message, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds, abort_fault FROM runs, n WHERE runs.id = 'data-1'`,
		`INSERT INTO run_nodes SELECT n.id, role, node, committed_seq, delivered_at, ended, end_reason, provenance FROM run_nodes, n WHERE run_id = 'data-1'`,
		`INSERT INTO journal SELECT n.id, node, seq, type, at, body, digest FROM journal, n WHERE run_id = 'data-1'`,
		`INSERT INTO trials SELECT n.id, trial, iteration, treatment, verdict FROM trials, n WHERE run_id = 'data-1'`,
		`INSERT INTO attempts SELECT n.id, trial, attempt, started_seq, started_at, ended_seq, ended_at, verdict, reason, message, duration_ns, dead_ns, radio, log FROM attempts, n WHERE run_id = 'data-1'`,
		`INSERT INTO flows SELECT n.id, trial, attempt, flow, transfer, verdict, reason, message, connect_ns, size_bytes, elapsed_ns, digest, last_sample, info FROM flows, n WHERE run_id = 'data-1'`,
		`INSERT INTO receptions SELECT n.id, node, seq, treatment, transfer, at, size_bytes, elapsed_ns, digest, code, message FROM receptions, n WHERE run_id = 'data-1'`,
		`INSERT INTO clock_offsets SELECT n.id, node, seq, at, moment, offset_ns, error_ns, unknown FROM clock_offsets, n WHERE run_id = 'data-1'`,
		`ANALYZE`,
	} {
		_, err := conn.Exec(b.Context(), q)
		require.NoError(b, err, q)
	}
	for b.Loop() {
		ds, err := s.Dataset(b.Context(), store.Scope{Campaign: "data"})
		require.NoError(b, err)
		require.Len(b, ds.Runs, 500)
	}
}
