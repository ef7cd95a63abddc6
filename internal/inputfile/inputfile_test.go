package inputfile_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"linktrial/internal/inputfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe, huge, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "huge"), filepath.Join(dir, "link")
	fits, long := write("fits", 100), write("long", 101)
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("fits", link), os.Truncate(write("huge", 0), 100<<30)); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct{ name, want string }{
		{fits, ""},
		{socket, "is a socket, expected a regular file"},
		{link, ""},
		{long, "is 101 B long, expected at most 100 B"},
		{huge, "is 100 GiB long, expected at most 100 B"},
		{pipe, "is a named pipe, expected a regular file"},
		{dir, "is a folder, expected a regular file"},
		{"/dev/zero", "is a device, expected a regular file"},
		{filepath.Join(dir, "absent"), "no such file"},
	} {
		read := map[string]func() ([]byte, error){
			"Read":   func() ([]byte, error) { return inputfile.Read(c.name, 100) },
			"ReadFS": func() ([]byte, error) { return inputfile.ReadFS(os.DirFS("/"), strings.TrimPrefix(c.name, "/"), 100) },
		}
		for how, f := range read {
			b, err := f()
			switch {
			case c.want == "" && (err != nil || len(b) != 100):
				t.Errorf("%s of %s: %d bytes, %v", how, c.name, len(b), err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s of %s: %v, want %q", how, c.name, err, c.want)
			}
		}
	}
}

// endless counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }

func TestReadStream(t *testing.T) {
	if b, err := inputfile.ReadStream(strings.NewReader("abc"), "standard input", 3); string(b) != "abc" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	var e endless
	_, err := inputfile.ReadStream(&e, "standard input", 1000)
	if !errors.Is(err, inputfile.ErrRefused) || err.Error() != "standard input is more than 1000 B long, expected at most 1000 B" {
		t.Errorf("%v", err)
	}
	if e.read > 2000 {
		t.Errorf("%d bytes read of a stream without end", e.read)
	}
}
