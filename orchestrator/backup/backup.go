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

	"github.com/pressly/goose/v3"

	"linktrial/internal/filelock"
	"linktrial/migrations"
)

// Format is the form of backups that this package writes and reads.
const Format = 1

const (
	folder       = "linktrial-backup"
	manifestFile = "manifest.json"
	dumpFile     = "store.dump"
	filesFolder  = "files"
)

// Folders of a data folder that belong to a backup. Tokens, sockets, locks,
// logs and the journals of this machine's agents do not.
var Folders = []string{"authority", "signing", "topologies"}

// Manifest says what a backup is of.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of linktrial
	Taken   time.Time `json:"taken"`
	// Schema is the number of the newest migration that the store has had.
	Schema     int64 `json:"schema"`
	PostgreSQL int   `json:"postgresql"` // major version of the server
}

// Create writes a backup, which may be read by its owner alone: the
// authority's keys are in it. The orchestrator may be at work. On failure
// there is no file, and one that was there before is as it was.
func Create(ctx context.Context, from Source, out, version string, now time.Time) (Manifest, error) {
	db, err := from.open(ctx)
	if err != nil {
		return Manifest{}, err
	}
	return create(ctx, db, from.DataDir, out, version, now)
}

// create is [Create] from a database that is open, and stops it.
func create(ctx context.Context, db *database, dataDir, out, version string, now time.Time) (m Manifest, err error) {
	stopped := false
	defer func() {
		if !stopped {
			err = errors.Join(err, db.stop())
		}
	}()
	m = Manifest{Format: Format, Version: version, Taken: now.UTC().Truncate(time.Second)}
	if err := m.look(ctx, db); err != nil {
		return m, err
	}
	scrap, remove, err := scrapFor(out)
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	defer remove()
	// pg_dump cannot say beforehand how long its output will be, and a tar wants to know.
	dump, part := filepath.Join(scrap, dumpFile), filepath.Join(scrap, "part")
	if err := db.run(ctx, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file="+dump); err != nil {
		return m, err
	}
	// Whatever goes wrong goes wrong before the file has its name.
	stopped = true
	if err := db.stop(); err != nil {
		return m, err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	err = pack(f, m, dataDir, dump)
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

// look reads what the manifest says of the database.
func (m *Manifest) look(ctx context.Context, db *database) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it was only asked
	var timescale, ours bool
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int / 10000,
		EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb'), to_regclass('goose_db_version') IS NOT NULL`).Scan(&m.PostgreSQL, &timescale, &ours)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if !ours {
		return errors.New("the database is none of linktrial's: it has had no migration")
	}
	if timescale {
		return errors.New("the store is in TimescaleDB, whose tables pg_restore brings back in steps of its own alone: see 'With TimescaleDB' in docs/backup.md")
	}
	if err := conn.QueryRow(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&m.Schema); err != nil {
		return fmt.Errorf("backup: %w", err)
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
