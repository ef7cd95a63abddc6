package uml

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/internal/filelock"

	"linktrial/internal/process/processtest"
)

// store puts a kernel into a cache as a build does.
func store(t *testing.T, cache, version string, used time.Time) Kernel {
	t.Helper()
	build, err := os.MkdirTemp(cache, buildPrefix)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(build, programName)
	if err := os.WriteFile(program, []byte(version), 0o755); err != nil {
		t.Fatal(err)
	}
	k, err := commit(cache, program, Kernel{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(build); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(filepath.Dir(k.Path), documentName), used, used); err != nil {
		t.Fatal(err)
	}
	return k
}

func exists(k Kernel) bool {
	_, err := os.Stat(k.Path)
	return err == nil
}

// TestPruneSparesWhatIsUsed: a build takes away old kernels, but none that a
// run boots guests from, nor one of late, nor its own.
func TestPruneSparesWhatIsUsed(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	long := now.Add(-2 * keepUnused)
	old, running, late, own := store(t, cache, "1", long), store(t, cache, "2", long), store(t, cache, "3", now), store(t, cache, "4", long)
	release, err := running.hold()
	if err != nil {
		t.Fatal(err)
	}
	// Holding counts as use; here it must be the lock that keeps the kernel.
	file := filepath.Join(filepath.Dir(running.Path), documentName)
	if st, err := os.Stat(file); err != nil || now.Sub(st.ModTime()) > time.Hour {
		t.Errorf("holding a kernel is no use of it: %v, %v", st.ModTime(), err)
	}
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	tidy := func() {
		t.Helper()
		if err := prune(cache, filepath.Dir(own.Path), now.Add(-keepUnused)); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(cache, buildPrefix+"*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	tidy()
	if exists(old) || !exists(running) || !exists(late) || !exists(own) {
		t.Errorf("after a build: old %t, running %t, used of late %t, its own %t", exists(old), exists(running), exists(late), exists(own))
	}
	release()
	tidy()
	if exists(running) || !exists(late) || !exists(own) {
		t.Errorf("after the run: it %t, used of late %t, own %t", exists(running), exists(late), exists(own))
	}
}

// TestRunHoldsItsKernel: a guest's kernel stays while its guests run.
func TestRunHoldsItsKernel(t *testing.T) {
	cache := t.TempDir()
	k := store(t, cache, "1", time.Now())
	processtest.WriteExecutable(t, k.Path, []byte("#!/bin/sh\necho started\nsleep 0.3\n"))
	held := make(chan bool, 100)
	_, err := Run(t.Context(), RunConfig{
		Kernel: k, Dir: t.TempDir(), Executable: "/bin/true", Drivers: "/bin", Trust: trusted, Jobs: 1,
		Sheets: []Sheet{{Run: "a", Network: line(64e3, 0, uniform(0)), Trials: 1}},
		Progress: func(Progress) {
			held <- prune(cache, "", time.Now().Add(time.Hour)) == nil && exists(k)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	close(held)
	n := 0
	for ok := range held {
		n++
		if !ok {
			t.Error("the kernel was removed under a running guest")
		}
	}
	if n == 0 {
		t.Error("no guest ran")
	}
	if err := prune(cache, "", time.Now().Add(time.Hour)); err != nil || exists(k) {
		t.Errorf("after the run it stays: %v", err)
	}
}

// TestHoldSeesARemovedKernel: between the look into the cache and the lock a
// kernel can go, and another come in its place.
func TestHoldSeesARemovedKernel(t *testing.T) {
	cache := t.TempDir()
	k := store(t, cache, "1", time.Now())
	file := filepath.Join(filepath.Dir(k.Path), documentName)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := filelock.Lock(f, filelock.Exclusive); err != nil { // as who removes it
		t.Fatal(err)
	}
	mine, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		release, err := k.holdOpened(mine)
		if err == nil {
			release()
		}
		result <- err
	}()
	select {
	case err := <-result:
		t.Fatalf("it did not wait for who removes the kernel: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := <-result; err == nil || !strings.Contains(err.Error(), "lab kernel") {
		t.Errorf("a kernel that was replaced: %v", err)
	}
}
