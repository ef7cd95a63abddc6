package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
)

const stopped = `
name: stopped
radio: prc-117g-anw2c
topology: vip-lot
size: 512 KiB
treatments:
  - {name: cubic, protocol: tcp, options: {congestion: cubic}}
iterations: 6
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 1}
`

// Each process that takes part in a trial is stopped in the middle of one, for some
// seconds, and let go on. The protocol would be blamed for it, or count with a value
// that says nothing of it: the attempt is invalid, and repeated as none of those that
// the plan allows.
func TestStoppedProcesses(t *testing.T) {
	testkind.Waits("for processes that were stopped")
	p := newProgram(t)
	r := p.start("rehearse", p.plan("stopped.yaml", stopped))
	agent := func(role string) int { return r.child("agent", "--role "+role) }
	for i, c := range []struct {
		what    string
		process func() int
	}{
		{"the client's driver", func() int { return r.driver(agent("client")) }},
		{"the listener", func() int { return r.driver(agent("server")) }},
		{"the server's agent", func() int { return agent("server") }},
		{"the leading agent", func() int { return agent("client") }},
		{"the emulator", func() int { return r.child("emulate") }},
	} {
		r.waitFor(fmt.Sprintf(`\n +%d/6 `, i+1), 2*time.Minute)
		time.Sleep(time.Second) // the next trial is under way
		pid := c.process()
		t.Logf("%s is stopped: process %d", c.what, pid)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		time.Sleep(3 * time.Second)
		_ = syscall.Kill(pid, syscall.SIGCONT) // Linktrial has ended a client's driver that was stopped
	}
	r.waitFor(`\n +6/6 `, 2*time.Minute)
	r.wait(time.Minute)
	ds := p.exported()
	var invalid []string
	for i := range ds.Runs[0].Trials {
		tr := &ds.Runs[0].Trials[i]
		for k, a := range tr.Attempts {
			t.Logf("trial %d: %s %s %s", tr.Index, a.Verdict, a.Reason, a.Message)
			if last := k == len(tr.Attempts)-1; last && a.Verdict != journal.Succeeded || !last && a.Verdict != journal.Invalid {
				t.Errorf("trial %d: %s", i, attemptsOf(tr))
			}
			if a.Verdict == journal.Invalid {
				invalid = append(invalid, a.Message)
			}
		}
	}
	// An attempt that begins within the clocks' bounds of a stop's end is marked
	// afterwards, so there may be more than one of each, and a stop may meet that
	// trial's repetition.
	for _, want := range []string{"stopped the driver's process", "the listener of cubic at the server was stopped", "the agent of the server did not run", "the agent of the client did not run", "the emulated radio did not run"} {
		if !slices.ContainsFunc(invalid, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no attempt is invalid because %s: %q", want, invalid)
		}
	}
	nothingLeft(t)
}

// driver is the driver process of TCP that an agent runs.
func (r *running) driver(agent int) int {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, d := range dirs {
			var pid int
			if _, err := fmt.Sscan(filepath.Base(d), &pid); err != nil || !descends(pid, agent) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(d, "cmdline"))
			if err == nil && strings.Contains(string(b), "/drivers/tcp/") {
				return pid
			}
		}
	}
	r.t.Fatalf("no driver of TCP below the agent %d", agent)
	return 0
}
