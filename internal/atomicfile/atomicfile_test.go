package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWrite(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for _, mode := range []os.FileMode{0o600, 0o644} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		for _, content := range []string{"first, and longer than what follows", "second", ""} {
			if err := Write(path, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil || string(b) != content {
				t.Fatalf("%q, %v, want %q", b, err, content)
			}
			st, err := os.Stat(path)
			if err != nil || st.Mode() != mode {
				t.Fatalf("mode %v, %v, want %v", st.Mode(), err, mode)
			}
			if n := names(t, dir); len(n) != 1 {
				t.Fatalf("beside the file: %v", n)
			}
		}
	}
}

// What fails leaves the old file and nothing beside it.
func TestFailure(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "f", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "f"), []byte("b"), 0o600); err == nil {
		t.Fatal("a folder was replaced")
	}
	if n := names(t, dir); len(n) != 1 || n[0] != "f" {
		t.Fatalf("left: %v", n)
	}
	if err := Write(filepath.Join(dir, "absent", "f"), nil, 0o600); !os.IsNotExist(err) {
		t.Fatalf("a folder that is not there: %v", err)
	}
}

// A link is replaced, and what it leads to stays.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	to, link := filepath.Join(dir, "to"), filepath.Join(dir, "link")
	if err := os.WriteFile(to, []byte("stays"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(to); err != nil || string(b) != "stays" {
		t.Fatalf("%q, %v", b, err)
	}
	if st, err := os.Lstat(link); err != nil || !st.Mode().IsRegular() {
		t.Fatalf("%v, %v", st, err)
	}
}

// A reader never sees a part, and never a file that others may read too early.
func TestReadersSeeWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	contents := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<17)}
	if err := Write(path, contents[0], 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(b, contents[0]) && !bytes.Equal(b, contents[1]) {
				t.Errorf("%d bytes, %v", len(b), err)
				return
			}
		}
	})
	for i := range 50 {
		if err := Write(path, contents[i%2], 0o600); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestUnfinished(t *testing.T) {
	for name, want := range map[string]bool{".new-123": true, "a/b/.new-x": true, "f": false, ".new-dir/f": false, "x.new-1": false} {
		if Unfinished(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// What is set aside has a name of its own each time: a file, a folder and a link to
// nothing that have the name already stay as they are.
func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.Mkdir(path+".damaged-2", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nothing", path+".damaged-3"); err != nil {
		t.Fatal(err)
	}
	wants := []string{".damaged", ".damaged-4", ".damaged-5"}
	for _, want := range wants {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if to, err := SetAside(path); err != nil || to != path+want {
			t.Fatalf("%s, %v, want %s", to, err, path+want)
		}
	}
	for _, n := range wants {
		if b, err := os.ReadFile(path + n); err != nil || string(b) != n {
			t.Fatalf("%s has %q, %v", n, b, err)
		}
	}
	if to, err := os.Readlink(path + ".damaged-3"); err != nil || to != "nothing" {
		t.Fatalf("the link: %q, %v", to, err)
	}
	// A folder can be in the file's place.
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if to, err := SetAside(path); err != nil || to != path+".damaged-6" {
		t.Fatalf("%s, %v", to, err)
	}
	if _, err := SetAside(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("nothing was there: %v", err)
	}
	if n := names(t, dir); len(n) != 6 {
		t.Fatalf("left: %v", n)
	}
}

// A file that is written piece by piece has its name once it is committed, and leaves
// nothing where it is not.
func TestPieces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, commit := range []bool{true, false} {
		f, err := Create(path, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := f.Write([]byte("piece ")); err != nil {
				t.Fatal(err)
			}
		}
		if commit {
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.Discard()
		f.Discard()
		want := map[bool]string{true: "piece piece piece ", false: "old"}[commit]
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v, expected %q", got, err, want)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%v, %v, expected the file alone", all, err)
		}
	}
}

func TestKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	for range 2 {
		got, err := Keep(path, 0o600, func() string {
			if _, err := os.Stat(path); err == nil {
				t.Error("made a second time")
			}
			return "one"
		})
		if err != nil || got != "one" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := Keep(filepath.Join(path, "below"), 0o600, func() string { return "one" }); err == nil || got != "" {
		t.Errorf("%q, %v, expected an error", got, err)
	}
}
