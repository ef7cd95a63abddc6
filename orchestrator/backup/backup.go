package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"linktrial/internal/filelock"
	"linktrial/migrations"
)

// Format is the form of backups that this package writes and reads. Format 1 held a dump
// of pg_dump, whose restoring runs what is written in it.
const Format = 2

const (
	folder        = "linktrial-backup"
	manifestFile  = "manifest.json"
	signatureFile = "manifest.sig"
	dataFolder    = "data"
	dataSuffix    = ".copy.gz"
	filesFolder   = "files"
)

// Folders of a data folder that belong to a backup. Tokens, sockets, locks,
// logs and the journals of this machine's agents do not.
var Folders = []string{"authority", "radio-profiles", "second-factors", "signing", "topologies"}

// Manifest says what a backup is of.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of linktrial
	Taken   time.Time `json:"taken"`
	// Schema is the number of the newest migration that the store has had.
	Schema     int64 `json:"schema"`
	PostgreSQL int   `json:"postgresql"` // major version of the server
	// Tables lists the tables whose rows the backup has; Files lists the files in it, but
	// for the manifest and its signature.
	Tables []Table `json:"tables"`
	Files  []File  `json:"files"`
}

// Table is a table of the store whose rows are in data/NAME.copy.gz, as PostgreSQL's
// COPY writes text.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
}

// File is an entry of the archive.
type File struct {
	Name   string      `json:"name"`
	Bytes  int64       `json:"bytes"`
	Mode   fs.FileMode `json:"mode"`
	SHA256 string      `json:"sha256"`
}

// Signer signs manifests (orchestrator/security/signing.Keyring).
type Signer interface {
	SignBackup(manifest []byte) string
}

// Create writes a backup, which may be read by its owner alone: the
// authority's keys are in it. The orchestrator may be at work. On failure
// there is no file, and one that was there before is as it was.
func Create(ctx context.Context, from Source, out, version string, now time.Time, by Signer) (Manifest, error) {
	db, err := from.open(ctx)
	if err != nil {
		return Manifest{}, err
	}
	return create(ctx, db, from.DataDir, out, version, now, by)
}

// create is [Create] from a database that is open, and stops it.
func create(ctx context.Context, db *database, dataDir, out, version string, now time.Time, by Signer) (m Manifest, err error) {
	stopped := false
	defer func() {
		if !stopped {
			err = errors.Join(err, db.stop())
		}
	}()
	m = Manifest{Format: Format, Version: version, Taken: now.UTC().Truncate(time.Second)}
	scrap, remove, err := scrapFor(out)
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	defer remove()
	// COPY cannot say beforehand how long its output will be, and a tar wants to know.
	if err := m.readStore(ctx, db, scrap); err != nil {
		return m, err
	}
	part := filepath.Join(scrap, "part")
	// Whatever goes wrong goes wrong before the file has its name.
	stopped = true
	if err := db.stop(); err != nil {
		return m, err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	err = pack(f, &m, dataDir, scrap, by)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return m, err
	}
	if err := os.Rename(part, out); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	return m, nil
}

// scrapFor makes a folder beside a file to come, which nobody else may look
// into, and removes what backups to the same file left there when they were
// killed. A living one is known by its lock on the folder.
func scrapFor(out string) (dir string, remove func(), err error) {
	if st, err := os.Stat(out); err == nil && !st.Mode().IsRegular() {
		return "", nil, fmt.Errorf("%s is there and no regular file, expected the name of the file to write", out)
	}
	beside, prefix := filepath.Dir(out), "."+filepath.Base(out)+".writing-"
	entries, err := os.ReadDir(beside)
	if err != nil {
		return "", nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		left := filepath.Join(beside, e.Name())
		if release, err := lockFolder(left); err == nil {
			if err := os.RemoveAll(left); err != nil {
				return "", nil, err
			}
			release()
		}
	}
	if dir, err = os.MkdirTemp(beside, prefix+"*"); err != nil { // of mode 0700
		return "", nil, err
	}
	release, err := lockFolder(dir)
	if err != nil {
		// A file system without locks: a leftover stays there, and nobody takes
		// this one for a leftover.
		release = func() {}
	}
	return dir, func() {
		os.RemoveAll(dir)
		release()
	}, nil
}

func lockFolder(dir string) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := filelock.TryLock(f, filelock.Exclusive); err != nil {
		f.Close()
		return nil, err
	}
	return func() { filelock.Release(f) }, nil
}

// readStore reads the database as it is at one moment: what the manifest says of it,
// and the rows of its tables into files of a folder.
func (m *Manifest) readStore(ctx context.Context, db *database, into string) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it was only asked
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := m.look(ctx, tx); err != nil {
		return err
	}
	if m.Tables, err = tablesOf(ctx, tx); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	for i := range m.Tables {
		if err := m.Tables[i].write(ctx, conn, into); err != nil {
			return fmt.Errorf("backup: table %s: %w", m.Tables[i].Name, err)
		}
	}
	return nil
}

// look reads what the manifest says of the database.
func (m *Manifest) look(ctx context.Context, tx pgx.Tx) error {
	var ours bool
	err := tx.QueryRow(ctx, `SELECT current_setting('server_version_num')::int / 10000, to_regclass('goose_db_version') IS NOT NULL`).Scan(&m.PostgreSQL, &ours)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if !ours {
		return errors.New("the database is none of linktrial's: it has had no migration")
	}
	if err := tx.QueryRow(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&m.Schema); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if migrations.Retired(m.Schema) {
		return fmt.Errorf("the database was made by an earlier build of linktrial (migration %d), and no program from now on can restore a backup of it: make the backup with that build", m.Schema)
	}
	return nil
}

// newestMigration is what this program's store goes up to.
func newestMigration() (int64, error) {
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	newest := int64(0)
	for _, f := range files {
		n, err := goose.NumericComponent(f)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", f, err)
		}
		newest = max(newest, n)
	}
	return newest, nil
}
