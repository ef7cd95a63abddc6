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

	"linktrial/orchestrator/postgres"
)

// Restore restores a backup into a data folder that has no database yet, or into an
// empty database. A store of an older version is migrated by the next serve. On
// failure the data folder and the database are as they were.
func Restore(ctx context.Context, file string, to Source) (m Manifest, err error) {
	if err := to.asOwner(); err != nil {
		return m, err
	}
	var given *database
	if to.DatabaseURL != "" {
		if given, err = to.given(); err != nil {
			return m, err
		}
	}
	made, err := makeFolder(to.DataDir)
	if err != nil {
		return m, err
	}
	// Nobody else uses the folder from here on: it does not change between the
	// checks below and the end.
	release, err := postgres.Lock(to.DataDir, postgres.UserRestore)
	if err != nil {
		return m, err
	}
	defer release()
	r := &restoring{to: to, given: given}
	defer func() {
		if err != nil {
			r.undo(made)
		}
	}()
	if err = to.vacant(); err != nil {
		return m, err
	}
	// Everything is unpacked in a folder beside its place first: errors show before
	// anything is changed, and a restore that is killed has restored nothing.
	if r.scrap, err = makeScrap(to.DataDir); err != nil {
		return m, fmt.Errorf("data folder: %w", err)
	}
	defer os.RemoveAll(r.scrap)
	if m, err = unpackKnown(file, r.scrap); err != nil {
		return m, err
	}
	return m, r.install(ctx)
}

// unpackKnown unpacks a backup, and refuses one of a newer version's store.
func unpackKnown(file, into string) (Manifest, error) {
	m, err := unpack(file, into)
	if err != nil {
		return m, fmt.Errorf("backup %s: %w", file, err)
	}
	newest, err := newestMigration()
	if err != nil {
		return m, err
	}
	if m.Schema > newest {
		return m, fmt.Errorf("backup %s is of linktrial %s, whose store (migration %d) is newer than this program's (%d): restore it with that version or a later one", file, m.Version, m.Schema, newest)
	}
	return m, nil
}

// restoring is a restore in a data folder whose lock it holds.
type restoring struct {
	to     Source
	given  *database // nil: a private one is made
	scrap  string    // what the backup was unpacked to
	placed []string  // what was moved into the data folder
}

// install fills the database, and moves the files to their places. Where the
// database is not private it is filled last, in one transaction: that is what
// cannot be undone.
func (r *restoring) install(ctx context.Context) error {
	dump := filepath.Join(r.scrap, dumpFile)
	if r.given == nil {
		own, err := private(ctx, r.scrap)
		if err != nil {
			return err
		}
		if err := errors.Join(own.fill(ctx, dump), own.stop()); err != nil {
			return err
		}
	}
	for _, sub := range Folders {
		from := filepath.Join(r.scrap, filesFolder, sub)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := r.place(from, sub); err != nil {
			return err
		}
	}
	if r.given == nil {
		return r.place(filepath.Join(r.scrap, privateFolder), privateFolder)
	}
	claim, err := postgres.TakeClaim(ctx, r.to.DatabaseURL, postgres.UserRestore, nil)
	if err != nil {
		return err
	}
	defer claim.Release()
	return r.given.fill(ctx, dump)
}

// place moves a folder into the data folder.
func (r *restoring) place(from, name string) error {
	to := filepath.Join(r.to.DataDir, name)
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	r.placed = append(r.placed, to) // only now: what was there before is not to be undone
	return nil
}

// undo leaves the data folder as it was; made says that there was none.
func (r *restoring) undo(made bool) {
	for _, p := range r.placed {
		os.RemoveAll(p)
	}
	if made {
		_ = postgres.RemoveLock(r.to.DataDir)
		_ = os.Remove(r.to.DataDir) // where nothing else is in it
	}
}

// privateFolder is the private database's in a data folder.
const privateFolder = "postgres"

// vacant refuses a data folder that has already what a backup contains.
func (s Source) vacant() error {
	if s.DatabaseURL == "" {
		if _, err := os.Stat(filepath.Join(s.DataDir, privateFolder)); err == nil {
			return fmt.Errorf("%s has a database already: choose another data folder (--data), or move that one away", s.DataDir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	for _, sub := range Folders {
		if _, err := os.Stat(filepath.Join(s.DataDir, sub)); err == nil {
			return fmt.Errorf("%s has a folder %s already: choose another data folder (--data), or move that one away", s.DataDir, sub)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	return nil
}

const scrapPrefix = ".restore-"

// makeScrap makes a folder in a data folder whose lock the caller holds, and
// removes those that killed restores left.
func makeScrap(dataDir string) (string, error) {
	entries, err := os.ReadDir(dataDir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), scrapPrefix) {
			if err := os.RemoveAll(filepath.Join(dataDir, e.Name())); err != nil {
				return "", err
			}
		}
	}
	dir, err := os.MkdirTemp(dataDir, scrapPrefix+"*")
	if err != nil {
		return "", err
	}
	// The user that the private database runs as must be able to reach its
	// folder. The other files are readable only by their owner.
	return dir, os.Chmod(dir, 0o711)
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
func (d *database) fill(ctx context.Context, dump string) error {
	conn, err := d.connect(ctx)
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
	return d.run(ctx, "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--dbname="+d.config.Database, dump)
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
	// gzip's own checksum is at the end.
	if _, err := io.Copy(io.Discard, z); err != nil {
		return m, fmt.Errorf("it is cut off or damaged: %w", err)
	}
	if !seen[dumpFile] {
		return m, fmt.Errorf("there is no %s in it", dumpFile)
	}
	return m, nil
}

// expected reports whether a name is one that [Create] writes.
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
	return errors.Join(f.Sync(), f.Close())
}
