package evidence

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openFolder opens a bag that was unpacked. It follows no link.
func openFolder(name, path string, limits Limits) (*Bag, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	b := &Bag{name: name, files: map[string]member{}, closer: root}
	if err := b.walk(root, limits); err != nil {
		_ = root.Close() // only read
		return nil, err
	}
	if err := b.load(); err != nil {
		_ = root.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bag) walk(root *os.Root, limits Limits) error {
	seen := newNameSet()
	var total int64
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return b.errorf(printable(name), "it cannot be read: %s", err)
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return b.errorf(printable(name), "it is a link or a device, expected a file")
		case len(b.files) == limits.Files:
			return b.errorf("", "it has more than %d files", limits.Files)
		}
		if err := checkName(name); err != nil {
			return b.errorf(printable(name), "%s", err)
		}
		if err := seen.add(name); err != nil {
			return b.errorf(name, "%s", err)
		}
		info, err := e.Info()
		if err != nil {
			return b.errorf(name, "it cannot be read: %s", err)
		}
		if info.Size() > limits.File {
			return b.errorf(name, "it has %d bytes, expected at most %d", info.Size(), limits.File)
		}
		if total += info.Size(); total > limits.Total {
			return b.errorf(name, "with it the files have %d bytes, expected at most %d", total, limits.Total)
		}
		b.files[name] = member{size: info.Size(), open: func() (io.ReadCloser, error) { return openRegular(root, name) }}
		return nil
	})
}

// openRegular opens a file that was a regular one, and is still.
func openRegular(root *os.Root, name string) (io.ReadCloser, error) {
	before, err := root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !before.Mode().IsRegular() || !os.SameFile(before, st) {
		_ = f.Close() // nothing was read
		return nil, fmt.Errorf("it is another file than when the bag was opened")
	}
	return f, nil
}
