// Package scratch makes folders for files that matter only while their process runs. A
// process that is killed leaves its own behind; the next one removes it.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/filelock"
)

// settled is how old a folder is before its lock counts: it is locked just after it is made.
const settled = time.Minute

// Folder is one that was made; its process has a lock on it, which the kernel drops when
// the process has ended, however that happened, and which ends with the last reference
// to the Folder.
type Folder struct {
	Path string
	lock *os.File
}

// New makes a folder that only this user may enter, called PREFIX and a number, in the
// folder for temporary files. Those of the same prefix and user that no process holds any
// more are removed before. The prefix ends with a hyphen, and belongs to one package.
func New(prefix string) (*Folder, error) {
	parent := os.TempDir()
	sweep(parent, prefix, time.Now().Add(-settled))
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	lock, err := os.Open(path)
	if err == nil {
		if err = filelock.TryLock(lock, filelock.Exclusive); err == nil {
			return &Folder{Path: path, lock: lock}, nil
		}
		lock.Close()
	}
	return nil, errors.Join(fmt.Errorf("temporary folder: lock: %w", err), os.Remove(path))
}

// Remove removes the folder with everything in it. Of no folder it does nothing.
func (f *Folder) Remove() error {
	if f == nil {
		return nil
	}
	err := os.RemoveAll(f.Path)
	filelock.Release(f.lock)
	return err
}

// sweep removes folders of a prefix that were last changed before a time and that nobody
// holds. What cannot be removed is left for the next time: it is in nobody's way.
func sweep(parent, prefix string, before time.Time) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // to make one will fail with the reason
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			sweepOne(filepath.Join(parent, e.Name()), before)
		}
	}
}

func sweepOne(path string, before time.Time) {
	// Whoever may write into the parent could have put a link there meanwhile.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() || time.Unix(st.Mtim.Unix()).After(before) {
		f.Close()
		return
	}
	if filelock.TryLock(f, filelock.Exclusive) != nil {
		f.Close()
		return
	}
	_ = os.RemoveAll(path)
	filelock.Release(f)
}
