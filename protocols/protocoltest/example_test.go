package protocoltest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"linktrial/internal/process/processtest"
)

// TestPythonExample: the documentation's driver keeps the contract that it is
// an example of.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	// The interpreter itself: a version manager's wrapper takes longer than the driver.
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skipf("the example needs python3: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "python-tcp")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"driver.yaml", "driver.py", "contract.py"} {
		b, err := os.ReadFile(filepath.Join("../../docs/examples/python-tcp", name))
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, []byte("#!/usr/bin/env python3\n"), append([]byte("#!"), out...), 1)
		processtest.WriteExecutable(t, filepath.Join(dir, name), b)
	}
	Exercise(t, dir)
}
