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

// exposures are what docs/security.md says of the units: the most that systemd-analyze
// security may count.
var exposures = map[string]string{"linktrial-agent.service": "2.9", "linktrial-orchestrator.service": "1.5"}

// What the services may do does not grow without the page that states it.
func TestExposureOfUnits(t *testing.T) {
	if out, err := exec.Command("systemd-analyze", "--version").Output(); err != nil || !strings.HasPrefix(string(out), "systemd 252 ") {
		t.Skipf("the values are of Debian 12's systemd 252, which counts in its own way: %.20s, %v", out, err)
	}
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob("roles/*/files/*.service")
	if err != nil || len(units) != len(exposures) {
		t.Fatalf("units %v, %v", units, err)
	}
	for _, unit := range units {
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", unit).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", unit, err, out)
		}
		_, level, found := strings.Cut(string(out), "Overall exposure level for "+filepath.Base(unit)+": ")
		level, _, _ = strings.Cut(level, " ")
		if want := exposures[filepath.Base(unit)]; !found || level != want {
			t.Errorf("%s: exposure %s, expected %s", unit, level, want)
		}
		found = false
		for line := range strings.Lines(string(page)) {
			if cells := strings.Split(line, "|"); len(cells) > 3 && strings.Contains(cells[1], filepath.Base(unit)) {
				found = strings.HasPrefix(strings.TrimSpace(cells[3]), level)
			}
		}
		if !found {
			t.Errorf("docs/security.md does not say %s of %s", level, unit)
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
