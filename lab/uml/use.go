package uml

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"linktrial/internal/filelock"
)

// keepUnused is how long a kernel of another recipe stays in the cache after
// its last use: two versions of the product may take turns on one machine.
const keepUnused = 30 * 24 * time.Hour

// documentName is the file beside a kernel's program that describes it. Who
// boots the kernel holds a shared lock on it, who removes the kernel an
// exclusive one; its time is that of the last use.
const documentName = "kernel.json"

// hold keeps the kernel in the cache until release is called. A kernel from
// elsewhere needs no holding.
func (k Kernel) hold() (release func(), err error) {
	path := filepath.Join(filepath.Dir(k.Path), documentName)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cache of guest kernels: %w", err)
	}
	return k.holdOpened(f)
}

func (k Kernel) holdOpened(f *os.File) (release func(), err error) {
	path := f.Name()
	if err := filelock.Lock(f, filelock.Shared); err != nil {
		f.Close()
		return nil, fmt.Errorf("cache of guest kernels: lock: %w", err)
	}
	// A kernel that was removed while this waited is another file's by now.
	mine, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(path); err == nil && !os.SameFile(mine, there) {
			err = os.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("guest kernel %s is gone from the cache (%w): build it again with 'linktrial lab kernel'", k.Version, err)
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // in a cache that others own their uses count
	return func() { filelock.Release(f) }, nil
}

// prune removes the kernels that were last used before a time and that no process
// holds, but not the one at keep. The cache's lock is held.
func prune(cacheDir, keep string, before time.Time) error {
	files, err := filepath.Glob(filepath.Join(cacheDir, "*", documentName))
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Dir(file) == keep {
			continue
		}
		if err := pruneOne(cacheDir, file, before); err != nil {
			return fmt.Errorf("cache of guest kernels: remove an old one: %w", err)
		}
	}
	return nil
}

func pruneOne(cacheDir, file string, before time.Time) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer filelock.Release(f)
	err = filelock.TryLock(f, filelock.Exclusive)
	if errors.Is(err, filelock.ErrHeld) {
		return nil // another process boots it
	}
	if err != nil {
		return err
	}
	used, err := f.Stat()
	if err != nil || used.ModTime().After(before) {
		return err
	}
	// At once out of sight, and swept by the next build if this one is killed.
	gone, err := os.MkdirTemp(cacheDir, buildPrefix)
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Dir(file), filepath.Join(gone, "kernel")); err != nil {
		return errors.Join(err, os.RemoveAll(gone))
	}
	return os.RemoveAll(gone)
}
