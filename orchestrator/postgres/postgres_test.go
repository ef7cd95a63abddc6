package postgres

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"linktrial/internal/process"
)

const helperEnv = "LINKTRIAL_TEST_POSTGRES_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		s, err := Start(context.Background(), Config{DataDir: dir})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(s.PID())
		select {} // until killed
	}
	// The thread that starts children lives as long as the process, by design.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"))
}

// dataDir is a folder that the user postgres can reach, which t.TempDir is not.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "linktrial-pgtest-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Config{DataDir: dir})
	require.NoError(t, err)
	return s
}

func query[T any](t *testing.T, s *Server, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), sql)
	require.NoError(t, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return v
}

func exec1(t *testing.T, s *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// One folder's life: made, stopped, started again, its orchestrator killed,
// left running by somebody else, its PID file stale.
func TestLifeOfADataFolder(t *testing.T) {
	dir := dataDir(t)
	s := start(t, dir)
	exec1(t, s, "CREATE TABLE kept (v int); INSERT INTO kept VALUES (42)")
	for setting, want := range map[string]string{"listen_addresses": "", "fsync": "on", "synchronous_commit": "on", "data_checksums": "on", "recovery_init_sync_method": "syncfs"} {
		require.Equal(t, want, query[string](t, s, "SELECT current_setting('"+setting+"')"), setting)
	}
	st, err := os.Stat(s.socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	pid := s.PID()
	require.NoError(t, s.Stop(t.Context()))
	require.Error(t, syscall.Kill(pid, 0), "PostgreSQL still runs after Stop")

	// kill -9 of the parent ends the child.
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start(cmd))
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	orphan, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	id, err := process.Identify(orphan)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	require.Eventually(t, func() bool { return !id.Alive() }, 30*time.Second, 10*time.Millisecond, "PostgreSQL outlived its killed parent")

	// And the next start recovers, with everything still there.
	s = start(t, dir)
	require.Equal(t, int32(42), query[int32](t, s, "SELECT v FROM kept"))
	require.NoError(t, s.Stop(t.Context()))

	// A server that somebody left running on the folder is ended.
	left := exec.Command(filepath.Join(s.bin.dir, "postgres"), s.settings()...)
	s.owner.become(left)
	left.Dir = s.data
	require.NoError(t, process.Start(left))
	go left.Wait()
	leftID, err := process.Identify(left.Process.Pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), s.URL())
		if err != nil {
			return false
		}
		conn.Close(t.Context())
		return true
	}, 30*time.Second, 20*time.Millisecond)
	s = start(t, dir)
	require.False(t, leftID.Alive(), "the leftover still runs")
	require.NoError(t, s.Stop(t.Context()))

	// A PID file that names a process of ours that is no PostgreSQL harms nobody.
	bystander := exec.Command("sleep", "60")
	require.NoError(t, process.Start(bystander))
	defer func() { bystander.Process.Kill(); bystander.Wait() }()
	pidFile := filepath.Join(dir, "postgres", "postmaster.pid")
	require.NoError(t, os.WriteFile(pidFile, fmt.Appendf(nil, "%d\n%s\n1\n5432\n%s\n\n", bystander.Process.Pid, s.data, s.socket), 0o600))
	require.NoError(t, s.owner.own(pidFile))
	require.False(t, servesFolder(bystander.Process.Pid, s.data))
	require.NoError(t, s.endLeftover(t.Context()))
	require.NoError(t, syscall.Kill(bystander.Process.Pid, 0))
	require.NoError(t, os.Remove(pidFile))

	// A server that dies by itself is started again.
	s = start(t, dir)
	dead := s.PID()
	require.NoError(t, syscall.Kill(dead, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		if s.PID() == dead {
			return false
		}
		conn, err := pgx.Connect(t.Context(), s.URL())
		if err != nil {
			return false
		}
		conn.Close(t.Context())
		return true
	}, 60*time.Second, 50*time.Millisecond, "PostgreSQL was not started again")
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()), "stopping twice")
}

