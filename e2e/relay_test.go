package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const split = `
name: split
radio: prc-117g-anw2c
topology: vip-lot
size: 384 KiB
treatments:
  - name: i-tcp
    protocol: tcp
    via: [{at: relay, protocol: split}]
iterations: 4
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 1}
`

// A transfer passes the relay process. One that is killed in the middle, alone or
// with its agent, ends the attempt at once; it says nothing of the protocol, and the
// trial is repeated in its place.
func TestKillRelay(t *testing.T) {
	p := newProgram(t)
	r := p.start("rehearse", p.plan("split.yaml", split))
	r.waitFor(`\n +1/4 `, 2*time.Minute)
	process := relaying(r, p)
	kill(t, process)
	r.waitFor(`\n +2/4 `, 30*time.Second)
	relaying(r, p)
	kill(t, r.child("agent", "--role relay"))
	r.waitFor(`\n +4/4 `, 2*time.Minute)
	r.wait(time.Minute)
	ds := p.exported()
	checkRun(t, ds)
	run := ds.Runs[0]
	for i, want := range []string{"succeeded", "invalid relay-down, succeeded", "invalid relay-down, succeeded", "succeeded"} {
		attempts := attemptsLeft(&run.Trials[i])
		if got := verdicts(attempts); got != want {
			t.Fatalf("trial %d: %s, expected %s", i, got, want)
		}
		if a := attempts[0]; a.Duration > 40*time.Second {
			t.Errorf("trial %d took %s", i, a.Duration)
		}
	}
	via := run.Sheet.Treatments[0].Via
	if len(via) != 1 || via[0].Port == 0 || len(via[0].Digests) == 0 {
		t.Errorf("the sheet's relay processes: %+v", via)
	}
	named := false
	for _, d := range run.Provenance["relay"].Drivers {
		named = named || d.Name == "split" && len(via) == 1 && d.Digest == via[0].Digests[0]
	}
	if !named {
		t.Errorf("the relay's provenance has no driver split of the sheet's digest: %+v", run.Provenance["relay"].Drivers)
	}
	nothingLeft(t)
}

// relaying waits until the relay process carries a connection, and returns its PID.
func relaying(r *running, p *program) int {
	r.t.Helper()
	pid := 0
	waitUntil(r.t, "a connection over the relay process", 30*time.Second, func() bool {
		pid = r.child(filepath.Join(p.bin, "drivers", "split", "split"))
		sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
		sides := 0
		for line := range strings.Lines(string(sockets)) {
			// Established (tcp_states.h: 1) between addresses of the radio, 10.77.0.0/24.
			if strings.Count(line, "004D0A:") == 2 && strings.Contains(line, " 01 ") {
				sides++
			}
		}
		return err == nil && sides >= 2
	}, r.output)
	return pid
}
