package playbooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemd knows every key of the units.
func TestUnitsVerify(t *testing.T) {
	units, err := filepath.Glob("roles/*/files/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("units %v, %v; expected those of the agent and the orchestrator", units, err)
	}
	// The program that they start is not installed here.
	program := filepath.Join(t.TempDir(), "linktrial")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, unit := range units {
		b, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		if got := verify(t, unit, strings.ReplaceAll(string(b), "/usr/bin/linktrial", program)); got != "" {
			t.Errorf("%s: %s", unit, got)
		}
		// A wrong key is an error here; systemd itself only logs it.
		wrong := strings.Replace(string(b), "NoNewPrivileges=", "NoNewPriveleges=", 1)
		if got := verify(t, unit, strings.ReplaceAll(wrong, "/usr/bin/linktrial", program)); !strings.Contains(got, "NoNewPriveleges") {
			t.Errorf("%s: a misspelt key went through: %q", unit, got)
		}
	}
}

// verify returns the output of systemd-analyze verify.
func verify(t *testing.T, unit, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(unit))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}
