package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/postgres"
)

// processes of the PostgreSQL on a folder: the postmaster, and one of the others that
// serves a connection.
func databaseProcesses(t *testing.T, folder string) (postmaster, backend int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(b), "\n")
	postmaster, err = strconv.Atoi(first)
	require.NoError(t, err)
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", postmaster))
	require.NoError(t, err)
	for _, list := range children {
		b, err := os.ReadFile(list)
		require.NoError(t, err)
		for _, f := range strings.Fields(string(b)) {
			line, _ := os.ReadFile("/proc/" + f + "/cmdline")
			if strings.Contains(string(line), "linktrial") && strings.Contains(string(line), "idle") {
				backend, err = strconv.Atoi(f)
				require.NoError(t, err)
			}
		}
	}
	return postmaster, backend
}

// answersAnew reports whether another postmaster than the earlier one has begun.
func answersAnew(folder string, earlier int) bool {
	b, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
	first, _, _ := strings.Cut(string(b), "\n")
	now, bad := strconv.Atoi(first)
	return err == nil && bad == nil && now != earlier
}

func healthOf(t *testing.T, base string) (status int, text string) {
	t.Helper()
	res, err := http.Get(base + "/healthz")
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

// The postmaster is killed, or one of its processes: the orchestrator stays, starts it
// again, and says meanwhile that the database is away and not that anything is not there.
func TestDatabaseKilled(t *testing.T) {
	data, err := os.MkdirTemp("", "linktrial-killed-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	require.NoError(t, os.Chmod(data, 0o755)) // the user postgres must reach it
	s := serveAll(t, "", data, nil)
	g := newGround(t, s.clients)
	c := newRawCaller(t, s.base, "")
	var asked []protoreflect.MethodDescriptor
	codes := map[protoreflect.FullName]string{}
	for _, m := range procedures() {
		if reads(m) && !skipWithoutDatabase[string(m.Name())] {
			a, err := c.call(t.Context(), m, encoded(t, g.request(m.Input())))
			require.NoError(t, err, m.FullName())
			asked, codes[m.FullName()] = append(asked, m), a.Code
		}
	}
	// sweep asks for everything once, and reports whether all was answered as before.
	sweep := func() bool {
		whole := true
		for _, m := range asked {
			a, err := c.call(t.Context(), m, encoded(t, g.request(m.Input())))
			what := fmt.Sprintf("%s: %s %s", m.FullName(), a.Code, a.Message)
			require.NoError(t, err, what)
			noLeak(t, what, a)
			if a.Code == codes[m.FullName()] {
				continue
			}
			whole = false
			require.Equal(t, "unavailable", a.Code, what)
			require.Contains(t, a.Message, "the database does not answer", what)
			require.Contains(t, a.Message, "nothing is lost", what)
		}
		return whole
	}
	for i := range 6 {
		postmaster, backend := databaseProcesses(t, filepath.Join(data, "postgres"))
		victim, what := postmaster, "postmaster"
		if i%2 == 1 {
			require.NotZero(t, backend)
			victim, what = backend, "backend"
		}
		require.NoError(t, syscall.Kill(victim, syscall.SIGKILL))
		killed := time.Now()
		require.Eventually(t, func() bool {
			status, _ := healthOf(t, s.base)
			if status != http.StatusOK || !sweep() {
				return false
			}
			// Backends of a postmaster that was killed answer until they notice it.
			return what == "backend" || answersAnew(filepath.Join(data, "postgres"), postmaster)
		}, 60*time.Second, time.Millisecond, "the database answers again")
		t.Logf("%s killed: all calls are answered %s later", what, time.Since(killed).Round(time.Millisecond))
		now, _ := databaseProcesses(t, filepath.Join(data, "postgres"))
		require.Equal(t, what == "postmaster", now != postmaster)
	}
}

// Health and answers say since when the database does not answer.
func TestDatabaseDownSince(t *testing.T) {
	dir, err := os.MkdirTemp("", "linktrial-since-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	pg, err := postgres.Start(t.Context(), postgres.Config{DataDir: dir})
	require.NoError(t, err)
	s := serveAll(t, pg.URL(), t.TempDir(), nil)
	stop, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, pg.Stop(stop))
	require.Eventually(t, func() bool {
		status, text := healthOf(t, s.base)
		return status == http.StatusServiceUnavailable && strings.Contains(text, " UTC, ") && strings.Contains(text, "the database does not answer (since ")
	}, 30*time.Second, 10*time.Millisecond)
	_, err = s.operator.ListRuns(t.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 1}))
	require.ErrorContains(t, err, "the database does not answer (since ")
	require.ErrorContains(t, err, "nodes continue and keep what they measure")
	got := map[string]float64{}
	require.Eventually(t, func() bool { // a scrape within a second of another one has its answer
		asked := time.Now()
		got = scrape(t, s.clients)
		require.Less(t, time.Since(asked), 8*time.Second, "Prometheus waits for 10 s")
		return got["linktrial_database_up"] == 0
	}, 30*time.Second, 100*time.Millisecond)
	require.InDelta(t, 0, got["linktrial_state_read"], 0)
	require.Contains(t, got, "linktrial_nodes_connected")
	require.NotContains(t, got, `linktrial_runs{state="queued"}`)
}
