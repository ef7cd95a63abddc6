// Package atomicfile replaces a small file so that readers, also after a crash,
// find the old content or the new one and nothing between. Comes
// in: a path, content, a mode. Goes out: the file. [SetAside] keeps one that cannot be
// read.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// prefix begins the name of a file that is not finished. The dot hides it from
// programs that list folders; code that lists dot files checks with [Unfinished].
const prefix = ".new-"

// Write puts a file in place with exactly this mode, whatever the umask, and
// returns when it is on disk. Until it has its name nobody but the owner may
// read it. The folder must exist. A link at path is replaced, not followed.
// Errors wrap those of package os; the old file is as it was then, unless only
// the folder could not be written to disk.
func Write(path string, content []byte, mode os.FileMode) error {
	f, err := Create(path, mode)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Commit()
}

// Keep returns the line that a file has, without spaces around it, and makes the file
// with a line of fresh where there is none. Errors are as those of [Write].
func Keep(path string, mode os.FileMode, fresh func() string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		b = []byte(fresh() + "\n")
		err = Write(path, b, mode)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// File is a file that is written piece by piece. It has its name once it is committed.
type File struct {
	file *os.File // nil: committed or discarded
	path string
	mode os.FileMode
}

// Create begins a file as [Write] puts it in place. [File.Discard] must be called at the
// end.
func Create(path string, mode os.FileMode) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), prefix+"*") // of mode 0600
	if err != nil {
		return nil, err
	}
	return &File{f, path, mode}, nil
}

// Write adds to the file.
func (f *File) Write(p []byte) (int, error) { return f.file.Write(p) }

// Commit puts the file in place and returns when it is on disk. Where that fails, it is
// discarded.
func (f *File) Commit() error {
	file := f.file
	err := errors.Join(file.Chmod(f.mode), file.Sync())
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), f.path)
	}
	f.file = nil
	if err != nil {
		_ = os.Remove(file.Name()) // the first error is returned
		return err
	}
	return syncFolder(filepath.Dir(f.path))
}

// Discard removes a file that is not committed.
func (f *File) Discard() {
	if f.file == nil {
		return
	}
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
	f.file = nil
}

// SetAside renames a file that cannot be read to a name that nothing has yet, so that
// it is not read again and is kept for people: FILE.damaged, FILE.damaged-2 and so on.
func SetAside(path string) (to string, err error) {
	to = path + ".damaged"
	for n := 2; ; n++ {
		if _, err := os.Lstat(to); errors.Is(err, os.ErrNotExist) {
			return to, os.Rename(path, to)
		} else if err != nil {
			return to, err
		}
		to = fmt.Sprintf("%s.damaged-%d", path, n)
	}
}

// syncFolder writes a folder to disk, so that a new name in it lasts. A file system
// that cannot do that, and a folder that may be written but not read, are no
// error: the content itself is on disk.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) { // fsync(2): not of this kind of file
		return nil
	}
	return err
}

// Unfinished reports whether a file's name is that of a file that [Write] is
// writing, or that a crash left unfinished.
func Unfinished(name string) bool { return strings.HasPrefix(filepath.Base(name), prefix) }
