package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"

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
	stop   func() error
}

// databaseAt reads a URL. What is wrong with it is said without its text: there
// may be a password in it.
func databaseAt(at string, stop func() error) (*database, error) {
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
	return &database{config: config, stop: stop}, nil
}

// given is the database of a source with a URL.
func (s Source) given() (*database, error) {
	return databaseAt(s.DatabaseURL, func() error { return nil })
}

// private starts the private database of a folder. The caller holds the lock
// of what it is in.
func private(ctx context.Context, dir string) (*database, error) {
	srv, err := postgres.Start(ctx, postgres.Config{DataDir: dir})
	if err != nil {
		return nil, err
	}
	stop := func() error { return srv.Stop(context.WithoutCancel(ctx)) }
	d, err := databaseAt(srv.URL(), stop)
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
		return databaseAt(at, func() error { return nil })
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
