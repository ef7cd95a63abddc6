package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"linktrial/internal/process"
)

// templateVariable names a folder for what initdb has made, which later databases are
// copies of: tests make a hundred of them, and initdb takes one and a half seconds of
// processor time. One version of PostgreSQL uses a folder.
const templateVariable = "LINKTRIAL_TEST_DATABASE_TEMPLATE"

// initialise makes the database beside its place and then puts it there, so
// that an interrupted first start leaves nothing half-made.
func (s *Server) initialise(ctx context.Context) error {
	fresh := s.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	template := os.Getenv(templateVariable)
	err := fs.ErrNotExist
	if template != "" {
		err = copyFolder(ctx, template, fresh)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.initdb(ctx, fresh); err == nil && template != "" {
			err = keepTemplate(ctx, fresh, template)
		}
	}
	if err != nil {
		os.RemoveAll(fresh)
		return err
	}
	if err := os.Rename(fresh, s.data); err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	return nil
}

func (s *Server) initdb(ctx context.Context, fresh string) error {
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	if err := s.owner.own(fresh); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.bin.dir, "initdb"), "--pgdata", fresh, "--username", superuser,
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--data-checksums")
	cmd.Env = append(os.Environ(), s.bin.environment()...)
	s.owner.become(cmd)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Dir = fresh
	if err := process.Start(cmd); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("initdb could not make the database: %s", lastLine(out.String()))
	}
	return nil
}

// keepTemplate keeps a database, which nothing has used, as the one that others copy.
func keepTemplate(ctx context.Context, database, template string) error {
	scrap, err := os.MkdirTemp(filepath.Dir(template), "linktrial-template-")
	if err != nil {
		return fmt.Errorf("template of databases: %w", err)
	}
	defer os.RemoveAll(scrap)
	part := filepath.Join(scrap, Folder)
	if err := copyFolder(ctx, database, part); err != nil {
		return err
	}
	if err := os.Rename(part, template); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("template of databases: %w", err)
	}
	return nil // where another process was first, its template serves
}

// copyFolder copies a folder with owners and rights. It fails with [fs.ErrNotExist] where
// there is none.
func copyFolder(ctx context.Context, from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("template of databases: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("template of databases: %w: %s", err, lastLine(string(out))))
	}
	return nil
}
