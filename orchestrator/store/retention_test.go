package store_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/internal/timescaletest"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// noon of the first of the days that the tests' samples are of.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// sampled adds a run that took samples on some days, and ended unless told otherwise.
func sampled(t *testing.T, s *store.Store, conn *pgx.Conn, campaign string, ended bool, days ...int) (run string) {
	t.Helper()
	run = storetest.AddRun(t, s, campaign, storetest.Sheet(2))
	require.NoError(t, s.InTx(t.Context(), func(tx store.Conn) error {
		var rows []store.Sample
		for _, day := range days {
			for i := range 10 {
				at := noon.AddDate(0, 0, day).Add(time.Duration(i) * time.Second)
				rows = append(rows, store.Sample{At: at, RunID: run, Attempt: 1, Side: "client", Metrics: contract.Sample{ElapsedNS: int64(at.Sub(noon)), SentBytes: 1}})
			}
		}
		return tx.InsertSamples(t.Context(), rows)
	}))
	if ended {
		_, err := conn.Exec(t.Context(), "UPDATE runs SET state = 'completed', ended_at = $2 WHERE id = $1", run, noon.AddDate(0, 0, days[len(days)-1]))
		require.NoError(t, err)
	}
	return run
}

func count(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// generated returns a statement of sqlc's.
func generated(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	query := regexp.MustCompile("(?s)const " + name + " = `(.*?)`").FindSubmatch(text)
	require.NotNil(t, query, "%s has no statement %s", file, name)
	return string(query[1])
}

// retention holds on a plain table and on a hypertable alike; chunks is how many
// days are dropped whole.
func retention(t *testing.T, url string, chunks int) {
	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer s.Close()
	conn := connect(t, url)
	old := sampled(t, s, conn, "oldest", true, 0, 1)
	across := sampled(t, s, conn, "across", true, 2, 40)
	going := sampled(t, s, conn, "going", false, 3)
	late := sampled(t, s, conn, "late", true, 4)
	fresh := sampled(t, s, conn, "fresh", true, 50)
	behind := sampled(t, s, conn, "behind", true, 5) // of nodes whose clocks are a year and a half behind
	_, err = conn.Exec(t.Context(), "UPDATE runs SET ended_at = $2 WHERE id = $1", behind, noon.AddDate(1, 6, 5))
	require.NoError(t, err)

	d, err := s.DropSamples(t.Context(), noon.AddDate(0, 0, 30))
	require.NoError(t, err)
	require.Equal(t, 2, d.Runs)
	require.Equal(t, chunks, d.Chunks)
	have := func(run string) int { return count(t, conn, "SELECT count(*) FROM samples WHERE run_id = $1", run) }
	require.Equal(t, []int{0, 20, 10, 0, 10, 10}, []int{have(old), have(across), have(going), have(late), have(fresh), have(behind)})
	require.Equal(t, 2, count(t, conn, "SELECT count(*) FROM sample_spans WHERE dropped_at IS NOT NULL"))
	require.Equal(t, 2, count(t, conn, "SELECT count(*) FROM trials WHERE run_id = $1", old), "what was measured stays")

	d, err = s.DropSamples(t.Context(), noon.AddDate(0, 0, 30))
	require.NoError(t, err)
	require.Equal(t, store.Dropped{}, d, "the second time there is nothing to do")

	// A node that was away delivers late: the run is looked at again.
	require.NoError(t, s.InTx(t.Context(), func(tx store.Conn) error {
		return tx.InsertSamples(t.Context(), []store.Sample{{At: noon, RunID: old, Attempt: 1, Side: "server", Metrics: contract.Sample{SentBytes: 1}}})
	}))
	d, err = s.DropSamples(t.Context(), noon.AddDate(0, 0, 30))
	require.NoError(t, err)
	require.Equal(t, 1, d.Runs)
	require.Zero(t, have(old))
}

func TestRetention(t *testing.T) { retention(t, storetest.URL(t), 0) }

// The same schema on TimescaleDB: one server for all of it, because making one
// takes a while.
func TestTimescale(t *testing.T) {
	url := timescaletest.Start(t)
	admin := connect(t, url)
	database := func(name string) string {
		_, err := admin.Exec(t.Context(), "CREATE DATABASE "+name)
		require.NoError(t, err)
		return regexp.MustCompile(`/linktrial\?`).ReplaceAllString(url, "/"+name+"?")
	}

	t.Run("a database has one orchestrator", func(t *testing.T) {
		url := database("claimed")
		c, err := postgres.TakeClaim(t.Context(), url, postgres.UserOrchestrator, nil)
		require.NoError(t, err)
		s, err := store.Open(t.Context(), url, nil)
		require.NoError(t, err)
		defer s.Close()
		_, err = postgres.TakeClaim(t.Context(), url, postgres.UserOrchestrator, nil)
		require.ErrorIs(t, err, postgres.ErrInUse)
		c.Release()
		c, err = postgres.TakeClaim(t.Context(), url, postgres.UserOrchestrator, nil)
		require.NoError(t, err)
		c.Release()
	})

	t.Run("days without a run's samples are not read", func(t *testing.T) {
		url := database("pruning")
		s, err := store.Open(t.Context(), url, nil)
		require.NoError(t, err)
		defer s.Close()
		conn := connect(t, url)
		run := sampled(t, s, conn, "this", true, 7)
		sampled(t, s, conn, "others", true, 0, 1, 2, 20, 21)
		require.Equal(t, 6, count(t, conn, "SELECT count(*) FROM timescaledb_information.chunks WHERE hypertable_name = 'samples'"))

		// The very queries that the store reads with.
		for _, c := range []struct {
			name, query string
			args        []any
		}{
			{"series", store.SamplesOfSeriesSQL(), []any{run, 0, 1, 0, "client", int64(0), int64(1) << 62}},
			{"trials", store.SamplesOfTrialsSQL(), []any{run, 0, 3}},
			{"which series", generated(t, "../rpc/results/resultsdb/results.sql.go", "seriesOfAttempt"), []any{run, 0, 1}},
			{"window of a series", generated(t, "storedb/results.sql.go", "seriesWindow"), []any{int64(1), int64(1) << 60, run, 0, 1, 0, "client"}},
		} {
			rows, err := conn.Query(t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "+c.query, c.args...)
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			require.Contains(t, strings.Join(lines, "\n"), "Chunks excluded during runtime: 5\n", c.name)
		}
		got, err := s.SamplesOfTrial(t.Context(), run, 0)
		require.NoError(t, err)
		require.Len(t, got, 10)
	})

	t.Run("samples that come alone", func(t *testing.T) { appended(t, database("appended")) })

	// Days 0 and 1 are of a run that goes; on day 2 begins one that stays.
	t.Run("retention", func(t *testing.T) { retention(t, database("retention"), 2) })
}
