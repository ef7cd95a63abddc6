package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"linktrial/internal/atomicfile"
	"linktrial/internal/filelock"
)

// JournalPath is where an agent with this state folder keeps the journal of a run.
func JournalPath(stateDir, runID string) string {
	return filepath.Join(stateDir, "runs", runID, "journal.jsonl")
}

// folderIdentity is the identity of a state folder, which is made with the first start of
// an agent that works in it. The caller holds the folder's lock.
func folderIdentity(dir string) (string, error) {
	path := filepath.Join(dir, "folder-id")
	id, err := atomicfile.Keep(path, 0o644, rand.Text)
	if err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	if len(id) != len(rand.Text()) || strings.ContainsFunc(id, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }) {
		return "", fmt.Errorf("%s has %q, expected 26 letters and digits: remove the file if no run of this node is open", path, id)
	}
	return id, nil
}

// lock makes sure that one agent at a time works in a state folder. The kernel
// releases the lock however the process ends.
func lock(dir string) (release func(), err error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if err := filelock.TryLock(f, filelock.Exclusive); err != nil {
		defer f.Close()
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, fmt.Errorf("state folder %s cannot be locked: %w", dir, err)
		}
		holder := "another process"
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			holder = "process " + strings.TrimSpace(string(b))
		}
		return nil, fmt.Errorf("another agent (%s) already works in %s: stop it, or give this one a state folder of its own", holder, dir)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return func() { filelock.Release(f) }, nil
}

// Working returns an error where no agent works in any of the state folders
// below dir: an agent holds its folder's lock as long as it works.
func Working(dir string) error {
	locks, err := filepath.Glob(filepath.Join(dir, "*", "lock"))
	if err != nil {
		return err
	}
	for _, path := range locks {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = filelock.TryLock(f, filelock.Shared)
		filelock.Release(f)
		if errors.Is(err, filelock.ErrHeld) {
			return nil
		}
	}
	return fmt.Errorf("no agent works in %s", dir)
}
