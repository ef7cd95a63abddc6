package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Restore brings a backup back: into a data folder that has no database yet,
// or into an empty database. An older store is migrated by the next serve. On
// failure the data folder and the database are as they were.
func Restore(ctx context.Context, file string, to Source) (m Manifest, err error) {
	if to.DatabaseURL == "" {
		if _, err := os.Stat(filepath.Join(to.DataDir, "postgres")); err == nil {
			return m, fmt.Errorf("%s has a database already: choose another data folder (--data), or move that one away", to.DataDir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return m, fmt.Errorf("data folder: %w", err)
		}
	}
	for _, sub := range Folders {
		if _, err := os.Stat(filepath.Join(to.DataDir, sub)); err == nil {
			return m, fmt.Errorf("%s has a folder %s already: choose another data folder (--data), or move that one away", to.DataDir, sub)
		}
	}
	if err := to.asOwner(); err != nil {
		return m, err
	}
	made, err := makeFolder(to.DataDir)
	if err != nil {
		return m, err
	}
	// Beside their places first: whatever is wrong with the file shows before anything counts.
	scrap, err := os.MkdirTemp(to.DataDir, ".restore-")
	if err != nil {
		return m, fmt.Errorf("data folder: %w", err)
	}
	var undo []string
	defer func() {
		os.RemoveAll(scrap)
		if err == nil {
			return
		}
		for _, p := range undo {
			os.RemoveAll(p)
		}
		if made {
			os.Remove(filepath.Join(to.DataDir, "orchestrator.lock"))
			os.Remove(to.DataDir) // where nothing else is in it
		}
	}()
	if m, err = unpack(file, scrap); err != nil {
		return m, fmt.Errorf("backup %s: %w", file, err)
	}
	newest, err := newestMigration()
	if err != nil {
		return m, err
	}
	if m.Schema > newest {
		return m, fmt.Errorf("backup %s is of linktrial %s, whose store (migration %d) is newer than this program's (%d): restore it with that version or a later one", file, m.Version, m.Schema, newest)
	}
	private := []string{"postgres", "postgres.new", "postgres-socket", "postgres.log"}
	if to.DatabaseURL == "" {
		for _, p := range private {
			undo = append(undo, filepath.Join(to.DataDir, p))
		}
	}
	if err = to.fill(ctx, filepath.Join(scrap, dumpFile)); err != nil {
		return m, err
	}
	for _, sub := range Folders {
		from := filepath.Join(scrap, filesFolder, sub)
		if _, serr := os.Stat(from); errors.Is(serr, fs.ErrNotExist) {
			continue
		}
		undo = append(undo, filepath.Join(to.DataDir, sub))
		if err = os.Rename(from, filepath.Join(to.DataDir, sub)); err != nil {
			return m, fmt.Errorf("data folder: %w", err)
		}
	}
	return m, nil
}

func makeFolder(dir string) (made bool, err error) {
	if err := os.Mkdir(dir, 0o755); err == nil {
		return true, nil
	} else if !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("data folder: %w", err)
	}
	return false, nil
}

// fill restores a dump in one transaction into a database without tables.
func (s Source) fill(ctx context.Context, dump string) (err error) {
	db, err := s.open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.stop()) }()
	conn, err := pgx.Connect(ctx, db.url)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	var tables int
	err = conn.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')").Scan(&tables)
	if cerr := conn.Close(ctx); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if tables > 0 {
		return fmt.Errorf("the database has %d tables already, expected an empty one", tables)
	}
	return db.run(ctx, "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--dbname="+databaseOf(db.url), dump)
}

func databaseOf(url string) string {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return "" // run says what is wrong with it
	}
	return cfg.Database
}

// maxManifest is more than any has.
const maxManifest = 1 << 16

// unpack writes a backup's files below a folder, and reads its manifest.
func unpack(file, into string) (m Manifest, err error) {
	f, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer f.Close()
	return unpackFrom(f, into)
}

func unpackFrom(in io.Reader, into string) (m Manifest, err error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return m, fmt.Errorf("expected a tar with gzip: %w", err)
	}
	t := tar.NewReader(z)
	seen := map[string]bool{}
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, fmt.Errorf("it is cut off or damaged: %w", err)
		}
		name, below := strings.CutPrefix(h.Name, folder+"/")
		if !below || h.Typeflag != tar.TypeReg || !expected(name) || seen[name] {
			return m, fmt.Errorf("entry %.200q does not belong into a backup", h.Name)
		}
		seen[name] = true
		if name == manifestFile {
			if m, err = readManifest(io.LimitReader(t, maxManifest)); err != nil {
				return m, err
			}
			continue
		}
		if m.Format == 0 {
			return m, fmt.Errorf("expected %s first, found %s", manifestFile, name)
		}
		if err := writeFile(filepath.Join(into, filepath.FromSlash(name)), t, fs.FileMode(h.Mode).Perm()&0o755); err != nil {
			return m, err
		}
	}
	// gzip's own checksum stands at the end.
	if _, err := io.Copy(io.Discard, z); err != nil {
		return m, fmt.Errorf("it is cut off or damaged: %w", err)
	}
	if !seen[dumpFile] {
		return m, fmt.Errorf("there is no %s in it", dumpFile)
	}
	return m, nil
}

// expected says whether a name is one that [Create] writes.
func expected(name string) bool {
	if name == manifestFile || name == dumpFile {
		return true
	}
	if path.Clean(name) != name || strings.ContainsAny(name, "\\\x00") {
		return false
	}
	parts := strings.Split(name, "/")
	return len(parts) >= 3 && parts[0] == filesFolder && slices.Contains(Folders, parts[1])
}

func readManifest(in io.Reader) (Manifest, error) {
	var m Manifest
	if err := json.NewDecoder(in).Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Format != Format {
		return m, fmt.Errorf("%s: format %d, expected %d: the backup was made by another version of linktrial", manifestFile, m.Format, Format)
	}
	return m, nil
}

func writeFile(to string, from io.Reader, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, from); err != nil {
		f.Close()
		return fmt.Errorf("it is cut off or damaged: %w", err)
	}
	return f.Close()
}
