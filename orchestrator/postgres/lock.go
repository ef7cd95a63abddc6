package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"linktrial/internal/filelock"
)

// ErrInUse reports a data folder or a database that somebody else works with.
var ErrInUse = errors.New("in use")

// User is what works with a data folder, as whoever is kept out is told.
type User string

// The users of a data folder.
const (
	UserOrchestrator User = "orchestrator"
	UserBackup       User = "backup"
	UserRestore      User = "restore"
)

const lockFile = "orchestrator.lock"

// Lock keeps everybody else out of a data folder until release, and makes the
// folder where there is none. The kernel drops the lock with the process,
// however that ends. [ErrInUse] where somebody else has it; the text names who.
func Lock(dir string, as User) (release func(), err error) {
	if err := MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
		if err := filelock.TryLock(f, filelock.Exclusive); err != nil {
			defer f.Close()
			if errors.Is(err, filelock.ErrHeld) {
				return nil, fmt.Errorf("data folder %s is %w by %s", dir, ErrInUse, holder(f))
			}
			return nil, fmt.Errorf("data folder: %w", err)
		}
		// A restore that failed removes the folder that it made, and this file
		// with it: a lock on what has no name any more keeps nobody out.
		ours, err := f.Stat()
		if there, serr := os.Stat(path); err != nil || serr != nil || !os.SameFile(ours, there) {
			f.Close()
			if err == nil && (serr == nil || errors.Is(serr, os.ErrNotExist)) {
				continue
			}
			return nil, fmt.Errorf("data folder: %w", errors.Join(err, serr))
		}
		err = f.Truncate(0)
		if err == nil {
			_, err = f.WriteAt(fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), as), 0)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("data folder: %w", err)
		}
		return func() { filelock.Release(f) }, nil
	}
}

// holder words who has the lock, and what to do.
func holder(f *os.File) string {
	b, _ := io.ReadAll(io.LimitReader(f, 64)) // what cannot be read is not told
	return holderOf(b)
}

// holderOf words what the lock's file has.
func holderOf(b []byte) string {
	pid, as, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	if _, err := strconv.ParseUint(pid, 10, 32); err != nil {
		pid = "not known"
	}
	switch User(as) {
	case UserBackup, UserRestore:
		return fmt.Sprintf("a %s (process %s): wait until it has ended, or choose another folder with --data", as, pid)
	}
	return fmt.Sprintf("another orchestrator (process %s): stop that one, or choose another folder with --data", pid)
}

// RemoveLock removes the lock's file of a folder that is to go as a whole. The
// caller holds the lock.
func RemoveLock(dir string) error { return os.Remove(filepath.Join(dir, lockFile)) }
