package postgres

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// lines is a log that a test reads while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) eventually(t *testing.T, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(l.String(), want) }, 60*time.Second, 10*time.Millisecond, want)
}

func claim(t *testing.T, url string) *Claim {
	t.Helper()
	c, err := TakeClaim(t.Context(), url, UserOrchestrator, nil)
	require.NoError(t, err)
	return c
}

// Of those that want a database one has it, and the others are told who.
func TestClaim(t *testing.T) {
	ctx := t.Context()
	s := start(t, dataDir(t))
	defer s.Stop(context.Background())
	exec1(t, s, "CREATE SCHEMA other")
	exec1(t, s, "CREATE DATABASE second")

	first := claim(t, s.URL()+"&pool_max_conns=3") // as the store takes it
	host, err := os.Hostname()
	require.NoError(t, err)
	who := fmt.Sprintf("linktrial orchestrator, process %d on %s", os.Getpid(), host)
	_, err = takeClaim(ctx, s.URL(), UserOrchestrator, nil, 0)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "the database is in use by another program ("+who[:min(len(who), 63)]+" since 20")
	require.ErrorContains(t, err, "): stop that one, or name another database with --database")
	require.NotContains(t, err.Error(), "\n", "one sentence")
	exec1(t, s, "CREATE ROLE lesser LOGIN")
	lesser := strings.Replace(s.URL(), "user="+superuser, "user=lesser", 1)
	require.NotEqual(t, s.URL(), lesser)
	_, err = takeClaim(ctx, lesser, UserOrchestrator, nil, 0)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "("+who[:min(len(who), 63)]+"): stop that one")
	claim(t, s.DatabaseURL("second")).Release()
	claim(t, s.URL()+"&search_path=other").Release()
	first.Release()
	claim(t, s.URL()).Release()

	// One that is about to go is waited for.
	first = claim(t, s.URL())
	time.AfterFunc(2*claimAgain, first.Release)
	claim(t, s.URL()).Release()

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = TakeClaim(canceled, s.URL(), UserOrchestrator, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = TakeClaim(ctx, "postgres:///x?host=/nonexistent&user=x", UserOrchestrator, nil)
	require.ErrorContains(t, err, "the database does not answer")
	_, err = TakeClaim(ctx, "nonsense", UserOrchestrator, nil)
	require.ErrorContains(t, err, "database URL")
	require.Zero(t, query[int64](t, s, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'linktrial orchestrator%'"), "connections that nobody closed")
}

// What is lost with its connection is taken again, also after the whole server was
// started again; where another has it meanwhile, its holder is told who.
func TestClaimThatIsLost(t *testing.T) {
	s := start(t, dataDir(t))
	defer s.Stop(context.Background())
	var log lines
	c, err := TakeClaim(t.Context(), s.URL(), UserOrchestrator, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer c.Release()

	conn, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "SET application_name = 'the other one'")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var got bool
		_, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'linktrial orchestrator%'")
		require.NoError(t, err)
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT pg_try_advisory_lock($1, "+claimKey+")", claimClass).Scan(&got))
		return got
	}, 60*time.Second, time.Millisecond)
	log.eventually(t, "was lost with its connection")
	<-c.Taken()
	require.ErrorIs(t, c.TakenBy(), ErrInUse)
	require.ErrorContains(t, c.TakenBy(), "another program has claimed the database while this one was cut off from it: the database is in use by another program (the other one")
	_, err = conn.Exec(t.Context(), "SELECT pg_advisory_unlock_all()")
	require.NoError(t, err)

	c, err = TakeClaim(t.Context(), s.URL(), UserOrchestrator, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer c.Release()
	_, err = conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'linktrial orchestrator%'")
	require.NoError(t, err)
	log.eventually(t, "is held again")
	_, err = takeClaim(t.Context(), s.URL(), UserRestore, nil, 0)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, c.TakenBy())

	require.NoError(t, s.Stop(t.Context()))
	log.eventually(t, "level=WARN")
	again := start(t, s.cfg.DataDir)
	defer again.Stop(context.Background())
	require.Eventually(t, func() bool { return strings.Count(log.String(), "is held again") == 2 }, 60*time.Second, 10*time.Millisecond)
	_, err = takeClaim(t.Context(), again.URL(), UserRestore, nil, 0)
	require.ErrorIs(t, err, ErrInUse)
}
