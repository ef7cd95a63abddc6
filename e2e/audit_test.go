package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const two = `
name: two
radio: prc-117g-anw2c
topology: vip-lot
size: 384 KiB
treatments:
  - {name: tcp-cubic, protocol: tcp}
  - {name: haul, protocol: haul}
iterations: 2
order: random
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 2}
`

// audit runs audit-run after a rehearsal, with an orchestrator of its own.
func (p *program) audit(args ...string) (string, int) {
	p.t.Helper()
	cmd := p.command(append([]string{"audit-run"}, args...)...)
	cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+p.data, "LINKTRIAL_ORCHESTRATOR=")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A rehearsal whose server's agent was killed in a trial passes its audit with the
// journals of all nodes and the exported files; after one byte of a journal has
// changed, it does not.
func TestAuditAfterKill(t *testing.T) {
	p := newProgram(t)
	r := p.start("rehearse", p.plan("two.yaml", two))
	r.waitFor(`\n +1/4 `, 2*time.Minute)
	time.Sleep(time.Second) // the trial is under way
	kill(t, r.child("agent", "--role server"))
	r.waitFor(`\n +4/4 `, 2*time.Minute)
	r.wait(time.Minute)

	folders, err := filepath.Glob(filepath.Join(p.work, "results", "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("%q, %v", folders, err)
	}
	args := []string{"--journals", filepath.Join(p.data, "agents", "rehearsal"), "--exports", folders[0]}
	out, code := p.audit(args...)
	if code != 0 {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	for _, check := range []string{"integrity", "stored", "attempts", "trials", "numbering", "order", "digests", "samples", "live", "exports"} {
		if !regexp.MustCompile(`(?m)^` + check + ` +passed +[1-9]`).MatchString(out) {
			t.Errorf("%s did not pass:\n%s", check, out)
		}
	}

	journals, err := filepath.Glob(filepath.Join(p.data, "agents", "rehearsal", "server", "runs", "*", "journal.jsonl"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("%q, %v", journals, err)
	}
	b, err := os.ReadFile(journals[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journals[0], []byte(strings.Replace(string(b), `"type":"provenance"`, `"type":"provenancf"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, code = p.audit(args...)
	if code != 1 || !regexp.MustCompile(`FINDING .*journal.jsonl, node server: line \d+ \(offset \d+\): the record's CRC-32C is `).MatchString(out) {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
