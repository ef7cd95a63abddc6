package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/migrations"
	"linktrial/orchestrator/postgres"
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

// Source is what to back up, and the place to restore to.
type Source struct {
	DataDir     string
	DatabaseURL string // empty: the private database of DataDir
}

// database is an open way to the database of a source.
type database struct {
	url   string
	tools string
	stop  func() error
}

// ErrInUse reports a data folder with an orchestrator at work.
var ErrInUse = errors.New("an orchestrator works with the data folder")

// lock takes the orchestrator's lock of the data folder.
func lock(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "orchestrator.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w %s: stop it first", ErrInUse, dir)
		}
		return nil, fmt.Errorf("data folder: %w", err)
	}
	return func() { f.Close() }, nil
}

// asOwner refuses root where the data folder is another's: the private database
// would be made, or be started, as a user who may not read it.
func (s Source) asOwner() error {
	st, err := os.Stat(s.DataDir)
	if os.Geteuid() != 0 || s.DatabaseURL != "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || sys.Uid == 0 {
		return nil
	}
	name := strconv.Itoa(int(sys.Uid))
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return fmt.Errorf("the data folder %s belongs to user %s: do this as that user (sudo -u %s …)", s.DataDir, name, name)
}

// open connects to the database that runs, or starts the private one for as
// long as it is needed.
func (s Source) open(ctx context.Context, running bool) (*database, error) {
	if s.DatabaseURL != "" {
		tools, err := postgres.ToolsDir("")
		return &database{s.DatabaseURL, tools, func() error { return nil }}, err
	}
	tools, err := postgres.ToolsDir(s.DataDir)
	if err != nil {
		return nil, err
	}
	if running {
		at, up, err := postgres.RunningURL(ctx, s.DataDir)
		if err != nil {
			return nil, err
		}
		if up {
			return &database{at, tools, func() error { return nil }}, nil
		}
	}
	if err := s.asOwner(); err != nil {
		return nil, err
	}
	release, err := lock(s.DataDir)
	if err != nil {
		return nil, err
	}
	srv, err := postgres.Start(ctx, postgres.Config{DataDir: s.DataDir})
	if err != nil {
		release()
		return nil, err
	}
	return &database{srv.URL(), tools, func() error {
		defer release()
		return srv.Stop(context.WithoutCancel(ctx))
	}}, nil
}

// Create writes a backup, which may be read by its owner alone: the
// authority's keys are in it. The orchestrator may be at work. On failure
// there is no file.
func Create(ctx context.Context, from Source, out, version string, now time.Time) (m Manifest, err error) {
	if from.DatabaseURL == "" {
		if _, err := os.Stat(filepath.Join(from.DataDir, "postgres")); err != nil {
			return m, fmt.Errorf("there is no private database in %s, expected the data folder of an orchestrator (--data), or --database", from.DataDir)
		}
	}
	db, err := from.open(ctx, true)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, db.stop()) }()
	m = Manifest{Format: Format, Version: version, Taken: now.UTC().Truncate(time.Second)}
	if err := m.look(ctx, db.url); err != nil {
		return m, err
	}
	part := out + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if f.Close(); err != nil {
			os.Remove(part)
		}
	}()
	// pg_dump cannot say beforehand how long its output will be, and a tar wants to know.
	dump := out + ".dump"
	defer os.Remove(dump)
	if err := db.run(ctx, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file="+dump); err != nil {
		return m, err
	}
	if err := pack(f, m, from.DataDir, dump); err != nil {
		return m, err
	}
	if err := f.Sync(); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	if err := os.Rename(part, out); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	return m, nil
}

// look reads what the manifest says of the database.
func (m *Manifest) look(ctx context.Context, at string) error {
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
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

// run runs one of PostgreSQL's programs on the database. The URL goes by the
// environment, because it may hold a password and others can read arguments.
func (d *database) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(d.tools, program), args...)
	cfg, err := pgx.ParseConfig(d.url)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGHOST="+cfg.Host, "PGPORT="+strconv.Itoa(int(cfg.Port)), "PGUSER="+cfg.User, "PGPASSWORD="+cfg.Password, "PGDATABASE="+cfg.Database)
	if u, err := url.Parse(d.url); err == nil {
		for _, k := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey"} {
			if v := u.Query().Get(k); v != "" {
				cmd.Env = append(cmd.Env, "PG"+strings.ToUpper(k)+"="+v)
			}
		}
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	said := strings.TrimSpace(string(out))
	if said == "" {
		said = err.Error()
	}
	return fmt.Errorf("%s: %s", program, strings.ReplaceAll(said, "\n", "; "))
}

func pack(out io.Writer, m Manifest, dataDir, dump string) error {
	z := gzip.NewWriter(out)
	t := tar.NewWriter(z)
	doc, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	add := func(name string, size int64, mode fs.FileMode, from io.Reader) error {
		err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, name), Size: size, Mode: int64(mode.Perm()), ModTime: m.Taken, Format: tar.FormatPAX})
		if err == nil {
			_, err = io.Copy(t, from)
		}
		if err != nil {
			return fmt.Errorf("backup: %s: %w", name, err)
		}
		return nil
	}
	if err := add(manifestFile, int64(len(doc)), 0o600, bytes.NewReader(doc)); err != nil {
		return err
	}
	file := func(name, from string) error {
		f, err := os.Open(from)
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		return add(name, st.Size(), st.Mode(), f)
	}
	for _, sub := range Folders {
		err := filepath.WalkDir(filepath.Join(dataDir, sub), func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // nothing of it, or gone meanwhile
			}
			if err != nil {
				return fmt.Errorf("backup: %w", err)
			}
			if !d.Type().IsRegular() {
				return nil
			}
			rel, err := filepath.Rel(dataDir, p)
			if err != nil {
				return fmt.Errorf("backup: %w", err)
			}
			return file(path.Join(filesFolder, filepath.ToSlash(rel)), p)
		})
		if err != nil {
			return err
		}
	}
	if err := file(dumpFile, dump); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := z.Close(); err != nil {
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
		digits, _, _ := strings.Cut(f, "_")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s: expected a number in front", f)
		}
		newest = max(newest, n)
	}
	return newest, nil
}
