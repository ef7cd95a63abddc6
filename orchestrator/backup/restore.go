package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"linktrial/internal/signature"
	"linktrial/internal/unit"
	"linktrial/migrations"
	"linktrial/orchestrator/postgres"
)

// Accept decides about the key that signed a backup.
type Accept func(key signature.PublicKey, m *Manifest) error

// AcceptKeys accepts keys that are trusted, or have one of the fingerprints; nil for the
// rest of them is their refusal.
func AcceptKeys(trusted signature.Keys, fingerprints ...string) Accept {
	return func(k signature.PublicKey, m *Manifest) error {
		if trusted[k.ID()] == k || slices.Contains(fingerprints, k.Fingerprint()) {
			return nil
		}
		return &ForeignError{Key: k, Manifest: m}
	}
}

// ForeignError reports a backup that is signed, and by a key that nobody said to trust.
type ForeignError struct {
	Key      signature.PublicKey
	Manifest *Manifest
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the backup of linktrial %s at %s is signed by the orchestrator with the key %s, which you did not name as one to trust: compare it with the one that 'linktrial backup create' printed, then repeat with --accept-foreign and this fingerprint, or with --trusted-keys and a file of that orchestrator's public keys",
		e.Manifest.Version, unit.Moment(e.Manifest.Taken), e.Key.Fingerprint())
}

// Restore restores a backup into a data folder that has no database yet, or into an
// empty database. A store of an older version is migrated by the next serve. On
// failure the data folder and the database are as they were.
//
// accept is asked whether the key that signed the backup is to be trusted, before
// anything else of the file is read; its error ends the restore.
func Restore(ctx context.Context, file string, to Source, accept Accept) (m Manifest, err error) {
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
	if m, err = unpackKnown(file, r.scrap, accept); err != nil {
		return m, err
	}
	return m, r.install(ctx, &m)
}

