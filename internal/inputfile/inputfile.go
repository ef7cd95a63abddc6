// Package inputfile reads files that people name: plans, profiles, traces,
// manifests. Comes in: a name and the size of the largest such file. Goes out:
// its bytes, or an error that says what the name leads to. A FIFO, a device or a
// file of gigabytes costs neither time nor memory.
package inputfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"linktrial/internal/unit"
)

// Read reads a regular file of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	// Without O_NONBLOCK opening a FIFO waits for a writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		if st, statErr := os.Stat(name); statErr == nil {
			err = cmp.Or(regular(st, name, limit), err)
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return read(f, st, name, limit)
}

// ReadFS is [Read] of a file system.
func ReadFS(files fs.FS, name string, limit int64) ([]byte, error) {
	// Opening is what waits, so the question comes first.
	st, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if err := regular(st, name, limit); err != nil {
		return nil, err
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if st, err = f.Stat(); err != nil {
		return nil, err
	}
	return read(f, st, name, limit)
}

// ReadStream reads a stream, such as standard input, of at most limit bytes. What
// is the name of it for messages.
func ReadStream(r io.Reader, what string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	case int64(len(b)) > limit:
		return nil, tooLong(what, "more than "+unit.FormatBytes(limit), limit)
	}
	return b, nil
}

func read(f io.Reader, st fs.FileInfo, name string, limit int64) ([]byte, error) {
	if err := regular(st, name, limit); err != nil {
		return nil, err
	}
	// A file may grow while it is read, and some in /proc state no size.
	return ReadStream(f, name, limit)
}

// ErrRefused is the errors of names that lead to something else than a regular
// file of the size allowed.
var ErrRefused = errors.New("no regular file of the size allowed")

// refusal is an error that is [ErrRefused] and says only what was found.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

func regular(st fs.FileInfo, name string, limit int64) error {
	switch {
	case !st.Mode().IsRegular():
		return refusal(fmt.Sprintf("%s is %s, expected a regular file", name, Kind(st.Mode())))
	case st.Size() > limit:
		return tooLong(name, unit.FormatBytes(st.Size()), limit)
	}
	return nil
}

func tooLong(name, size string, limit int64) error {
	return refusal(fmt.Sprintf("%s is %s long, expected at most %s", name, size, unit.FormatBytes(limit)))
}

// Kind is what a name leads to, for messages.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a regular file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}
