package backup

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/store"
)

// A database that somebody has prepared, with a materialised view whose refreshing runs
// a program as the database's user, is backed up and restored: of what is not the
// store's, nothing is in the backup, and nothing of it is executed. pg_restore, which
// filled the database before, refreshes the view and runs the program.
func TestRestoreRunsNothingOfABackup(t *testing.T) {
	ctx, dir := t.Context(), dataDir(t)
	srv := start(t, dir)
	st, err := store.Open(ctx, srv.URL(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	st.Close()
	marker := filepath.Join(dataDir(t), "ran")
	require.NoError(t, os.Chmod(filepath.Dir(marker), 0o777))
	conn, err := pgx.Connect(ctx, srv.URL())
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `CREATE FUNCTION run_it() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
			EXECUTE $c$ COPY (SELECT 1) TO PROGRAM 'cat > `+marker+`' $c$; RETURN 1; END $$;
		CREATE MATERIALIZED VIEW trap AS SELECT run_it() AS x;
		CREATE FUNCTION on_campaign() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM run_it(); RETURN NEW; END $$;
		CREATE TRIGGER trap BEFORE INSERT ON campaigns FOR EACH ROW EXECUTE FUNCTION on_campaign()`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	require.FileExists(t, marker, "the trap works where it is executed")
	require.NoError(t, os.Remove(marker))

	out := filepath.Join(dataDir(t), "b.tar.gz")
	_, err = Create(ctx, Source{DataDir: dir}, out, "v1", time.Now(), other(t))
	require.NoError(t, err)
	require.NoError(t, srv.Stop(ctx))
	to := filepath.Join(dataDir(t), "new")
	_, err = Restore(ctx, out, Source{DataDir: to}, anybody)
	require.NoError(t, err)
	require.NoFileExists(t, marker)

	again := start(t, to)
	defer again.Stop(context.Background())
	conn, err = pgx.Connect(ctx, again.URL())
	require.NoError(t, err)
	defer conn.Close(ctx)
	var n int
	require.NoError(t, conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_matviews) + (SELECT count(*) FROM pg_proc WHERE proname IN ('run_it', 'on_campaign'))
		+ (SELECT count(*) FROM pg_trigger WHERE tgname = 'trap')`).Scan(&n))
	require.Zero(t, n)
}

// Numbers go on after the largest that was given, and what triggers would write is
// written once.
func TestRestoredNumbersGoOn(t *testing.T) {
	ctx, dir := t.Context(), dataDir(t)
	srv := start(t, dir)
	st, err := store.Open(ctx, srv.URL(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	st.Close()
	conn, err := pgx.Connect(ctx, srv.URL())
	require.NoError(t, err)
	const insert = `INSERT INTO campaigns (id, name, plan, plan_file, plan_text, plan_hash) VALUES ($1, 'x', 'x', 'x', 'x', repeat('0', 64)) RETURNING ordinal`
	var before, after int64
	for _, id := range []string{"aaaa", "bbbb", "cccc"} {
		require.NoError(t, conn.QueryRow(ctx, insert, id).Scan(&before))
	}
	require.NoError(t, conn.Close(ctx))
	out := filepath.Join(dataDir(t), "b.tar.gz")
	_, err = Create(ctx, Source{DataDir: dir}, out, "v1", time.Now(), other(t))
	require.NoError(t, err)
	require.NoError(t, srv.Stop(ctx))
	to := filepath.Join(dataDir(t), "new")
	_, err = Restore(ctx, out, Source{DataDir: to}, anybody)
	require.NoError(t, err)
	again := start(t, to)
	defer again.Stop(context.Background())
	conn, err = pgx.Connect(ctx, again.URL())
	require.NoError(t, err)
	defer conn.Close(ctx)
	require.NoError(t, conn.QueryRow(ctx, insert, "dddd").Scan(&after))
	require.Greater(t, after, before)
}
