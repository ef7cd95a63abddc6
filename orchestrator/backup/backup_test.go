package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	"linktrial/internal/auditchain"
	"linktrial/internal/signature"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/security/authority"
	"linktrial/orchestrator/security/signing"
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
	for what, q := range map[string]string{
		"indexes":     "SELECT string_agg(indexdef, E'\n' ORDER BY indexdef) FROM pg_indexes WHERE schemaname = 'public'",
		"constraints": "SELECT string_agg(conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid), E'\n' ORDER BY conrelid::regclass::text, conname) FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
	} {
		var all string
		require.NoError(t, conn.QueryRow(t.Context(), q).Scan(&all))
		out[what] = all
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
	run := storetest.AddRun(t, st, "backup", storetest.Sheet(40))
	every := make([]byte, 256) // of a page of a journal as its node wrote it, and of a certificate
	for i := range every {
		every[i] = byte(i)
	}
	_, err = st.Exec(ctx, "INSERT INTO journal_pages (run_id, node, first_seq, last_seq, samples, content) VALUES ($1, 'client', 1, 7, true, $2)", run, every)
	require.NoError(t, err)
	_, err = st.Exec(ctx, "UPDATE run_nodes SET statement = $2, statement_signature = 'x', statement_certificate = $2 WHERE run_id = $1 AND node = 'client'", run, every)
	require.NoError(t, err)
	entry, _, err := st.AppendAudit(ctx, auditchain.Entry{At: time.Now(), User: "anna", Action: "A.B", Outcome: "done"})
	require.NoError(t, err)
	require.NoError(t, st.AddAuditHead(ctx, auditchain.Head{Entry: entry.ID, Hash: entry.Hash, Signed: entry.At, Signature: signature.Signature{KeyID: "key", Bytes: []byte("of it")}}))
	st.Close()
	put(t, filepath.Join(dir, authority.Folder, "ca.key"), "key", 0o600)
	put(t, filepath.Join(signing.Dir(dir), "ring"), "ring", 0o600)
	put(t, filepath.Join(dir, "second-factors", "sealing-key.json"), "seal", 0o600)
	ring, err := signing.Open(signing.Dir(dir))
	require.NoError(t, err)
	ours := AcceptKeys(nil, ring.Fingerprint())
	put(t, filepath.Join(dir, "topologies", "site.yaml"), "name: site\n", 0o644)
	put(t, filepath.Join(dir, "agents", "client", "journal"), "not ours", 0o644)
	want := content(t, srv.URL())
	require.Greater(t, len(want), 5)

	// While it works.
	out := filepath.Join(dataDir(t), "b.tar.gz")
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m, err := Create(ctx, Source{DataDir: dir}, out, "v1", at, ring)
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
	_, err = Restore(ctx, out, Source{DataDir: dir}, ours)
	require.ErrorContains(t, err, "has a database already")
	require.NoError(t, srv.Stop(ctx))

	// While it does not work.
	still := filepath.Join(filepath.Dir(out), "still.tar.gz")
	_, err = Create(ctx, Source{DataDir: dir}, still, "v1", at, ring)
	require.NoError(t, err)

	for _, file := range []string{out, still} {
		to := filepath.Join(dataDir(t), "new")
		got, err := Restore(ctx, file, Source{DataDir: to}, ours)
		require.NoError(t, err)
		require.Equal(t, m, got)
		again := start(t, to)
		require.Equal(t, want, content(t, again.URL()))
		// The next start of an orchestrator takes it as it is.
		st, err := store.Open(ctx, again.URL(), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		_, before, err := st.AppendAudit(ctx, auditchain.Entry{At: time.Now(), User: "anna", Action: "A.C", Outcome: "done"})
		require.NoError(t, err)
		require.Equal(t, entry.Hash, before.Hash, "the audit log goes on from its last entry")
		st.Close()
		require.NoError(t, again.Stop(ctx))
		for name, text := range map[string]string{"authority/ca.key": "key", "signing/ring": "ring", "second-factors/sealing-key.json": "seal", "topologies/site.yaml": "name: site\n"} {
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
	elsewhere := dataDir(t)
	srv = start(t, elsewhere)
	defer srv.Stop(context.Background())
	conn, err := pgx.Connect(ctx, srv.URL())
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "CREATE DATABASE given")
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	to := Source{DataDir: filepath.Join(dataDir(t), "keys"), DatabaseURL: srv.DatabaseURL("given")}
	claim, err := postgres.TakeClaim(ctx, to.DatabaseURL, postgres.UserOrchestrator, nil)
	require.NoError(t, err)
	_, err = Restore(ctx, out, to, ours)
	require.ErrorIs(t, err, postgres.ErrInUse)
	require.NoDirExists(t, to.DataDir, "nothing half-done")
	claim.Release()
	_, err = Restore(ctx, out, to, ours)
	require.NoError(t, err)
	require.Equal(t, want, content(t, to.DatabaseURL))
	to.DataDir += "2"
	_, err = Restore(ctx, out, to, ours)
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
			"empty":           {nil, "expected a tar with gzip"},
			"cut":             {b[:len(b)/2], "cut off or damaged"},
			"cut at end":      {b[:len(b)-4], "cut off or damaged"},
			"newer schema":    {rewrite(t, b, ring, func(m *Manifest) { m.Schema += 900 }), "is newer than this program's"},
			"earlier build":   {rewrite(t, b, ring, func(m *Manifest) { m.Schema = 43 }), "an earlier build whose store (migration 43) this program cannot bring up to date"},
			"newer format":    {rewrite(t, b, ring, func(m *Manifest) { m.Format = 3 }), "format 3, expected 2"},
			"format 1":        {archive(t, "manifest.json", `{"format":1,"version":"v0.9"}`, "store.dump", "x"), "restoring one runs commands"},
			"changed":         {replaced(t, b, manifestFile, `"version": "v1"`, `"version": "v2"`), "was changed after it was made"},
			"other rows":      {replaced(t, b, "data/campaigns"+dataSuffix, "", "x"), "its manifest says"},
			"other key file":  {replaced(t, b, "files/authority/ca.key", "key", "kez"), "has the SHA-256"},
			"no signature":    {archive(t, "manifest.json", `{"format":2}`), "there is no manifest.sig in it"},
			"not its rows":    {rewrite(t, b, ring, func(m *Manifest) { m.Tables[0].Rows++ }), "the manifest says"},
			"runs of nothing": {withoutRows(t, b, ring, "campaigns"), "violates foreign key constraint"},
			"other table":     {rewrite(t, b, ring, func(m *Manifest) { m.Tables[0].Name = "pg_authid" }), "which the store of migration"},
			"other columns":   {rewrite(t, b, ring, func(m *Manifest) { m.Tables[0].Columns[0] = "x) FROM PROGRAM 'id'; --" }), "has the columns"},
			"a table missing": {rewrite(t, b, ring, func(m *Manifest) { m.Tables = m.Tables[1:] }), "0 times, expected once"},
			"a file missing":  {rewrite(t, b, ring, func(m *Manifest) { m.Files = append(m.Files, File{Name: "files/authority/x"}) }), "which its manifest lists"},
			"out of folder":   {rewrite(t, b, ring, func(m *Manifest) { m.Files[0].Name = "files/authority/../../../x" }), "does not belong into a backup"},
			"other folder":    {rewrite(t, b, ring, func(m *Manifest) { m.Files[0].Name = "files/postgres/x" }), "does not belong into a backup"},
			"no manifest":     {archive(t, "files/authority/x", "x"), "expected manifest.json, found files/authority/x"},
			"another's":       {rewrite(t, b, other(t), func(*Manifest) {}), "is signed by the orchestrator with the key"},
		} {
			t.Run(name, func(t *testing.T) {
				dir := dataDir(t)
				file, to := filepath.Join(dir, "x"), filepath.Join(dir, "to")
				put(t, file, string(c.content), 0o600)
				_, err := Restore(ctx, file, Source{DataDir: to}, ours)
				require.ErrorContains(t, err, c.want)
				require.NoDirExists(t, to, "nothing half-done")
			})
		}
	})
}

