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
var exposures = map[string]string{"linktrial-agent.service": "3.3", "linktrial-orchestrator.service": "1.5"}

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

// The agent starts with a file that says neither role nor radio, and with one that says both:
// every value is one word with its flag, and what the file leaves out is empty.
func TestUnitOfTheAgentTakesWhatIsMissing(t *testing.T) {
	b, err := os.ReadFile("roles/agent/files/linktrial-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	var start, environment string
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "ExecStart="); ok {
			start = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "Environment="); ok {
			environment += strings.TrimSpace(v) + " "
		}
	}
	for flag, variable := range map[string]string{"role": "LINKTRIAL_ROLE", "radio-address": "LINKTRIAL_RADIO_ADDRESS", "device": "LINKTRIAL_DEVICE"} {
		if !strings.Contains(start, " --"+flag+"=${"+variable+"} ") || !strings.Contains(environment, variable+"= ") {
			t.Errorf("--%s: %s, with %s", flag, start, environment)
		}
	}
	if !strings.HasSuffix(start, " $LINKTRIAL_OPTIONS") || !strings.Contains(environment, "LINKTRIAL_OPTIONS= ") {
		t.Errorf("%s, with %s", start, environment)
	}
}