// Where the data folder's path is too long for a socket, the server is found all the same.
// Folders that the server made its user may enter, whatever the umask is.
func TestRunningURL(t *testing.T) {
	for name, c := range map[string]struct {
		folder string
		umask  int
	}{
		"short": {"d", 0o022}, "long": {strings.Repeat("long/", 25), 0o022},
		"short, umask 077": {"d", 0o077}, "long, umask 077": {strings.Repeat("long/", 25), 0o077},
	} {
		t.Run(name, func(t *testing.T) {
			old := syscall.Umask(c.umask)
			defer syscall.Umask(old)
			dir := filepath.Join(dataDir(t), c.folder)
			_, running, err := RunningURL(t.Context(), dir)
			require.NoError(t, err)
			require.False(t, running, "there is no database")
			s := start(t, dir)
			url, running, err := RunningURL(t.Context(), dir)
			require.NoError(t, err)
			require.True(t, running)
			require.Equal(t, s.URL(), url)
			require.NoError(t, s.Stop(t.Context()))
			_, running, err = RunningURL(t.Context(), dir)
			require.NoError(t, err)
			require.False(t, running, "it was stopped")
		})
	}
}

// A data folder may have a name that means something in URLs, in PostgreSQL's lists or in
// its quotes. One database is moved from name to name, because making one takes seconds.
func TestFolderNames(t *testing.T) {
	dir := dataDir(t)
	at := filepath.Join(dir, "plain")
	require.NoError(t, os.Mkdir(at, 0o755))
	for _, name := range []string{"my data", " leading", "dätä", "a%20b", "a+b", `it's "a"`, "a,b", "a?b&c=d#e", `a\b`} {
		t.Run(name, func(t *testing.T) {
			next := filepath.Join(dir, name)
			require.NoError(t, os.Rename(at, next))
			at = next
			s := start(t, at)
			url, running, err := RunningURL(t.Context(), at)
			require.NoError(t, err)
			require.True(t, running)
			require.Equal(t, s.URL(), url)
			require.Equal(t, filepath.Join(at, "postgres"), query[string](t, s, "SHOW data_directory"))
			require.NoError(t, s.Stop(t.Context()))
		})
	}
}

func TestRefusals(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: PostgreSQL runs as another user only where this process is root")
	}
	dir := dataDir(t)
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	_, err := Start(t.Context(), Config{DataDir: filepath.Join(closed, "data")})
	require.ErrorContains(t, err, "may not enter "+closed)

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "other", "postgres"), 0o755))
	_, err = Start(t.Context(), Config{DataDir: filepath.Join(dir, "other")})
	require.ErrorContains(t, err, "holds no PostgreSQL database")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "other", "postgres", "PG_VERSION"), []byte("99\n"), 0o644))
	_, err = Start(t.Context(), Config{DataDir: filepath.Join(dir, "other")})
	require.ErrorContains(t, err, "made by PostgreSQL 99")
}

