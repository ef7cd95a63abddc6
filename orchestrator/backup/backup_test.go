package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/authority"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/signing"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// dataDir is a folder that the user postgres can reach, which t.TempDir is not.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "linktrial-backuptest-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, dir string) *postgres.Server {
	t.Helper()
	s, err := postgres.Start(t.Context(), postgres.Config{DataDir: dir})
	require.NoError(t, err)
	return s
}

// content is a digest of every table.
func content(t *testing.T, url string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	out := map[string]string{}
	for _, table := range tables {
		var digest string
		q := fmt.Sprintf("SELECT count(*) || ' ' || coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM %s x", pgx.Identifier{table}.Sanitize())
		require.NoError(t, conn.QueryRow(t.Context(), q).Scan(&digest))
		out[table] = digest
	}
	return out
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

func TestBackupAndRestore(t *testing.T) {
	ctx, dir := t.Context(), dataDir(t)
	srv := start(t, dir)
	st, err := store.Open(ctx, srv.URL(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	storetest.AddRun(t, st, "backup", storetest.Sheet(40))
	st.Close()
	put(t, filepath.Join(dir, authority.Folder, "ca.key"), "key", 0o600)
	put(t, filepath.Join(signing.Dir(dir), "ring"), "ring", 0o600)
	put(t, filepath.Join(dir, "topologies", "site.yaml"), "name: site\n", 0o644)
	put(t, filepath.Join(dir, "agents", "client", "journal"), "not ours", 0o644)
	want := content(t, srv.URL())
	require.Greater(t, len(want), 5)

	// While it works.
	out := filepath.Join(dataDir(t), "b.tar.gz")
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m, err := Create(ctx, Source{DataDir: dir}, out, "v1", at)
	require.NoError(t, err)
	info, err := os.Stat(out)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "keys are in it")
	left, err := filepath.Glob(out + ".*")
	require.NoError(t, err)
	require.Empty(t, left)
	newest, err := newestMigration()
	require.NoError(t, err)
	require.Equal(t, newest, m.Schema)

	// A restore does not touch what is there, used or not.
	_, err = Restore(ctx, out, Source{DataDir: dir})
	require.ErrorContains(t, err, "has a database already")
	require.NoError(t, srv.Stop(ctx))

	// While it does not work.
	still := filepath.Join(filepath.Dir(out), "still.tar.gz")
	_, err = Create(ctx, Source{DataDir: dir}, still, "v1", at)
	require.NoError(t, err)

	for _, file := range []string{out, still} {
		to := filepath.Join(dataDir(t), "new")
		got, err := Restore(ctx, file, Source{DataDir: to})
		require.NoError(t, err)
		require.Equal(t, m, got)
		again := start(t, to)
		require.Equal(t, want, content(t, again.URL()))
		// The next start of an orchestrator takes it as it is.
		st, err := store.Open(ctx, again.URL(), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		st.Close()
		require.NoError(t, again.Stop(ctx))
		for name, text := range map[string]string{"authority/ca.key": "key", "signing/ring": "ring", "topologies/site.yaml": "name: site\n"} {
			b, err := os.ReadFile(filepath.Join(to, name))
			require.NoError(t, err)
			require.Equal(t, text, string(b))
		}
		key, err := os.Stat(filepath.Join(to, "authority/ca.key"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), key.Mode().Perm())
		require.NoDirExists(t, filepath.Join(to, "agents"))
	}

	// Into a database that is given.
	other := dataDir(t)
	srv = start(t, other)
	defer srv.Stop(context.Background())
	conn, err := pgx.Connect(ctx, srv.URL())
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "CREATE DATABASE given")
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	to := Source{DataDir: filepath.Join(dataDir(t), "keys"), DatabaseURL: srv.DatabaseURL("given")}
	claim, err := postgres.TakeClaim(ctx, to.DatabaseURL, postgres.UserOrchestrator, nil)
	require.NoError(t, err)
	_, err = Restore(ctx, out, to)
	require.ErrorIs(t, err, postgres.ErrInUse)
	require.NoDirExists(t, to.DataDir, "nothing half-done")
	claim.Release()
	_, err = Restore(ctx, out, to)
	require.NoError(t, err)
	require.Equal(t, want, content(t, to.DatabaseURL))
	to.DataDir += "2"
	_, err = Restore(ctx, out, to)
	require.ErrorContains(t, err, "tables already, expected an empty one")
	require.NoDirExists(t, to.DataDir, "nothing half-done")

	// What is wrong with a file shows before anything is there.
	t.Run("damaged", func(t *testing.T) {
		b, err := os.ReadFile(out)
		require.NoError(t, err)
		for name, c := range map[string]struct {
			content []byte
			want    string
		}{
			"empty":         {nil, "expected a tar with gzip"},
			"cut":           {b[:len(b)/2], "cut off or damaged"},
			"cut at end":    {b[:len(b)-4], "cut off or damaged"},
			"newer schema":  {rewrite(t, b, func(m string) string { return strings.Replace(m, `"schema": `, `"schema": 9`, 1) }), "is newer than this program's"},
			"newer format":  {rewrite(t, b, func(m string) string { return strings.Replace(m, `"format": 1`, `"format": 2`, 1) }), "format 2, expected 1"},
			"dump no dump":  {archive(t, "manifest.json", `{"format":1}`, "store.dump", "x"), "pg_restore: "},
			"without dump":  {archive(t, "manifest.json", `{"format":1}`), "there is no store.dump in it"},
			"out of folder": {archive(t, "manifest.json", `{"format":1}`, "files/authority/../../../x", "x"), "does not belong into a backup"},
			"other folder":  {archive(t, "manifest.json", `{"format":1}`, "files/postgres/x", "x"), "does not belong into a backup"},
			"no manifest":   {archive(t, "store.dump", "x"), "expected manifest.json first"},
		} {
			t.Run(name, func(t *testing.T) {
				dir := dataDir(t)
				file, to := filepath.Join(dir, "x"), filepath.Join(dir, "to")
				put(t, file, string(c.content), 0o600)
				_, err := Restore(ctx, file, Source{DataDir: to})
				require.ErrorContains(t, err, c.want)
				require.NoDirExists(t, to, "nothing half-done")
			})
		}
	})
}

func TestRefusals(t *testing.T) {
	ctx, dir := t.Context(), dataDir(t)
	_, err := Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now())
	require.ErrorContains(t, err, "there is no private database in")

	srv := start(t, dir)
	_, err = Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now())
	require.ErrorContains(t, err, "is none of linktrial's")
	require.NoError(t, srv.Stop(ctx))

	release, err := postgres.Lock(dir, postgres.UserOrchestrator)
	require.NoError(t, err)
	_, err = Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now())
	require.ErrorIs(t, err, postgres.ErrInUse, "an orchestrator that is starting")
	_, err = Restore(ctx, "b", Source{DataDir: dir})
	require.ErrorIs(t, err, postgres.ErrInUse, "before anything is looked at")
	release()

	require.NoError(t, os.Chown(dir, 65534, 65534))
	_, err = Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now())
	require.ErrorContains(t, err, "belongs to user nobody: do this as that user")
	require.NoFileExists(t, filepath.Join(dir, "b"))
	left, err := filepath.Glob(filepath.Join(dir, ".b.*"))
	require.NoError(t, err)
	require.Empty(t, left)

	for at, want := range map[string]string{
		"host=/run user=x password=secret":          "found something that does not begin with postgres://",
		"postgres://x:sec/ret@host/db":              "expected postgres://USER:PASSWORD@HOST:PORT/NAME",
		"mysql://x:secret@host/db":                  "does not begin with postgres://",
		"postgres://x:secret@host/db?sslmode=never": "sslmode is invalid",
	} {
		for name, f := range map[string]func(Source) error{
			"backup":  func(s Source) error { _, err := Create(ctx, s, filepath.Join(dir, "b"), "v1", time.Now()); return err },
			"restore": func(s Source) error { _, err := Restore(ctx, filepath.Join(dir, "b"), s); return err },
		} {
			to := filepath.Join(t.TempDir(), "to")
			err := f(Source{DataDir: to, DatabaseURL: at})
			require.ErrorContains(t, err, want, name)
			require.NotContains(t, err.Error(), "sec", name)
			require.NotContains(t, err.Error(), "\n", name)
			require.NoDirExists(t, to)
		}
	}
}

