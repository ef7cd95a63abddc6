package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"linktrial/protocols/protocoltest"
)

// build makes a driver folder as an installation has it.
func build(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "haul")
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "haul"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "driver.yaml"), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConformance(t *testing.T) {
	t.Parallel()
	protocoltest.Exercise(t, build(t))
}
