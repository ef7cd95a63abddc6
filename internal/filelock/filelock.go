// Package filelock locks files against other processes (flock(2)). The kernel drops a
// lock when its process has ended, however that happened.
package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld reports that somebody else has a lock that excludes the one asked for.
var ErrHeld = errors.New("locked by another process")

// Mode is who else may have a lock.
type Mode int

const (
	Exclusive Mode = unix.LOCK_EX // nobody
	Shared    Mode = unix.LOCK_SH // others with Shared
)

// Lock waits until f is locked.
func Lock(f *os.File, m Mode) error { return flock(f, int(m)) }

// TryLock locks f, or returns [ErrHeld] at once.
func TryLock(f *os.File, m Mode) error {
	err := flock(f, int(m)|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// Release unlocks and closes f. To close it would not be enough: a child process that is
// just being started has a copy of it until its exec, and with it the lock.
func Release(f *os.File) {
	_ = flock(f, unix.LOCK_UN) // of an open file it does not fail
	f.Close()
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
