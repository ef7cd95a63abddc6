package postgres

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Mkdir makes a data folder, or a folder above one. Every user may enter it whatever the
// umask is: where this process is root, the private database runs as another user. What
// the umask keeps others from reading they still cannot read.
func Mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return os.Chmod(dir, st.Mode().Perm()|0o111)
}

// MkdirAll makes a data folder and the folders above it where there are none, as [Mkdir]
// does.
func MkdirAll(dir string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	err := Mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := MkdirAll(filepath.Dir(dir)); err != nil {
			return err
		}
		err = Mkdir(dir)
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster, or it is no folder
		if st, serr := os.Stat(dir); serr == nil && st.IsDir() {
			return nil
		}
	}
	return err
}
