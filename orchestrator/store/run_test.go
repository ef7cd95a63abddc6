package store_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/migrations"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
	"linktrial/orchestrator/store/storetest"
)

// sweptSheet has a mix, and parameters set by a sweep.
func sweptSheet() *runsheet.Sheet {
	s := storetest.Sheet(2)
	s.Mixes = []runsheet.Mix{{Name: "both", Label: "Both, together"}}
	s.Cell.Settings = []runsheet.Setting{{Axis: "loss", Parameter: "channel.loss", Value: "0.1", Label: "0.1"}}
	return s
}

func runHeads(t *testing.T, s *store.Store, campaigns ...string) []dbsqlc.RunHeadsRow {
	t.Helper()
	rows, err := s.RunHeads(t.Context(), dbsqlc.RunHeadsParams{Campaigns: campaigns})
	require.NoError(t, err)
	return rows
}

func TestRunKeepsLabelsAndSweep(t *testing.T) {
	s := storetest.Open(t)
	storetest.AddRun(t, s, "aaaa", storetest.Sheet(2))
	storetest.AddRun(t, s, "bbbb", sweptSheet())
	rows := runHeads(t, s, "aaaa", "bbbb")
	require.Len(t, rows, 2)
	require.Equal(t, []string{"One", "Two"}, rows[0].TreatmentLabels)
	require.False(t, rows[0].Swept)
	require.Equal(t, []string{"One", "Two", "Both, together"}, rows[1].TreatmentLabels)
	require.True(t, rows[1].Swept)
}

// Runs that were stored before the columns existed have them filled from their
// sheets. A sheet that cannot be read does not stop the migration.
func TestMigrateFillsLabelsOfOldRuns(t *testing.T) {
	url := storetest.EmptyURL(t)
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	db := stdlib.OpenDB(*config)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = p.UpTo(t.Context(), 15)
	require.NoError(t, err)

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	plain, err := storetest.Sheet(2).Encode()
	require.NoError(t, err)
	swept, err := sweptSheet().Encode()
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO campaigns (id, name, plan, plan_file, plan_text, plan_hash) VALUES ('aaaa', 'a', 'a', 'a.yaml', 'x', $1)", runsheet.Hash([]byte("x")))
	require.NoError(t, err)
	sheets := []struct {
		name   string
		sheet  []byte
		labels []string
		swept  bool
	}{
		{"two treatments", plain, []string{"One", "Two"}, false},
		{"a mix and a sweep", swept, []string{"One", "Two", "Both, together"}, true},
		{"not JSON", []byte("x"), []string{}, false},
		{"not text", []byte{0xff, 0xfe}, []string{}, false},
		{"empty", []byte{}, []string{}, false},
		{"no object", []byte(`[1]`), []string{}, false},
		{"without treatments", []byte(`{"cell":{},"treatments":null}`), []string{}, false},
		{"without labels", []byte(`{"cell":null,"treatments":[{"name":"x"},1]}`), []string{}, false},
	}
	for i, c := range sheets {
		_, err := conn.Exec(t.Context(), `INSERT INTO runs (id, campaign_id, cell, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds)
			VALUES ('aaaa-' || $1::int, 'aaaa', $1, $2, $3, 'r', 't', 1, 0, '{}')`, i, c.sheet, runsheet.Hash(c.sheet))
		require.NoError(t, err, c.name)
	}

	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer s.Close()
	rows := runHeads(t, s, "aaaa")
	require.Len(t, rows, len(sheets))
	for i, c := range sheets {
		require.Equal(t, c.labels, rows[i].TreatmentLabels, c.name)
		require.Equal(t, c.swept, rows[i].Swept, c.name)
	}
}
