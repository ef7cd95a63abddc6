package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/process"
	"linktrial/orchestrator/postgres"
)

// Source is what to back up, and the place to restore to.
type Source struct {
	DataDir     string
	DatabaseURL string // empty: the private database of DataDir
}

// database is an open way to a database.
type database struct {
	config *pgx.ConnConfig
	// environment is what PostgreSQL's own programs take the way from: arguments,
	// where a URL with its password could stand, can be read by others.
	environment []string
	tools       string // folder
	stop        func() error
}

// passed is what a URL may say besides, and PostgreSQL's programs take from the
// environment (libpq, "Environment Variables").
var passed = map[string]string{
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslcrl": "PGSSLCRL", "sslsni": "PGSSLSNI",
	"ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION", "channel_binding": "PGCHANNELBINDING", "passfile": "PGPASSFILE",
	"connect_timeout": "PGCONNECT_TIMEOUT", "options": "PGOPTIONS",
}

// databaseAt reads a URL. What is wrong with it is said without its text: there
// may be a password in it.
func databaseAt(at, tools string, stop func() error) (*database, error) {
	const form = "the database's address: expected postgres://USER:PASSWORD@HOST:PORT/NAME"
	u, err := url.Parse(at)
	switch {
	case err != nil:
		return nil, errors.New(form + ", and characters of user and password that mean something in a URL as %XX")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return nil, errors.New(form + ", found something that does not begin with postgres://")
	}
	config, err := pgx.ParseConfig(at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", form, err)
	}
	d := &database{config: config, tools: tools, stop: stop, environment: append(os.Environ(), "LC_ALL=C", "PGHOST="+config.Host,
		"PGPORT="+strconv.Itoa(int(config.Port)), "PGUSER="+config.User, "PGPASSWORD="+config.Password, "PGDATABASE="+config.Database)}
	for key, variable := range passed {
		if v := u.Query().Get(key); v != "" {
			d.environment = append(d.environment, variable+"="+v)
		}
	}
	return d, nil
}

// given is the database of a source with a URL.
func (s Source) given() (*database, error) {
	tools, err := postgres.ToolsDir("")
	if err != nil {
		return nil, err
	}
	return databaseAt(s.DatabaseURL, tools, func() error { return nil })
}

// private starts the private database of a folder. The caller holds the lock
// of what it is in.
func private(ctx context.Context, dir string) (*database, error) {
	srv, err := postgres.Start(ctx, postgres.Config{DataDir: dir})
	if err != nil {
		return nil, err
	}
	stop := func() error { return srv.Stop(context.WithoutCancel(ctx)) }
	tools, err := postgres.ToolsDir(dir)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	d, err := databaseAt(srv.URL(), tools, stop)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return d, nil
}

// open connects to the database that runs, or starts the private one for as
// long as it is needed.
func (s Source) open(ctx context.Context) (*database, error) {
	if s.DatabaseURL != "" {
		return s.given()
	}
	if _, err := os.Stat(filepath.Join(s.DataDir, privateFolder)); err != nil {
		return nil, fmt.Errorf("there is no private database in %s, expected the data folder of an orchestrator (--data), or --database", s.DataDir)
	}
	at, running, err := postgres.RunningURL(ctx, s.DataDir)
	if err != nil {
		return nil, err
	}
	if running {
		tools, err := postgres.ToolsDir(s.DataDir)
		if err != nil {
			return nil, err
		}
		return databaseAt(at, tools, func() error { return nil })
	}
	if err := s.asOwner(); err != nil {
		return nil, err
	}
	release, err := postgres.Lock(s.DataDir, postgres.UserBackup)
	if err != nil {
		return nil, err
	}
	d, err := private(ctx, s.DataDir)
	if err != nil {
		release()
		return nil, err
	}
	stop := d.stop
	d.stop = func() error {
		defer release()
		return stop()
	}
	return d, nil
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

// connect opens one connection.
func (d *database) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, d.config.Copy())
}

// run runs one of PostgreSQL's programs on the database.
func (d *database) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(d.tools, program), args...)
	cmd.Env = d.environment
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := process.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	said := strings.TrimSpace(out.String())
	if said == "" {
		said = err.Error()
	}
	return fmt.Errorf("%s: %s", program, strings.ReplaceAll(said, "\n", "; "))
}
