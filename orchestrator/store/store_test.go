package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// Two orchestrators that start at once on an empty database migrate it once.
func TestMigrateConcurrently(t *testing.T) {
	url := storetest.EmptyURL(t)
	var g errgroup.Group
	for range 2 {
		g.Go(func() error {
			s, err := store.Open(context.Background(), url, nil)
			if err != nil {
				return err
			}
			defer s.Close()
			_, err = s.Nodes(context.Background())
			return err
		})
	}
	require.NoError(t, g.Wait())
}

func TestNewerSchemaIsRefused(t *testing.T) {
	url := storetest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)")
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	_, err = store.Open(t.Context(), url, nil)
	require.ErrorContains(t, err, "newer Linktrial")
}

// A database of one's own is enough: no right beyond it is needed.
func TestMigrateAsPlainUser(t *testing.T) {
	url := storetest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	for _, sql := range []string{"CREATE ROLE plain LOGIN", "GRANT ALL ON DATABASE " + conn.Config().Database + " TO plain", "GRANT ALL ON SCHEMA public TO plain"} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, sql := range []string{"DROP OWNED BY plain", "DROP ROLE plain"} {
			_, err := conn.Exec(context.Background(), sql)
			require.NoError(t, err)
		}
	})
	s, err := store.Open(t.Context(), strings.Replace(url, "user=linktrial", "user=plain", 1), nil)
	require.NoError(t, err)
	defer s.Close()
	var who string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT tableowner FROM pg_tables WHERE tablename = 'samples'").Scan(&who))
	require.Equal(t, "plain", who)
}

func TestOpenRefusals(t *testing.T) {
	_, err := store.Open(t.Context(), "postgres://%", nil)
	require.ErrorContains(t, err, "database URL")
	_, err = store.Open(t.Context(), "postgres:///x?host=/nonexistent&user=x", nil)
	require.ErrorContains(t, err, "the database does not answer")
}

// The schema itself refuses what must not be stored, whoever writes it.
func TestConstraints(t *testing.T) {
	s := storetest.Open(t)
	conn, err := pgx.Connect(t.Context(), storetest.URL(t))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	exec := func(sql string) error {
		_, err := conn.Exec(t.Context(), sql)
		return err
	}
	const hash = "'0000000000000000000000000000000000000000000000000000000000000000'"
	for _, sql := range []string{
		"INSERT INTO campaigns (id, name, plan, plan_file, plan_text, plan_hash) VALUES ('camp', 'c', 'p', 'f', 'x', " + hash + ")",
		"INSERT INTO runs (id, campaign_id, cell, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds, treatment_labels, swept) VALUES ('camp-1', 'camp', 0, 'x', encode(sha256('x'), 'hex'), 'r', 't', 1, 1, '{1}', '{}', false)",
		"INSERT INTO nodes VALUES ('client', 'client', '', '', '', '', true, '', 0, '[]', 'i', now(), now())",
		"INSERT INTO run_nodes (run_id, role, node) VALUES ('camp-1', 'client', 'client')",
		"INSERT INTO trials VALUES ('camp-1', 0, 1, 'tcp')",
		"INSERT INTO attempts (run_id, trial, attempt, started_seq, started_at) VALUES ('camp-1', 0, 1, 1, now())",
		"INSERT INTO flows (run_id, trial, attempt, flow, transfer) VALUES ('camp-1', 0, 1, 0, '0123456789abcdef0123456789abcdef')",
	} {
		require.NoError(t, exec(sql), sql)
	}
	for name, sql := range map[string]string{
		"sheet that is not the hash's":    "UPDATE runs SET sheet = 'y'",
		"state out of the list":           "UPDATE runs SET state = 'done'",
		"ended without a time":            "UPDATE runs SET state = 'completed'",
		"running without a start":         "UPDATE runs SET state = 'running'",
		"estimate of another length":      "UPDATE runs SET estimated_seconds = '{1, 2}'",
		"second run of a cell":            "INSERT INTO runs (id, campaign_id, cell, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds, treatment_labels, swept) SELECT 'camp-2', campaign_id, cell, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds, treatment_labels, swept FROM runs",
		"node of an unknown role":         "UPDATE nodes SET role = 'drone'",
		"second client of a run":          "INSERT INTO run_nodes (run_id, role, node) VALUES ('camp-1', 'client', 'client')",
		"journal of a stranger":           "INSERT INTO journal VALUES ('camp-1', 'other', 1, 't', now(), '{}', sha256('x'))",
		"journal from zero":               "INSERT INTO journal VALUES ('camp-1', 'client', 0, 't', now(), '{}', sha256('x'))",
		"attempt of an unknown trial":     "INSERT INTO attempts (run_id, trial, attempt, started_seq, started_at) VALUES ('camp-1', 1, 1, 1, now())",
		"attempt twice":                   "INSERT INTO attempts (run_id, trial, attempt, started_seq, started_at) VALUES ('camp-1', 0, 1, 2, now())",
		"verdict out of the list":         "UPDATE attempts SET verdict = 'good', ended_seq = 2, ended_at = now()",
		"verdict without an end":          "UPDATE attempts SET verdict = 'failed'",
		"success without a figure":        "UPDATE flows SET verdict = 'succeeded'",
		"digest that is none":             "UPDATE flows SET digest = 'abc'",
		"negative time":                   "UPDATE flows SET elapsed_ns = -1",
		"sample of an unknown trial":      "INSERT INTO samples (at, run_id, trial, attempt, flow, side, elapsed_ns, sent_bytes) VALUES (now(), 'camp-1', 7, 1, 0, 'client', 1, 1)",
		"sample of a third side":          "INSERT INTO samples (at, run_id, trial, attempt, flow, side, elapsed_ns, sent_bytes) VALUES (now(), 'camp-1', 0, 1, 0, 'relay', 1, 1)",
		"reception without its record":    "INSERT INTO receptions (run_id, node, seq, treatment, at, code) VALUES ('camp-1', 'client', 1, 'tcp', now(), 'reset')",
		"abort without a moment":          "UPDATE runs SET abort_reason = 'x'",
		"drivers that are not an array":   "UPDATE nodes SET drivers = '{}'",
		"campaign without a name":         "UPDATE campaigns SET name = ''",
		"run whose name is not a run's":   "UPDATE runs SET id = '../x'",
		"listener on a port out of range": "INSERT INTO listeners (run_id, node, treatment, ready, port, at) VALUES ('camp-1', 'client', 'tcp', true, 70000, now())",
	} {
		t.Run(name, func(t *testing.T) {
			var pg *pgconn.PgError
			require.ErrorAs(t, exec(sql), &pg)
			require.Equal(t, "23", pg.Code[:2], pg.Message)
		})
	}
	require.NoError(t, s.Ping(t.Context()))
}

