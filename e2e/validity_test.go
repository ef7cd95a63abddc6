package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
)

const ruled = `
name: ruled
radio: prc-117g-anw2c
topology: vip-lot
size: 384 KiB
treatments:
  - {name: tcp-cubic, protocol: tcp}
  - {name: sctp, protocol: sctp}
  - {name: haul, protocol: haul}
  - {name: quic, protocol: quic}
iterations: 3
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 1}
valid:
  clock_step: 100 ms
  interfering: 5 %
  telemetry: [{reading: snr, min: -20 dB}]
`

// namespaceOf is the network namespace of a node of the lab.
func (p *directed) namespaceOf(role string) string {
	_, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	return "lt-serve-" + port + "-" + role
}

// Traffic that is not of the run makes exactly the attempts invalid during which it
// passed, whether they succeeded or not, and their trials are repeated in their place.
// The drivers' own packets break no rule.
func TestInterferingTraffic(t *testing.T) {
	p := &directed{newServed(t)}
	p.lab("prc-117g-anw2c", "vip-lot")
	r := p.start("run", p.plan("ruled.yaml", ruled), "--orchestrator", "http://"+p.addr)
	for i, role := range []string{"client", "server", "client"} {
		r.waitFor(fmt.Sprintf(`\n +%d/12 `, []int{1, 4, 11}[i]), 2*time.Minute)
		time.Sleep(500 * time.Millisecond) // the trial is under way
		// 40 datagrams of 1000 bytes towards the relay, at a port that no listener has.
		send := exec.Command("ip", "netns", "exec", p.namespaceOf(role), "bash", "-c",
			`for i in $(seq 40); do head -c 1000 /dev/zero > /dev/udp/10.77.0.2/9; done`)
		if out, err := send.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Errorf("exit %d", code)
	}
	marked := 0
	for i, tr := range p.trials(0) {
		last := tr.Attempts[len(tr.Attempts)-1]
		if last.Verdict != journal.Succeeded {
			t.Errorf("trial %d: %s", i, attemptsOf(&tr))
		}
		for _, a := range tr.Attempts {
			if len(a.Undecided) > 0 {
				t.Errorf("trial %d, attempt %d: %q", i, a.Attempt, a.Undecided)
			}
			if a.Verdict != journal.Invalid || ofBusyMachine(&a) {
				continue
			}
			marked++
			if !strings.HasPrefix(a.Reason, "marked: rule interfering: ") || !strings.Contains(a.Reason, " KiB of other traffic, mostly UDP 10.77.0.") || !strings.Contains(a.Reason, " → 10.77.0.2:9 passed the radio's interface of the ") || !strings.Contains(a.Reason, "at most 19.2 KiB are allowed (5 % of 384.0 KiB) (the attempt had succeeded)") {
				t.Errorf("trial %d, attempt %d: %s", i, a.Attempt, a.Reason)
			}
		}
	}
	if marked < 3 || marked > 6 { // a burst may reach into the next trial
		t.Errorf("%d attempts met the traffic", marked)
	}
}
