package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/faultdisk"
	"linktrial/orchestrator/postgres"
)

// startDatabase starts PostgreSQL on a folder until the test ends.
func startDatabase(t *testing.T, dir string) *postgres.Server {
	t.Helper()
	pg, err := postgres.Start(t.Context(), postgres.Config{DataDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { stopDatabase(t, pg) })
	return pg
}

func stopDatabase(t *testing.T, pg *postgres.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, pg.Stop(ctx))
}

// While the database answers and takes no changes, health and answers say so, and since
// when; when it takes them again, that is found without anybody storing anything.
func TestDatabaseTakesNoChanges(t *testing.T) {
	for name, c := range map[string]struct {
		why   string
		start func(t *testing.T, dir string) (pg *postgres.Server, begin, end func())
	}{
		"read-only": {"is set to read-only and takes no changes", func(t *testing.T, dir string) (*postgres.Server, func(), func()) {
			pg := startDatabase(t, dir)
			set := func(sql string) func() {
				return func() {
					conn, err := pgx.Connect(t.Context(), pg.URL())
					require.NoError(t, err)
					defer conn.Close(t.Context())
					for _, q := range []string{"SET default_transaction_read_only = off", sql, "SELECT pg_reload_conf()"} {
						_, err := conn.Exec(t.Context(), q)
						require.NoError(t, err)
					}
				}
			}
			return pg, set("ALTER SYSTEM SET default_transaction_read_only = on"), set("ALTER SYSTEM RESET default_transaction_read_only")
		}},
		"full": {"has no room left on its disk", func(t *testing.T, dir string) (*postgres.Server, func(), func()) {
			if os.Geteuid() != 0 {
				t.Skip("needs root: it mounts a file system")
			}
			stopDatabase(t, startDatabase(t, dir)) // a new database is made in a folder that is renamed
			disk, err := faultdisk.Mount(filepath.Join(dir, "postgres"))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, disk.Unmount()) }) // after PostgreSQL's end
			return startDatabase(t, dir), func() { disk.Fail(faultdisk.Failure{Full: true}) }, func() { disk.Fail(faultdisk.Failure{}) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "linktrial-unwritable-")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			require.NoError(t, os.Chmod(dir, 0o755)) // the user postgres must reach it
			pg, begin, end := c.start(t, dir)
			s := serveAll(t, pg.URL(), t.TempDir(), nil)
			saved := 0
			save := func() error {
				saved++
				text := fmt.Sprintf("# %s\n", strings.Repeat(fmt.Sprintf("%x", saved*7919), 4000)) + fmt.Sprintf(testPlan, "64 KiB")
				_, err := s.library.SavePlan(t.Context(), connect.NewRequest(&linktrialv1.SavePlanRequest{Name: fmt.Sprintf("p%d", saved), Text: []byte(text)}))
				return err
			}
			require.NoError(t, save())
			begin()
			require.Eventually(t, func() bool { err = save(); return err != nil }, 30*time.Second, time.Millisecond, "nothing is refused")
			fails(t, err, connect.CodeUnavailable, "the database "+c.why+", so nothing can be stored: nothing is lost")
			// A database whose answer takes longer than [server.HealthLimit], as on a busy
			// machine, rightly counts as one that does not answer: then it is asked again.
			says := `^the database ` + c.why + ` \(since \d\d:\d\d:\d\d UTC, \d+ s\): nothing is lost`
			require.EventuallyWithT(t, func(now *assert.CollectT) {
				status, text := healthOf(t, s.base)
				assert.Equal(now, http.StatusServiceUnavailable, status)
				assert.Regexp(now, says, text)
			}, time.Minute, 10*time.Millisecond)
			_, err = s.operator.ListRuns(t.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 1}))
			require.NoError(t, err, "what is stored can be read")
			end()
			require.Eventually(t, func() bool { status, _ := healthOf(t, s.base); return status == http.StatusOK }, time.Minute, 10*time.Millisecond)
			require.NoError(t, save())
		})
	}
}