func TestRefusals(t *testing.T) {
	ctx, dir := t.Context(), dataDir(t)
	_, err := Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now(), other(t))
	require.ErrorContains(t, err, "there is no private database in")

	srv := start(t, dir)
	_, err = Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now(), other(t))
	require.ErrorContains(t, err, "is none of linktrial's")
	require.NoError(t, srv.Stop(ctx))

	release, err := postgres.Lock(dir, postgres.UserOrchestrator)
	require.NoError(t, err)
	_, err = Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now(), other(t))
	require.ErrorIs(t, err, postgres.ErrInUse, "an orchestrator that is starting")
	_, err = Restore(ctx, "b", Source{DataDir: dir}, anybody)
	require.ErrorIs(t, err, postgres.ErrInUse, "before anything is looked at")
	release()

	require.NoError(t, os.Chown(dir, 65534, 65534))
	_, err = Create(ctx, Source{DataDir: dir}, filepath.Join(dir, "b"), "v1", time.Now(), other(t))
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
			"backup": func(s Source) error {
				_, err := Create(ctx, s, filepath.Join(dir, "b"), "v1", time.Now(), other(t))
				return err
			},
			"restore": func(s Source) error { _, err := Restore(ctx, filepath.Join(dir, "b"), s, anybody); return err },
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
	put(t, filepath.Join(killed, "store.dump"), "secret", 0o600)
	others := []string{filepath.Join(beside, ".b.tar.gz.writing-2"), filepath.Join(beside, ".c.tar.gz.writing-1")}
	for _, d := range others {
		put(t, filepath.Join(d, "store.dump"), "theirs", 0o600)
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
	_, err = Create(ctx, Source{DataDir: dir}, out, "v1", time.Now(), other(t))
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
		db, err := databaseAt(srv.URL(), func() error { return errors.New("did not stop") })
		require.NoError(t, err)
		_, err = create(ctx, db, dir, at, "v1", time.Now(), other(t))
		require.EqualError(t, err, "did not stop", name)
		b, err := os.ReadFile(at)
		require.Equal(t, old == "", os.IsNotExist(err), name)
		require.Equal(t, old, string(b), name)
		entries, err := os.ReadDir(filepath.Dir(at))
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), 1, name)
	}
}

