package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"linktrial/internal/filelock"
)

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
