package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
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
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil
		}
	}
	return fmt.Errorf("no agent works in %s", dir)
}
