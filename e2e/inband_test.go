package e2e

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/testkind"
)

// inBandThree is the plan three with in-band control, one attempt, and a connect limit
// that makes the wait for the nodes' counts a short one. Its share has a window follow each
// trial, also where a busy machine makes windows long: tests act while a trial runs. Its
// radio loses nothing: SCTP repeats its first packet after 3 s (RTO.Initial, RFC 4960,
// section 15), so where the channel loses 1 % of packets, one of its attempts in fifteen
// ends with the limit, and that is a property of the protocol.
var inBandThree = strings.NewReplacer("radio: prc-117g-anw2c", "radio: transports-link", "attempts: 2", "attempts: 1", "connect: 10s", "connect: 3s", "order: fixed", "order: fixed\ncontrol: in-band\ncontrol_share: 100 %").Replace(three)

// sendControl has a node of the lab connect to the orchestrator and send it one byte.
func (p *directed) sendControl(role string) {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.serve.child("agent", "--role "+role)))
	if err != nil {
		p.t.Fatal(err)
	}
	arguments := strings.Split(string(b), "\x00")
	i := slices.Index(arguments, "--orchestrator")
	if i < 0 {
		p.t.Fatalf("the agent has no orchestrator: %q", arguments)
	}
	u, err := url.Parse(arguments[i+1])
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command("ip", "netns", "exec", p.namespaceOf(role), "bash", "-c", "printf x >/dev/tcp/"+u.Hostname()+"/"+u.Port())
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}

// A control packet during an attempt of a run with in-band control makes the attempt
// invalid, though its transfer succeeds: the leading node's at once, and the trial is
// repeated in its place, which is none of the attempts that the plan allows; the
// server's, and that of a relay that only forwards, when its journal is there. No other
// attempt meets one, and results say so of the whole path.
func TestControlTrafficInBand(t *testing.T) {
	testkind.Waits("for a slow radio, and for idle nodes")
	p := &directed{newServed(t)}
	p.lab("transports-link", "vip-lot")
	r := p.start("run", p.plan("three.yaml", inBandThree), "--orchestrator", "http://"+p.addr)
	for i, role := range []string{"client", "relay", "server"} {
		r.waitFor(fmt.Sprintf(`\n +%d/6 `, 1+2*i), 2*time.Minute)
		time.Sleep(time.Second) // the trial is under way
		p.sendControl(role)
	}
	if code := r.wait(3 * time.Minute); code != 0 {
		t.Errorf("exit %d", code)
	}
	met := map[string]int{}
	for i, tr := range p.trials(0) {
		for k, a := range tr.Attempts {
			last := k == len(tr.Attempts)-1
			packets := map[radio.Role]int64{}
			for _, c := range a.Control {
				packets[c.Role] = c.Packets
			}
			switch {
			case a.Verdict == journal.Succeeded && last && packets[radio.RoleClient]+packets[radio.RoleRelay]+packets[radio.RoleServer] == 0 && len(packets) == 3:
			case a.Reason == journal.ReasonControl && !last && packets[radio.RoleClient] > 0 &&
				strings.HasPrefix(a.Message, "control packets passed between this node and the orchestrator during the attempt, of which a run with in-band control has none: "):
				met["client"]++
			case strings.HasPrefix(a.Reason, "marked: ") && strings.Contains(a.Reason, " passed at the relay, of which an attempt with in-band control has none (the attempt had ended with a result)") && packets[radio.RoleRelay] > 0 && !last:
				met["relay"]++
			case strings.HasPrefix(a.Reason, "marked: ") && strings.Contains(a.Reason, " passed at the server, of which an attempt with in-band control has none (the attempt had ended with a result)") && packets[radio.RoleServer] > 0 && !last:
				met["server"]++
			case journal.ApparatusFault(a.Reason) && a.Reason != journal.ReasonControl && !last: // of a busy machine, also where control packets passed
				t.Logf("trial %d, attempt %d: %s: %s; control packets %v", i, a.Attempt, a.Reason, a.Message, packets)
				for role, n := range packets {
					if n > 0 {
						met[string(role)]++
					}
				}
			default:
				t.Errorf("trial %d, attempt %d: %s %s %s, control packets %v", i, a.Attempt, a.Verdict, a.Reason, a.Message, packets)
			}
		}
	}
	if met["client"] != 1 || met["relay"] != 1 || met["server"] != 1 {
		t.Errorf("attempts that met control packets: %v, expected one of each node", met)
	}
	out := strings.Join(strings.Fields(p.must("results", "--format", "markdown")), " ")
	if want := "No control packet passed an interface of client, relay and server during any of 6 attempts that count."; !strings.Contains(out, want) {
		t.Errorf("results do not have %q:\n%s", want, out)
	}
	p.must("audit-run")
}
