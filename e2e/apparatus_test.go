package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
)

// attemptsOf lists verdicts and reasons of a trial's attempts.
func attemptsOf(t *report.Trial) string { return verdicts(t.Attempts) }

func verdicts(attempts []report.Attempt) string {
	var out []string
	for _, a := range attempts {
		out = append(out, strings.TrimSpace(string(a.Verdict)+" "+a.Reason))
	}
	return strings.Join(out, ", ")
}

// ofBusyMachine reports whether an attempt is invalid because the emulated radio or an
// agent did not get the processor, as on a machine with much other work.
func ofBusyMachine(a *report.Attempt) bool {
	return a.Verdict == journal.Invalid && strings.Contains(a.Message, " did not run for ")
}

// attemptsLeft are a trial's attempts without those of a busy machine.
func attemptsLeft(t *report.Trial) []report.Attempt {
	return slices.DeleteFunc(slices.Clone(t.Attempts), func(a report.Attempt) bool { return ofBusyMachine(&a) })
}

const three = `
name: three
radio: prc-117g-anw2c
topology: vip-lot
size: 384 KiB
treatments:
  - {name: tcp-cubic, protocol: tcp}
  - {name: sctp, protocol: sctp}
  - {name: haul, protocol: haul}
iterations: 2
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 2}
`

// killInThree rehearses the plan three, and kills a process of it, found by its
// arguments, in the middle of a trial of each treatment.
func (p *program) killInThree(arguments ...string) {
	p.t.Helper()
	r := p.start("rehearse", p.plan("three.yaml", three))
	for i := 1; i <= 3; i++ {
		r.waitFor(fmt.Sprintf(`\n +%d/6 `, i), 2*time.Minute)
		time.Sleep(time.Second) // the trial is under way
		kill(p.t, r.child(arguments...))
	}
	r.waitFor(`\n +6/6 `, 2*time.Minute)
	r.wait(time.Minute)
}

// The server's agent is killed in the middle of a trial of each treatment, and one
// listener by itself: what the leading node then meets is no property of a protocol.
func TestKillServer(t *testing.T) {
	p := newProgram(t)
	p.killInThree("agent", "--role server")
	ds := p.exported()
	checkRun(t, ds)
	killed := 0
	for i := range ds.Runs[0].Trials {
		tr := &ds.Runs[0].Trials[i]
		got := attemptsOf(tr)
		killed += strings.Count(got, "invalid server-down")
		if left := strings.TrimLeft(strings.ReplaceAll(got, "invalid server-down", ""), ", "); left != "succeeded" {
			t.Errorf("trial %d: %s", i, got)
		}
	}
	if killed == 0 {
		t.Error("no attempt met a killed agent")
	}
	nothingLeft(t)
}

// The emulator's process is killed in the middle of a trial of each treatment: the lab
// starts it again, agents stay, and the trial is repeated.
func TestKillEmulator(t *testing.T) {
	p := newProgram(t)
	p.killInThree("lab", "emulate")
	ds := p.exported()
	checkRun(t, ds)
	killed := 0
	for i := range ds.Runs[0].Trials {
		tr := &ds.Runs[0].Trials[i]
		got := attemptsOf(tr)
		killed += strings.Count(got, "invalid radio-down")
		for k, a := range tr.Attempts {
			// The server may still see its interface without a carrier when the trial is repeated,
			// and may tell of it only after the attempt has succeeded.
			gone := a.Reason == journal.ReasonRadioDown || strings.Contains(a.Reason+a.Message, "radio0 of the server was not in order")
			if last := k == len(tr.Attempts)-1; last && a.Verdict != journal.Succeeded || !last && (a.Verdict != journal.Invalid || !gone) {
				t.Errorf("trial %d: %s", i, got)
			}
		}
		for k, a := range tr.Attempts {
			if k == 0 {
				continue
			}
			before := tr.Attempts[k-1]
			t.Logf("trial %d attempt %d: %s after the one before had begun %s earlier, which ended after %s: %s", i, a.Attempt, a.Verdict,
				a.Started.Sub(before.Started).Round(time.Millisecond), before.Duration, before.Message)
		}
	}
	if killed == 0 {
		t.Error("no attempt met a killed emulator")
	}
	nothingLeft(t)
}

// With in-band control the leading node cannot know why an attempt failed. Where the
// journals are together it is known: the attempt is marked, and its trial is repeated.
func TestKillServerInBand(t *testing.T) {
	testkind.Waits("for a slow radio, and for idle nodes")
	p := &directed{newServed(t)}
	p.lab("transports-link", "vip-lot")
	r := p.start("run", p.plan("three.yaml", inBandThree), "--orchestrator", "http://"+p.addr)
	r.waitFor(`\n +1/6 `, 2*time.Minute)
	time.Sleep(time.Second) // the trial is under way
	kill(t, p.serve.child("agent", "--role server"))
	r.wait(3 * time.Minute)
	marked := 0
	for i, tr := range p.trials(0) {
		last := tr.Attempts[len(tr.Attempts)-1]
		if last.Verdict != journal.Succeeded {
			t.Errorf("trial %d: %s", i, attemptsOf(&tr))
		}
		for _, a := range tr.Attempts[:len(tr.Attempts)-1] {
			if ofBusyMachine(&a) {
				continue
			}
			// The agent that is started again delivers, and that is control traffic.
			away := strings.HasPrefix(a.Reason, "marked: the agent of the server was not running from ") || strings.Contains(a.Reason, " passed at the server, of which an attempt with in-band control has none")
			if a.Verdict != journal.Invalid || !away || !strings.Contains(a.Message, "marked invalid by linktrial") {
				t.Errorf("trial %d, attempt %d: %s (%s: %s)", i, a.Attempt, a.Verdict, a.Reason, a.Message)
			}
			marked++
		}
	}
	if marked == 0 {
		t.Error("no attempt met the killed agent")
	}
}

// A server that stays away makes the run pause after limits.wait, which says for what
// it waits; a person lets it go on when the server is back.
func TestPauseForServer(t *testing.T) {
	testkind.Waits("for a slow radio, and for limits")
	p := &directed{newServed(t)}
	p.lab("prc-117g-anw2c", "vip-lot")
	r := p.start("run", p.plan("three.yaml", strings.Replace(three, "attempts: 2", "attempts: 1, wait: 3s", 1)), "--orchestrator", "http://"+p.addr)
	r.waitFor(`\n +1/6 `, 2*time.Minute)
	agent := p.serve.child("agent", "--role server")
	if err := syscall.Kill(agent, syscall.SIGSTOP); err != nil { // it takes no assignment and is not started again
		t.Fatal(err)
	}
	line := r.waitFor(`run \S+: paused: trial \d+ has waited for 3s \(limits.wait\) because of the apparatus: the server .*; when that is repaired: linktrial run resume \S+`, 2*time.Minute)
	if err := syscall.Kill(agent, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.must("run", "resume", line[strings.LastIndex(line, " ")+1:])
	r.waitFor(`run \S+: resumed`, time.Minute)
	r.waitFor(`\n +6/6 `, 2*time.Minute)
	r.wait(time.Minute)
	for i := range p.trials(0) {
		tr := &p.trials(0)[i]
		if tr.Verdict != journal.Succeeded {
			t.Errorf("trial %d: %s", i, attemptsOf(tr))
		}
	}
}
