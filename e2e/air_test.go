package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
)

// contradicted is trials of drivers that carry what they are to, and say other things of it
// than the radio has counted, on a radio that loses an eighth.
const contradicted = `
name: contradicted
radio: transports-link
topology: point-to-point
sweep:
  - {name: loss, set: channel.loss, values: [0.12]}
size: 512 KiB
treatments:
  - {name: nothing-again, protocol: plain, options: {fault: nothing-again}}
  - {name: haul, protocol: haul}
  - {name: boast, protocol: boast, options: {packets_per_second: 50}}
  - {name: probe, protocol: probe, options: {packets_per_second: 50}}
probes:
  - {treatment: boast, alone: 4s}
  - {treatment: probe, alone: 4s}
iterations: 1
order: fixed
seed: 5
limits: {connect: 20s, transfer: 240s, attempts: 1}
`

// boasters are the drivers of [liars], and a probe that reports all packets as received.
func boasters(t *testing.T, bin string) string {
	t.Helper()
	dir := liars(t)
	boast := filepath.Join(dir, "boast")
	if out, err := exec.Command("go", "build", "-o", filepath.Join(boast, "boast"), "../agents/testdata/boast").CombinedOutput(); err != nil {
		t.Fatalf("build boast: %v\n%s", err, out)
	}
	for from, to := range map[string]string{"probe": "probe", "driver.yaml": "driver.yaml"} {
		b, err := os.ReadFile(filepath.Join(bin, "drivers", "probe", from))
		if err == nil {
			b = []byte(strings.NewReplacer("name: probe\n", "name: boast\n", "command: [./probe]", "command: [./boast]").Replace(string(b)))
			err = os.WriteFile(filepath.Join(boast, to), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expectCounted asserts that what the radio counted contradicts the two that say
// otherwise, and nobody else.
func expectCounted(t *testing.T, p *program) {
	t.Helper()
	want := map[string]string{"nothing-again": journal.ReasonFewerThanLost, "boast": journal.ReasonMoreThanSent}
	words := map[string]string{"nothing-again": "reports 0 packets sent again, the emulated radio lost ", "boast": " packets received, the emulated radio delivered "}
	trials := 0
	for _, tr := range p.exported().Runs[0].Trials {
		for _, a := range attemptsLeft(&tr) {
			trials++
			if a.Reason != want[tr.Treatment] || a.Valid() != (want[tr.Treatment] == "") || !strings.Contains(a.Message, words[tr.Treatment]) {
				t.Errorf("%s, iteration %d: %s (%s: %s), expected %q", tr.Treatment, tr.Iteration, a.Verdict, a.Reason, a.Message, want[tr.Treatment])
			}
			t.Logf("%s: %s (%s: %s)", tr.Treatment, a.Verdict, a.Reason, a.Message)
		}
	}
	if trials != 4 {
		t.Errorf("%d attempts, expected one of each treatment", trials)
	}
}

// What drivers count is held against what the emulated radio has counted, in real time.
func TestCountsThatTheRadioContradicts(t *testing.T) {
	testkind.Waits("for trials over a slow radio")
	p := newProgram(t)
	r := p.start("rehearse", p.plan("contradicted", contradicted), "--drivers", boasters(t, p.bin))
	r.wait(8 * time.Minute) // its exit code says that trials failed
	expectCounted(t, p)
	nothingLeft(t)
}

// The same in virtual time.
func TestCountsThatTheRadioContradictsInVirtualTime(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	p.run("rehearse", "--virtual", p.plan("contradicted", contradicted), "--drivers", boasters(t, p.bin))
	expectCounted(t, p)
}

// jammed is trials beside a listener that sends while others transfer.
const jammed = `
name: jammed
radio: prc-117g-anw2c
topology: vip-lot
size: 96 KiB
treatments:
  - {name: cubic, protocol: tcp}
  - {name: haul, protocol: haul}
  - {name: jammer, protocol: plain, options: {fault: jam}}
iterations: 1
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 1, wait: 6s}
`

// expectJammed asserts that the rivals of a jammer have no value, and that its name is
// told. Its own attempt is its own affair.
func expectJammed(t *testing.T, attempts []report.Attempt) {
	t.Helper()
	found := 0
	for _, a := range attempts {
		t.Logf("%s (%s: %s)", a.Verdict, a.Reason, a.Message)
		if a.Reason != journal.ReasonForeign {
			continue
		}
		found++
		for _, w := range []string{"UDP, were sent by the server (10.77.0.3, port 5003) to the client (10.77.0.1", "that of the listener of treatment jammer (driver plain)"} {
			if !strings.Contains(a.Message, w) {
				t.Errorf("%q does not have %q", a.Message, w)
			}
		}
	}
	if found == 0 {
		t.Error("no attempt is invalid because of the jammer")
	}
}

// A listener that sends while others transfer spoils their attempts, in the real-time lab.
func TestListenerThatJams(t *testing.T) {
	p := newProgram(t)
	r := p.start("rehearse", p.plan("jammed", jammed), "--drivers", liars(t))
	r.waitFor("cubic .*other packets than the attempt's passed the emulated radio", 3*time.Minute)
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.wait(time.Minute)
	nothingLeft(t)
}

// A listener that sends while others transfer spoils their attempts, which count for
// nobody; in virtual time, where nobody can end it, the run ends.
func TestListenerThatJamsInVirtualTime(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, code := p.run("rehearse", "--virtual", p.plan("jammed", jammed), "--drivers", liars(t))
	if code == 0 {
		t.Errorf("the rehearsal ended well:\n%s%s", stdout, stderr)
	}
	tr := p.exported().Runs[0].Trials[0]
	if tr.Treatment != "cubic" {
		t.Fatalf("the first trial is %s's", tr.Treatment)
	}
	for _, a := range tr.Attempts {
		if a.Valid() {
			t.Errorf("attempt %d counts", a.Attempt)
		}
	}
	expectJammed(t, tr.Attempts)
}
