package backup

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/internal/timescaletest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// A store in TimescaleDB, whose samples lie in chunks of a day, is backed up like any other
// one, and restored into TimescaleDB or into plain PostgreSQL.
func TestTimescaleStore(t *testing.T) {
	ctx := t.Context()
	url := timescaletest.Start(t)
	elsewhere := regexp.MustCompile(`/linktrial\?`).ReplaceAllString(url, "/elsewhere?")
	admin, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	_, err = admin.Exec(ctx, "CREATE DATABASE elsewhere")
	require.NoError(t, err)

	st, err := store.Open(ctx, url, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	run := storetest.AddRun(t, st, "backup", storetest.Sheet(2))
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.NoError(t, st.InTx(ctx, func(tx store.Conn) error {
		var samples []store.Sample
		for day := range 3 {
			samples = append(samples, store.Sample{At: noon.AddDate(0, 0, day), RunID: run, Attempt: 1, Side: "client", Metrics: contract.Sample{SentBytes: int64(day)}})
		}
		return tx.InsertSamples(ctx, samples)
	}))
	st.Close()
	chunks := func(conn *pgx.Conn) (n int) {
		require.NoError(t, conn.QueryRow(ctx, "SELECT count(*) FROM timescaledb_information.chunks WHERE hypertable_name = 'samples'").Scan(&n))
		return n
	}
	require.Equal(t, 3, chunks(admin))
	want := content(t, url)
	require.Regexp(t, "^3 ", want["samples"])
	require.Regexp(t, "^1 ", want["sample_spans"])

	dir := dataDir(t)
	out := filepath.Join(dir, "b.tar.gz")
	_, err = Create(ctx, Source{DataDir: dir, DatabaseURL: url}, out, "v1", noon, other(t))
	require.NoError(t, err)

	_, err = Restore(ctx, out, Source{DataDir: filepath.Join(dir, "keys"), DatabaseURL: elsewhere}, anybody)
	require.NoError(t, err)
	require.Equal(t, want, content(t, elsewhere))
	conn, err := pgx.Connect(ctx, elsewhere)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	require.Equal(t, 3, chunks(conn))

	to := filepath.Join(dir, "plain")
	_, err = Restore(ctx, out, Source{DataDir: to}, anybody)
	require.NoError(t, err)
	srv := start(t, to)
	defer srv.Stop(context.Background())
	plain := content(t, srv.URL())
	for _, of := range []map[string]string{plain, want} { // TimescaleDB has an index of its own
		maps.DeleteFunc(of, func(what, _ string) bool { return what == "indexes" || what == "constraints" })
	}
	require.Equal(t, want, plain)
}
