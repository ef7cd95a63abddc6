package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/internal/filelock"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first, second filelock.Mode
		held          bool
	}{
		{filelock.Exclusive, filelock.Exclusive, true},
		{filelock.Exclusive, filelock.Shared, true},
		{filelock.Shared, filelock.Exclusive, true},
		{filelock.Shared, filelock.Shared, false},
	} {
		path := filepath.Join(t.TempDir(), "lock")
		first, second := open(t, path), open(t, path)
		if err := filelock.Lock(first, tt.first); err != nil {
			t.Fatal(err)
		}
		if err := filelock.TryLock(second, tt.second); errors.Is(err, filelock.ErrHeld) != tt.held {
			t.Errorf("%v after %v: %v, expected held: %v", tt.second, tt.first, err, tt.held)
		}
		filelock.Release(first)
		if err := filelock.TryLock(second, filelock.Exclusive); err != nil {
			t.Errorf("after Release: %v", err)
		}
	}
}

// A copy of the descriptor, as a child process has between fork and exec, does not keep
// the lock.
func TestReleaseWithCopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f := open(t, path)
	if err := filelock.Lock(f, filelock.Exclusive); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	filelock.Release(f)
	if err := filelock.TryLock(open(t, path), filelock.Exclusive); err != nil {
		t.Errorf("the copy still has the lock: %v", err)
	}
}
