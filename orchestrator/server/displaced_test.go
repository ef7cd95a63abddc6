package server_test

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/postgres"
)

// An orchestrator whose claim on the database was lost with its connection, and which
// another one has taken meanwhile, is displaced: both would work with the same runs.
func TestDisplaced(t *testing.T) {
	dir, err := os.MkdirTemp("", "linktrial-displaced-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) // the user postgres must reach it
	pg := startDatabase(t, dir)
	s := serveAll(t, pg.URL(), t.TempDir(), nil)
	require.NoError(t, s.server.DisplacedBy())
	conn, err := pgx.Connect(t.Context(), pg.URL())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "SET application_name = 'linktrial orchestrator, process 1 on elsewhere'")
	require.NoError(t, err)
	const class = 0x6c74726c // of the claim
	require.Eventually(t, func() bool {
		var got bool
		_, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = $1", int64(class))
		require.NoError(t, err)
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT pg_try_advisory_lock($1, hashtext(current_schema()))", class).Scan(&got))
		return got
	}, 60*time.Second, time.Millisecond)
	<-s.server.Displaced()
	require.ErrorIs(t, s.server.DisplacedBy(), postgres.ErrInUse)
	require.ErrorContains(t, s.server.DisplacedBy(), "(linktrial orchestrator, process 1 on elsewhere")
}