// unpackKnown unpacks a backup, and refuses one whose store this program cannot make.
func unpackKnown(file, into string, accept Accept) (Manifest, error) {
	m, err := unpack(file, into, accept)
	if err != nil {
		return m, fmt.Errorf("backup %s: %w", file, err)
	}
	newest, err := newestMigration()
	if err != nil {
		return m, err
	}
	if migrations.Retired(m.Schema) {
		return m, fmt.Errorf("backup %s is of linktrial %s, an earlier build whose store (migration %d) this program cannot bring up to date (its own is migration %d): restore it with that build, save its campaigns there ('linktrial results CAMPAIGN --format json'), and import the files here ('linktrial import FILE')", file, m.Version, m.Schema, newest)
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
func (r *restoring) install(ctx context.Context, m *Manifest) error {
	if r.given == nil {
		own, err := private(ctx, r.scrap)
		if err != nil {
			return err
		}
		if err := errors.Join(own.fill(ctx, m, r.scrap), own.stop()); err != nil {
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
	return r.given.fill(ctx, m, r.scrap)
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
	if err := postgres.Mkdir(dir); err == nil {
		return true, nil
	} else if !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("data folder: %w", err)
	}
	return false, nil
}

// fill makes the store of a backup in a database without tables, in one transaction:
// the schema from this program's migrations, and then rows. Nothing that the backup
// holds is executed.
func (d *database) fill(ctx context.Context, m *Manifest, from string) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what counts is the commit
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var tables int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p') AND s.nspname NOT IN ('pg_catalog', 'information_schema')
				AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`).Scan(&tables); err != nil {
			return err
		}
		if tables > 0 {
			return fmt.Errorf("the database has %d tables already, expected an empty one", tables)
		}
		if err := makeSchema(ctx, tx, m.Schema); err != nil {
			return err
		}
		return load(ctx, tx, m, from)
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// maxManifest and maxSignature are more than any has, in bytes.
const (
	maxManifest  = 4 << 20
	maxSignature = 1 << 10
)

// unpack writes a backup's files below a folder, and reads its manifest.
func unpack(file, into string, accept Accept) (m Manifest, err error) {
	f, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer f.Close()
	return unpackFrom(f, into, accept)
}

func unpackFrom(in io.Reader, into string, accept Accept) (m Manifest, err error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return m, fmt.Errorf("expected a tar with gzip: %w", err)
	}
	u := &unpacking{tar: tar.NewReader(z), into: into, files: map[string]*File{}}
	if err := u.manifest(accept); err != nil {
		return u.m, err
	}
	for {
		h, name, err := u.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u.m, err
		}
		if err := u.file(h, name); err != nil {
			return u.m, err
		}
	}
	// gzip's own checksum is at the end.
	if _, err := io.Copy(io.Discard, z); err != nil {
		return u.m, fmt.Errorf("it is cut off or damaged: %w", err)
	}
	for name := range u.files {
		return u.m, fmt.Errorf("there is no %s in it, which its manifest lists", name)
	}
	return u.m, nil
}

// unpacking is an archive that is being read.
type unpacking struct {
	tar   *tar.Reader
	into  string
	m     Manifest
	files map[string]*File // that are still to come
}

// next is the next entry and its name in a backup.
func (u *unpacking) next() (*tar.Header, string, error) {
	h, err := u.tar.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", fmt.Errorf("it is cut off or damaged: %w", err)
	}
	if err != nil {
		return nil, "", err
	}
	name, below := strings.CutPrefix(h.Name, folder+"/")
	if !below || h.Typeflag != tar.TypeReg || !expected(name) {
		return nil, "", fmt.Errorf("entry %.200q does not belong into a backup", h.Name)
	}
	return h, name, nil
}

// small reads the next entry, which must have a name.
func (u *unpacking) small(want string, most int64) ([]byte, error) {
	_, name, err := u.next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is no %s in it", want)
	}
	if err != nil {
		return nil, err
	}
	if name != want {
		return nil, fmt.Errorf("expected %s, found %s", want, name)
	}
	b, err := io.ReadAll(io.LimitReader(u.tar, most+1))
	if err != nil {
		return nil, fmt.Errorf("it is cut off or damaged: %w", err)
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", want, most)
	}
	return b, nil
}

// manifest reads the manifest and its signature, which come first, and asks whether the
// key that signed is to be trusted: nothing after it is read otherwise.
func (u *unpacking) manifest(accept Accept) error {
	b, err := u.small(manifestFile, maxManifest)
	if err != nil {
		return err
	}
	if u.m, err = readManifest(b); err != nil {
		return err
	}
	signed, err := u.small(signatureFile, maxSignature)
	if err != nil {
		return err
	}
	key, err := signature.VerifyBackup(b, string(signed))
	if err != nil {
		return err
	}
	for i := range u.m.Files {
		f := &u.m.Files[i]
		if !expected(f.Name) || u.files[f.Name] != nil {
			return fmt.Errorf("%s lists %.200q, which does not belong into a backup, or lists it twice", manifestFile, f.Name)
		}
		u.files[f.Name] = f
	}
	return accept(key, &u.m)
}

// file writes one entry, which must be what the manifest says.
func (u *unpacking) file(h *tar.Header, name string) error {
	f := u.files[name]
	if f == nil {
		return fmt.Errorf("entry %.200q is not in its manifest, or is in it twice", h.Name)
	}
	delete(u.files, name)
	if h.Size != f.Bytes {
		return fmt.Errorf("%s has %d bytes, its manifest says %d", name, h.Size, f.Bytes)
	}
	sum := sha256.New()
	if err := writeFile(filepath.Join(u.into, filepath.FromSlash(name)), io.TeeReader(u.tar, sum), f.Mode.Perm()&0o755); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%s has the SHA-256 %s, its manifest says %.64s: the backup was changed or is damaged", name, got, f.SHA256)
	}
	return nil
}

// expected reports whether a name is one that [Create] writes.
func expected(name string) bool {
	if name == manifestFile || name == signatureFile {
		return true
	}
	if table, ok := strings.CutPrefix(name, dataFolder+"/"); ok {
		table, ok = strings.CutSuffix(table, dataSuffix)
		return ok && table != "" && strings.Trim(table, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	}
	if path.Clean(name) != name || strings.ContainsAny(name, "\\\x00") {
		return false
	}
	parts := strings.Split(name, "/")
	return len(parts) >= 3 && parts[0] == filesFolder && slices.Contains(Folders, parts[1])
}

func readManifest(b []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Format == 1 {
		return m, fmt.Errorf("%s: format 1, expected %d: backups of that format are not signed, and restoring one runs commands that are written in it. Restore it with the version that made it (%.50q) on a machine of its own, save its campaigns there ('linktrial results CAMPAIGN --format json'), and import the files here ('linktrial import FILE')", manifestFile, Format, m.Version)
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