// filled is a data folder with a store and keys, and its running database.
func filled(t *testing.T) (string, *postgres.Server) {
	t.Helper()
	dir := dataDir(t)
	srv := start(t, dir)
	st, err := store.Open(t.Context(), srv.URL(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	st.Close()
	put(t, filepath.Join(dir, authority.Folder, "ca.key"), "key", 0o600)
	put(t, filepath.Join(dir, authority.Folder, ".new-123"), "unfinished", 0o600)
	put(t, filepath.Join(dir, "topologies", "site.yaml"), "name: site\n", 0o644)
	return dir, srv
}

// What is written on the way holds secrets too: nobody else may read it, a
// killed backup's goes with the next one, a living one's stays.
func TestWhatABackupLeaves(t *testing.T) {
	ctx := t.Context()
	dir, srv := filled(t)
	defer srv.Stop(context.Background())
	beside := dataDir(t)
	out := filepath.Join(beside, "b.tar.gz")
	killed := filepath.Join(beside, ".b.tar.gz.writing-1")
	put(t, filepath.Join(killed, dumpFile), "secret", 0o600)
	others := []string{filepath.Join(beside, ".b.tar.gz.writing-2"), filepath.Join(beside, ".c.tar.gz.writing-1")}
	for _, d := range others {
		put(t, filepath.Join(d, dumpFile), "theirs", 0o600)
	}
	release, err := lockFolder(others[0])
	require.NoError(t, err)
	defer release()

	watched, stop := make(chan error), make(chan struct{})
	go func() {
		for {
			entries, err := os.ReadDir(beside)
			for _, e := range entries {
				if info, err := e.Info(); err == nil && info.Mode().Perm()&0o077 != 0 && !slices.Contains(others, filepath.Join(beside, e.Name())) && e.Name() != filepath.Base(killed) {
					watched <- fmt.Errorf("%s has mode %v", e.Name(), info.Mode())
					return
				}
			}
			select {
			case <-stop:
				watched <- err
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	_, err = Create(ctx, Source{DataDir: dir}, out, "v1", time.Now())
	close(stop)
	require.NoError(t, err)
	require.NoError(t, <-watched, "others can read it")
	require.NoDirExists(t, killed)
	for _, d := range others {
		require.DirExists(t, d)
	}

	z, err := os.Open(out)
	require.NoError(t, err)
	defer z.Close()
	plain, err := gzip.NewReader(z)
	require.NoError(t, err)
	text, err := io.ReadAll(plain)
	require.NoError(t, err)
	require.NotContains(t, string(text), "unfinished")

	// A database that does not stop as it should: no file, and an older one stays.
	for name, old := range map[string]string{"none before": "", "one before": "older"} {
		at := filepath.Join(dataDir(t), "b.tar.gz")
		if old != "" {
			put(t, at, old, 0o600)
		}
		db, err := databaseAt(srv.URL(), toolsOf(t, dir), func() error { return errors.New("did not stop") })
		require.NoError(t, err)
		_, err = create(ctx, db, dir, at, "v1", time.Now())
		require.EqualError(t, err, "did not stop", name)
		b, err := os.ReadFile(at)
		require.Equal(t, old == "", os.IsNotExist(err), name)
		require.Equal(t, old, string(b), name)
		entries, err := os.ReadDir(filepath.Dir(at))
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), 1, name)
	}
}

func toolsOf(t *testing.T, dir string) string {
	t.Helper()
	tools, err := postgres.ToolsDir(dir)
	require.NoError(t, err)
	return tools
}

// Somebody makes a folder while the restore works: it stays, what the restore
// put there goes.
func TestRestoreThatMeetsSomebody(t *testing.T) {
	ctx := t.Context()
	dir, srv := filled(t)
	out := filepath.Join(dataDir(t), "b.tar.gz")
	_, err := Create(ctx, Source{DataDir: dir}, out, "v1", time.Now())
	require.NoError(t, err)
	require.NoError(t, srv.Stop(ctx))

	to := dataDir(t)
	killed := filepath.Join(to, scrapPrefix+"1")
	put(t, filepath.Join(killed, dumpFile), "secret", 0o600)
	theirs := filepath.Join(to, "topologies", "theirs.yaml")
	done := make(chan error)
	go func() {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if left, err := filepath.Glob(filepath.Join(to, scrapPrefix+"*", "postgres")); err != nil || len(left) > 0 {
				break
			}
		}
		done <- errors.Join(os.Mkdir(filepath.Dir(theirs), 0o755), os.WriteFile(theirs, []byte("name: theirs\n"), 0o644))
	}()
	_, err = Restore(ctx, out, Source{DataDir: to})
	require.NoError(t, <-done)
	require.ErrorContains(t, err, "topologies")
	b, err := os.ReadFile(theirs)
	require.NoError(t, err)
	require.Equal(t, "name: theirs\n", string(b))
	entries, err := os.ReadDir(to)
	require.NoError(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	require.Equal(t, []string{"orchestrator.lock", "topologies"}, left)
}

// rewrite packs a backup again with another manifest.
func rewrite(t *testing.T, b []byte, change func(string) string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	r := tar.NewReader(z)
	var all []string
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		name := strings.TrimPrefix(h.Name, folder+"/")
		if name == manifestFile {
			changed := change(string(text))
			require.NotEqual(t, string(text), changed)
			text = []byte(changed)
		}
		all = append(all, name, string(text))
	}
	return archive(t, all...)
}

func archive(t testing.TB, namesAndTexts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for pair := range slices.Chunk(namesAndTexts, 2) {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: folder + "/" + pair[0], Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(pair[1]))}))
		_, err := io.WriteString(w, pair[1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}

// Nothing that an archive says leads out of the folder.
func FuzzUnpack(f *testing.F) {
	for _, b := range [][]byte{archive(f, "manifest.json", `{"format":1}`, "files/authority/ca.key", "k", "store.dump", "x"), archive(f, "files/authority/../../x", "y")} {
		z, err := gzip.NewReader(bytes.NewReader(b))
		require.NoError(f, err)
		plain, err := io.ReadAll(z)
		require.NoError(f, err)
		f.Add(plain)
	}
	f.Fuzz(func(t *testing.T, tarball []byte) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(tarball)
		w.Close()
		outer := t.TempDir()
		into := filepath.Join(outer, "into")
		require.NoError(t, os.Mkdir(into, 0o700))
		m, err := unpackFrom(&b, into)
		if err == nil && m.Format != Format {
			t.Errorf("went through: %+v", m)
		}
		entries, err := os.ReadDir(outer)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		inside, err := os.ReadDir(into)
		require.NoError(t, err)
		allowed := map[string]bool{dumpFile: true, filesFolder: true}
		for _, e := range inside {
			require.True(t, allowed[e.Name()], "%s: expected one of %v", e.Name(), slices.Collect(maps.Keys(allowed)))
		}
	})
}
