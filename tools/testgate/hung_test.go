package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHangs is what TestEndHung starts: a test that does not end.
func TestHangs(*testing.T) {
	for os.Getenv("LINKTRIAL_HANGS") != "" {
		time.Sleep(time.Hour)
	}
}

// hanging starts a test that hangs in a folder; what it printed is read from its first
// line on.
func hanging(ctx context.Context, t *testing.T, folder string) (*exec.Cmd, *bufio.Reader) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(ctx, folder, []string{"LINKTRIAL_HANGS=1"}, os.Args[0], "-test.run=^TestHangs$", "-test.timeout=0", "-test.v")
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close() // the process has its own
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "TestHangs") {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd, out
}

// The program of a test that hangs is ended and prints where it hangs; one of another
// folder goes on.
func TestEndHung(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	folder := t.TempDir()
	hung, out := hanging(ctx, t, folder)
	other, _ := hanging(ctx, t, t.TempDir())
	defer func() {
		stop()
		_ = other.Wait() // it is killed
	}()
	g := &gate{results: newResults(&bytes.Buffer{}), all: []goPackage{{ImportPath: "p", Dir: folder}}}
	g.note(event{Action: "run", Package: "p", Test: "TestHangs"})
	go g.endHung(ctx, 0)
	printed, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := hung.Wait(); err == nil || !strings.Contains(string(printed), "SIGQUIT") || !strings.Contains(string(printed), "hung_test.go") {
		t.Errorf("ended with %v and printed %q, expected its goroutines", err, printed)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program of another folder: %v", err)
	}
}

// A test that waits for its turn does not run, and a subtest is its test's.
func TestRunning(t *testing.T) {
	for actions, want := range map[string]int{"run": 1, "run pause": 0, "run pause cont": 1, "run pass": 0, "run fail": 0, "run skip": 0, "output": 0} {
		r := newResults(&bytes.Buffer{})
		for _, a := range strings.Fields(actions) {
			r.note(event{Action: a, Package: "p", Test: "TestA"})
			r.note(event{Action: a, Package: "p", Test: "TestB/one"})
		}
		if got := len(r.longer(-1)); got != want {
			t.Errorf("after %s %d tests run, expected %d", actions, got, want)
		}
	}
}