func TestTransactionRollsBack(t *testing.T) {
	s := storetest.Open(t)
	boom := errors.New("boom")
	err := s.InTx(t.Context(), func(q *dbsqlc.Queries) error {
		require.NoError(t, insertCampaign(t, q, "abcd"))
		return boom
	})
	require.ErrorIs(t, err, boom)
	_, err = s.Campaign(t.Context(), "abcd")
	require.ErrorIs(t, err, pgx.ErrNoRows)
}

func insertCampaign(t *testing.T, q *dbsqlc.Queries, id string) error {
	return q.InsertCampaign(t.Context(), dbsqlc.InsertCampaignParams{ID: id, Name: id, Plan: "p", PlanFile: "p.yaml", PlanText: []byte("x"),
		PlanHash: "0000000000000000000000000000000000000000000000000000000000000000"})
}

func TestFind(t *testing.T) {
	s := storetest.Open(t)
	_, err := s.FindScope(t.Context(), "")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, _, err = s.FindRun(t.Context(), "")
	require.ErrorIs(t, err, store.ErrNotFound)
	for _, c := range []string{"abcd", "abcdef", "xyz1"} {
		require.NoError(t, insertCampaign(t, s.Queries, c))
		for i, run := range []string{c + "-1", c + "-2", c + "-10"} {
			require.NoError(t, s.InsertRun(t.Context(), dbsqlc.InsertRunParams{ID: run, CampaignID: c, Cell: int32(i), Sheet: []byte("x"),
				SheetHash: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", Radio: "r", Topology: "t", EstimatedSeconds: []float64{}, TreatmentLabels: []string{}}))
		}
	}
	for name, want := range map[string]store.Scope{
		"":          {Campaign: "xyz1"},
		"xyz1":      {Campaign: "xyz1"},
		"x":         {Campaign: "xyz1"},
		"abcd":      {Campaign: "abcd"},
		"abcde":     {Campaign: "abcdef"},
		"xyz1-1":    {Campaign: "xyz1", Run: "xyz1-1"},
		"xyz1-10":   {Campaign: "xyz1", Run: "xyz1-10"},
		"abcdef-2":  {Campaign: "abcdef", Run: "abcdef-2"},
		"abcdef-10": {Campaign: "abcdef", Run: "abcdef-10"},
	} {
		got, err := s.FindScope(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	for name, want := range map[string]error{"a": store.ErrAmbiguous, "nope": store.ErrNotFound, "abcd-": store.ErrAmbiguous, "abcd-3": store.ErrNotFound} {
		_, err := s.FindScope(t.Context(), name)
		require.ErrorIs(t, err, want, name)
	}
	run, campaign, err := s.FindRun(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "xyz1-10", run)
	require.Equal(t, "xyz1", campaign)
}
