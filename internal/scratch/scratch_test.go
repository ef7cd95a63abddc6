package scratch_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"linktrial/internal/scratch"
)

// held keeps the folder of the process that is killed: a folder that nothing refers to
// loses its lock with its file.
var held *scratch.Folder

// TestMain is also the process that makes a folder and is killed.
func TestMain(m *testing.M) {
	if os.Getenv("SCRATCH_HOLD") == "" {
		os.Exit(m.Run())
	}
	var err error
	if held, err = scratch.New("scratch-test-"); err != nil {
		panic(err)
	}
	os.Stdout.WriteString(held.Path + "\n")
	// Not for ever: where no other goroutine is left, the runtime ends a process that waits
	// for nothing.
	time.Sleep(time.Hour)
}

// The folder of a process that was killed goes with the next one, that of a process
// that runs stays, and so do new ones and what is called otherwise.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	hold := func() (string, *exec.Cmd) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "SCRATCH_HOLD=1")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		s := bufio.NewScanner(out)
		if !s.Scan() {
			t.Fatal("no folder")
		}
		return s.Text(), c
	}
	killed, c := hold()
	running, _ := hold()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	other, fresh := filepath.Join(dir, "other-1"), filepath.Join(dir, "scratch-test-new")
	for _, d := range []string{other, fresh, filepath.Join(killed, "below")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	target := t.TempDir()
	link := filepath.Join(dir, "scratch-test-link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, d := range []string{killed, running, other, target} {
		if err := os.Chtimes(d, old, old); err != nil {
			t.Fatal(err)
		}
	}
	f, err := scratch.New("scratch-test-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("the folder of the killed process is still there: %v", err)
	}
	for _, d := range []string{running, other, fresh, target, f.Path} {
		if _, err := os.Stat(d); err != nil {
			t.Errorf("%v, expected it to stay", err)
		}
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
		t.Errorf("the removed folder is still there: %v", err)
	}
	var none *scratch.Folder
	if err := none.Remove(); err != nil {
		t.Error(err)
	}
}