func TestFind(t *testing.T) {
	install := func(t *testing.T, root, version string) {
		bin := filepath.Join(root, version, "bin")
		require.NoError(t, os.MkdirAll(bin, 0o755))
		for _, f := range []string{"postgres", "initdb"} {
			require.NoError(t, os.WriteFile(filepath.Join(bin, f), []byte("#!/bin/sh\n"), 0o755))
		}
	}
	for name, c := range map[string]struct {
		installed []string
		want      int
		major     int
		err       string
	}{
		"none":          {nil, 0, 0, "PostgreSQL is not installed: install it (apt install postgresql)"},
		"newest":        {[]string{"15", "17", "9.6"}, 0, 17, ""},
		"too old":       {[]string{"13"}, 0, 0, "PostgreSQL 13 is too old, version 15"},
		"that version":  {[]string{"15", "17"}, 15, 15, ""},
		"not that one":  {[]string{"17"}, 15, 0, "apt install postgresql-15"},
		"other folders": {[]string{"15", "common"}, 0, 15, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, v := range c.installed {
				install(t, root, v)
			}
			b, err := places{root: root}.find(c.want)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.major, b.major)
		})
	}
	t.Run("search path", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "postgres"), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 16.3 (Debian 16.3-1)'\n"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "initdb"), []byte("#!/bin/sh\n"), 0o755))
		b, err := places{root: filepath.Join(dir, "absent"), searchPath: dir}.find(0)
		require.NoError(t, err)
		require.Equal(t, 16, b.major)
	})
	t.Run("of the package", func(t *testing.T) {
		system, bundled := t.TempDir(), filepath.Join(t.TempDir(), "a blank")
		install(t, system, "17")
		install(t, filepath.Join(bundled, "lib", "postgresql"), "15")
		p := places{root: system, bundled: bundled}
		b, err := p.find(0)
		require.NoError(t, err)
		require.Equal(t, binaries{dir: filepath.Join(bundled, "lib", "postgresql", "15", "bin"), major: 15, libs: filepath.Join(bundled, "lib")}, b)
		require.Equal(t, []string{"LD_LIBRARY_PATH=" + bundled + "/lib"}, b.environment())

		b, err = p.find(17) // a database that the system's had made
		require.NoError(t, err)
		require.Equal(t, binaries{dir: filepath.Join(system, "17", "bin"), major: 17}, b)
		require.Empty(t, b.environment())

		_, err = p.find(16)
		require.ErrorContains(t, err, "made by PostgreSQL 16, which is not installed (found: 15, 17): install it (apt install postgresql-16)")

		p.bundled = filepath.Join(t.TempDir(), "a:colon")
		install(t, filepath.Join(p.bundled, "lib", "postgresql"), "15")
		_, err = p.find(0)
		require.ErrorContains(t, err, "in no folder with a colon")
	})
}

// TestOwner holds that root has a database opened by the user that made it.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	before := owners
	t.Cleanup(func() { owners = before })
	dir := t.TempDir()

	owners = []string{"nobody", "daemon"}
	o, err := serverOwner(filepath.Join(dir, "absent"))
	require.NoError(t, err)
	require.Equal(t, "nobody", o.name)

	other, err := lookUp("daemon")
	require.NoError(t, err)
	require.NoError(t, other.own(dir))
	o, err = serverOwner(dir)
	require.NoError(t, err)
	require.Equal(t, "daemon", o.name)

	closed := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.MkdirAll(filepath.Join(closed, "bin"), 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(closed), 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(closed)), 0o755))
	require.NoError(t, o.checkPrograms(filepath.Join(closed, "bin")))
	require.NoError(t, os.Chmod(closed, 0o700))
	require.ErrorContains(t, o.checkPrograms(filepath.Join(closed, "bin")), "user daemon, who may not enter "+closed+", and its programs are in there")

	owners = []string{"linktrial-nobody"}
	_, err = serverOwner(dir)
	require.ErrorContains(t, err, "neither a user postgres nor linktrial")
}

// Why a server has ended is told, and not what it answered meanwhile.
func TestLastLine(t *testing.T) {
	for want, log := range map[string]string{
		`PANIC:  could not write to file "pg_wal/x": No space left on device`: "LOG:  starting\nFATAL:  the database system is starting up\nFATAL:  no room\n" +
			"PANIC:  could not write to file \"pg_wal/x\": No space left on device\nLOG:  shutting down",
		`FATAL:  could not write lock file "postmaster.pid": No space left on device`: `FATAL:  could not write lock file "postmaster.pid": No space left on device`,
		"LOG:  shutting down": "FATAL:  the database system is shutting down\nLOG:  shutting down\n",
		"":                    "",
	} {
		require.Equal(t, want, lastLine(log))
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)")
	f.Add("postgres (PostgreSQL) 18beta1")
	f.Add("(PostgreSQL) ")
	f.Fuzz(func(t *testing.T, s string) {
		if major, ok := parseVersion(s); ok && (major < 0 || !strings.Contains(s, strconv.Itoa(major)) && !strings.Contains(s, "0")) {
			t.Fatalf("%q is version %d", s, major)
		}
	})
}
