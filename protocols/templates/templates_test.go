package templates

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/process/processtest"
	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest"
)

// written is the folder of a new driver, built.
func written(t *testing.T, language string) string {
	t.Helper()
	dir, l, err := Write(t.TempDir(), "my-protocol", language)
	if err != nil {
		t.Fatal(err)
	}
	if l.Build != "" {
		build := exec.Command("sh", "-c", l.Build)
		build.Dir = dir
		build.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off") // without a network
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", l.Build, err, out)
		}
	}
	return dir
}

// TestPython: the driver that the documentation is read with, too.
func TestPython(t *testing.T) {
	t.Parallel()
	// The interpreter itself: a version manager's wrapper takes longer than the driver.
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable); print(sys.base_prefix)").Output()
	if err != nil {
		t.Skipf("the template needs python3: %v", err)
	}
	executable, prefix, _ := strings.Cut(string(out), "\n")
	dir := written(t, "python")
	file := filepath.Join(dir, "driver.py")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	processtest.WriteExecutable(t, file, bytes.Replace(b, []byte("#!/usr/bin/env python3\n"), []byte("#!"+executable+"\n"), 1))
	protocoltest.Exercise(t, dir, strings.TrimSpace(prefix))
	if _, err := os.Stat(filepath.Join(dir, "__pycache__")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the driver wrote into its folder: %v", err)
	}
}

// TestGo: also outside this module, with nothing but the standard library.
func TestGo(t *testing.T) {
	t.Parallel()
	protocoltest.Exercise(t, written(t, "go"))
}

// TestCPP: needs a compiler and make.
func TestCPP(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skipf("the template needs g++: %v", err)
	}
	protocoltest.Exercise(t, written(t, "cpp"))
}

// TestManifests: a new driver has its own name, and its file to replace is there.
func TestManifests(t *testing.T) {
	for _, l := range Languages {
		dir, _, err := Write(t.TempDir(), "my-protocol", l.Name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "driver.yaml")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := contract.ParseManifest(file, b)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != "my-protocol" || m.Title != "my-protocol" || m.Version != "0.1.0" || len(m.Files) == 0 {
			t.Errorf("%s: manifest %+v", l.Name, m)
		}
		if _, err := os.Stat(filepath.Join(dir, l.Protocol)); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	parent := t.TempDir()
	if err := os.Mkdir(filepath.Join(parent, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ parent, name, language, want string }{
		{parent, "My_Proto", "python", `name "My_Proto", expected`},
		{parent, "../x", "python", "expected at most 32"},
		{parent, "", "python", "expected at most 32"},
		{parent, "mine", "cobol", `language "cobol", expected`},
		{parent, "taken", "python", "exists already"},
		{filepath.Join(parent, "none"), "mine", "python", "no such file or directory"},
	} {
		if _, _, err := Write(c.parent, c.name, c.language); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %q: error %v, expected one with %q", c.name, c.language, err, c.want)
		}
	}
	if there, err := os.ReadDir(parent); err != nil || len(there) != 1 {
		t.Errorf("a refusal left something: %v %v", there, err)
	}
}
