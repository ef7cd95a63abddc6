package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/testkind"
)

// Runs of which all requirements pass, one fails, and one is undecided.
const requiring = `name: requiring
radio: transports-link
topology: point-to-point
size: 10 KB
treatments:
  - {name: tcp, label: TCP, protocol: tcp}
  - {name: none, protocol: not-there, missing: nobody has it}
groups:
  - {name: pass, treatments: tcp}
  - {name: fail, treatments: tcp}
  - {name: undecided, treatments: [tcp, none]}
iterations: 3
seed: 1
require:
  - {average: {at_least: 0.01 KB/s}}
  - {group: fail, average: {at_least: 1 Gbit/s}}
  - {group: undecided, treatment: none, average: {at_least: 0.01 KB/s}}
`

// The exit code of results --check is the outcome of what the plan requires, of a rehearsal as
// of its runs; anything else that goes wrong has a code of its own.
func TestCheckOfRequirements(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	plan := filepath.Join(p.work, "requiring.yaml")
	if err := os.WriteFile(plan, []byte(requiring), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := p.run("rehearse", "--virtual", plan)
	if code != 0 || strings.Count(stdout, "pass: TCP: average ") != 3 || !strings.Contains(stdout, "fail: TCP: average ") {
		t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	campaign := p.exported().Campaign
	for _, c := range []struct {
		args []string
		code int
		last string
	}{
		{[]string{campaign + "-1", "--check"}, 0, "pass: of 1, 1 pass, 0 fail, 0 undecided"},
		{[]string{campaign + "-2", "--check"}, 1, "fail: of 2, 1 pass, 1 fail, 0 undecided"},
		{[]string{campaign + "-3", "--check"}, 2, "undecided: of 2, 1 pass, 0 fail, 1 undecided"},
		{[]string{"--check"}, 1, "fail: of 5, 3 pass, 1 fail, 1 undecided"},
		{[]string{"nobody", "--check"}, 3, ""},
		{[]string{"--check", "--format", "csv"}, 3, ""},
		{[]string{"--formt", "csv", "--check"}, 3, ""},
	} {
		cmd := p.command(append([]string{"results"}, c.args...)...)
		cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+p.data, "LINKTRIAL_ORCHESTRATOR=")
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
		if code := cmd.ProcessState.ExitCode(); code != c.code || lines[len(lines)-1] != c.last || (code == 3) != (stderr.Len() > 0) {
			t.Errorf("results %q: exit code %d (%v), expected %d with %q:\n%s%s", c.args, code, err, c.code, c.last, &stdout, &stderr)
		}
	}
}