// Somebody makes a folder while the restore works: it stays, what the restore
// put there goes.
func TestRestoreThatMeetsSomebody(t *testing.T) {
	ctx := t.Context()
	dir, srv := filled(t)
	out := filepath.Join(dataDir(t), "b.tar.gz")
	_, err := Create(ctx, Source{DataDir: dir}, out, "v1", time.Now(), other(t))
	require.NoError(t, err)
	require.NoError(t, srv.Stop(ctx))

	to := dataDir(t)
	killed := filepath.Join(to, scrapPrefix+"1")
	put(t, filepath.Join(killed, "store.dump"), "secret", 0o600)
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
	_, err = Restore(ctx, out, Source{DataDir: to}, anybody)
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

// anybody accepts every key.
func anybody(signature.PublicKey, *Manifest) error { return nil }

// other is another orchestrator's key.
func other(t testing.TB) *signing.Keyring {
	t.Helper()
	k, err := signing.Ephemeral()
	require.NoError(t, err)
	return k
}

// entries are the names and texts of a backup.
func entries(t *testing.T, b []byte) (all []string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		all = append(all, strings.TrimPrefix(h.Name, folder+"/"), string(text))
	}
}

// rewrite packs a backup again with another manifest, signed by a key.
func rewrite(t *testing.T, b []byte, by Signer, change func(*Manifest)) []byte {
	t.Helper()
	all := entries(t, b)
	var m Manifest
	require.NoError(t, json.Unmarshal([]byte(all[1]), &m))
	change(&m)
	doc, err := json.Marshal(m)
	require.NoError(t, err)
	all[1], all[3] = string(doc), by.SignBackup(doc)
	return archive(t, all...)
}

// replaced packs a backup again with another text in one of its files.
func replaced(t *testing.T, b []byte, name, old, with string) []byte {
	t.Helper()
	all := entries(t, b)
	for i := 0; i < len(all); i += 2 {
		if all[i] == name {
			changed := strings.Replace(all[i+1], old, with, 1)
			require.NotEqual(t, all[i+1], changed)
			all[i+1] = changed
		}
	}
	return archive(t, all...)
}

// withoutRows packs a backup again with an empty table, and signs what it holds.
func withoutRows(t *testing.T, b []byte, by Signer, table string) []byte {
	t.Helper()
	var empty bytes.Buffer
	require.NoError(t, gzip.NewWriter(&empty).Close())
	name := dataFolder + "/" + table + dataSuffix
	all := entries(t, b)
	i := slices.Index(all, name)
	require.Positive(t, i)
	all[i+1] = empty.String()
	return rewrite(t, archive(t, all...), by, func(m *Manifest) {
		for i := range m.Tables {
			if m.Tables[i].Name == table {
				m.Tables[i].Rows = 0
			}
		}
		for i := range m.Files {
			if m.Files[i].Name == name {
				sum := sha256.Sum256(empty.Bytes())
				m.Files[i].Bytes, m.Files[i].SHA256 = int64(empty.Len()), hex.EncodeToString(sum[:])
			}
		}
	})
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

// fuzzed is the manifest of a backup with one file.
const fuzzed = `{"format":2,"files":[{"name":"files/authority/ca.key","bytes":1,"mode":384,"sha256":"8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a"}]}`

// Nothing that an archive says leads out of the folder.
func FuzzUnpack(f *testing.F) {
	for _, b := range [][]byte{archive(f, "manifest.json", fuzzed, "manifest.sig", other(f).SignBackup([]byte(fuzzed)), "files/authority/ca.key", "k"), archive(f, "files/authority/../../x", "y")} {
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
		m, err := unpackFrom(&b, into, anybody)
		if err == nil && m.Format != Format {
			t.Errorf("went through: %+v", m)
		}
		entries, err := os.ReadDir(outer)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		inside, err := os.ReadDir(into)
		require.NoError(t, err)
		allowed := map[string]bool{dataFolder: true, filesFolder: true}
		for _, e := range inside {
			require.True(t, allowed[e.Name()], "%s: expected one of %v", e.Name(), slices.Collect(maps.Keys(allowed)))
		}
	})
}
