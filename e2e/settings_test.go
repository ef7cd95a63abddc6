package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
)

// slowed has trials beside a listener that shortens the transmit queue of its node's radio.
const slowed = `
name: slowed
radio: transports-link
topology: point-to-point
size: 256 KiB
treatments:
  - {name: slows, protocol: tuner, options: {fault: slows}}
  - {name: cubic, protocol: tcp}
  - {name: haul, protocol: haul}
iterations: 2
order: fixed
seed: 5
limits: {connect: 20s, transfer: 60s}
`

// What a driver changes of its node's network for those that follow is put back, and named
// with its values and who may have done so; an attempt during which it happened does not
// count, and is repeated.
func TestSettingsArePutBack(t *testing.T) {
	testkind.Waits("for trials over a slow radio")
	p := newProgram(t)
	r := p.start("rehearse", p.plan("slowed", slowed), "--drivers", tuner(t))
	r.wait(4 * time.Minute)
	expectPutBack(t, p, r.output())
	nothingLeft(t)
}

// The same in virtual time.
func TestSettingsArePutBackInVirtualTime(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, _ := p.run("rehearse", "--virtual", p.plan("slowed", slowed), "--drivers", tuner(t))
	expectPutBack(t, p, stdout+stderr)
}

// A driver whose manifest names no capability changes nothing, and every attempt counts.
func TestSettingsAreOutOfReach(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	plan := strings.Replace(slowed, "protocol: tuner", "protocol: plain", 1)
	stdout, stderr, code := p.run("rehearse", "--virtual", p.plan("kept", plan), "--drivers", liars(t))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, tr := range p.exported().Runs[0].Trials {
		if tr.Verdict != journal.Succeeded || len(tr.Attempts) != 1 {
			t.Errorf("trial %d of %s: %s", tr.Index, tr.Treatment, attemptsOf(&tr))
		}
	}
}

// tuner is the folder of [liars], and in it the same driver once more as tuner, which may
// change the node's network because its manifest names the capability for it.
func tuner(t *testing.T) string {
	t.Helper()
	dir := liars(t)
	manifest, err := os.ReadFile(filepath.Join(dir, "plain", "driver.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifest = bytes.Replace(manifest, []byte("name: plain\n"), []byte("name: tuner\ncapabilities: [CAP_NET_ADMIN]\n"), 1)
	folder := filepath.Join(dir, "tuner")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "plain", "plain"), filepath.Join(folder, "plain")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "driver.yaml"), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func expectPutBack(t *testing.T, p *program, output string) {
	t.Helper()
	const what = `its transmit queue (txqueuelen) was changed to "3 packets" and was `
	spoilt := 0
	for _, tr := range p.exported().Runs[0].Trials {
		if tr.Verdict != journal.Succeeded {
			t.Errorf("trial %d of %s: %s", tr.Index, tr.Treatment, attemptsOf(&tr))
		}
		for _, a := range attemptsLeft(&tr) {
			if a.Valid() {
				continue
			}
			if (a.Reason == journal.ReasonRadioDown || a.Reason == journal.ReasonServerDown) && strings.Contains(a.Message, what) && strings.Contains(a.Message, "; the agent has put it back (of the drivers that ran on this node, tcp, tuner may do so)") {
				spoilt++
				continue
			}
			t.Errorf("trial %d of %s: %s (%s: %s)", tr.Index, tr.Treatment, a.Verdict, a.Reason, a.Message)
		}
	}
	if spoilt == 0 {
		t.Errorf("no attempt was spoilt:\n%s", output)
	}
}
