package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
)

const relayRadiosPlan = `
name: relay-radios
radio: bench-radio
topology: vip-lot
size: 256 KiB
treatments:
  - {name: tcp, protocol: tcp, options: {congestion: cubic}}
  - {name: haul, protocol: haul}
  - {name: split, protocol: tcp, via: [{at: relay, protocol: split}]}
iterations: %d
seed: 3
limits: {connect: 5s, transfer: 30s}
valid: {host: 100 %%}
`

// A relay between two radios on interfaces that Linktrial did not make: what happens to
// the second one, in a trial or before one, is told with its name, costs repetitions and
// nothing else.
func TestRelayBetweenRadios(t *testing.T) {
	for _, stated := range []bool{true, false} {
		t.Run(map[bool]string{true: "stated", false: "found"}[stated], func(t *testing.T) {
			t.Parallel()
			testRelayBetweenRadios(t, stated)
		})
	}
}

func testRelayBetweenRadios(t *testing.T, stated bool) {
	p := newProgram(t)
	n := newRelayNetwork(t, p)
	var more []string
	if stated {
		more = []string{"--more-radio", "out0=10.78.0.2"}
	}
	n.agent("client", "radio0", "10.77.0.1")
	n.agent("relay", "in0", "10.77.0.2", more...)
	n.agent("server", "radio0", "10.78.0.3")
	waitUntil(t, "the agents", time.Minute, func() bool {
		out, _ := n.linktrial("nodes").Output()
		return bytes.Count(out, []byte("connected")) == 3
	}, func() string { return "" })
	if out, err := n.linktrial("preflight").CombinedOutput(); err != nil || stated && !bytes.Contains(out, []byte("out0")) {
		t.Errorf("preflight: %v\n%s", err, out)
	}

	run := n.linktrial("run", "start", p.plan("relay.yaml", fmt.Sprintf(relayRadiosPlan, 8)))
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for _, fault := range [][2]string{
		{"link set out0 down", "link set out0 up"},
		{"addr del 10.78.0.2/24 dev out0", "addr add 10.78.0.2/24 dev out0"},
		{"link del out0", ""},
	} {
		time.Sleep(5 * time.Second) // some trials, at 2 Mbit/s
		n.ip("relay", fault[0])
		time.Sleep(2 * time.Second)
		if n.ip("relay", fault[1]); fault[1] == "" {
			n.plug("relay", "out0", "10.78.0.2", "server-air", 77)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v\n%s", err, out.String())
		}
	case <-time.After(4 * time.Minute):
		_ = run.Process.Kill()
		<-ended
		t.Fatalf("the run does not end\n%s", out.String())
	}
	n.check()
}

// relayNetwork is three nodes with radios: the relay's first one reaches the client, its
// second one the server.
type relayNetwork struct {
	t      *testing.T
	p      *program
	prefix string
	server string // URL of the orchestrator
}

func newRelayNetwork(t *testing.T, p *program) *relayNetwork {
	n := &relayNetwork{t: t, p: p, prefix: fmt.Sprintf("lt-rr%d-%d-", os.Getpid(), time.Now().UnixNano()%1e6), server: "http://10.9.0.1:7700"}
	// Two bridges are the air between the radios, a third one the control network.
	for i, bridge := range []string{"control", "client-air", "server-air"} {
		n.namespace(bridge)
		n.ip(bridge, "link add b0 type bridge")
		n.ip(bridge, "link set b0 up")
		if i == 0 {
			n.ip(bridge, "addr add 10.9.0.1/24 dev b0")
		}
	}
	for i, node := range []string{"client", "relay", "server"} {
		n.namespace(node)
		n.plug(node, "eth0", fmt.Sprintf("10.9.0.%d", 2+i), "control", 0)
	}
	n.plug("client", "radio0", "10.77.0.1", "client-air", 0)
	n.plug("relay", "in0", "10.77.0.2", "client-air", 0)
	n.plug("relay", "out0", "10.78.0.2", "server-air", 0)
	n.plug("server", "radio0", "10.78.0.3", "server-air", 0)
	n.ip("client", "route add 10.78.0.0/24 via 10.77.0.2")
	n.ip("server", "route add 10.77.0.0/24 via 10.78.0.2")
	n.do("relay", "sysctl", "-qw", "net.ipv4.ip_forward=1")
	n.start("control", "serve", "--listen", "10.9.0.1:7700", "--open", "--catalog", n.catalog())
	waitUntil(t, "the orchestrator", time.Minute, func() bool { return n.linktrial("nodes").Run() == nil }, func() string { return "" })
	return n
}

func (n *relayNetwork) catalog() string {
	n.t.Helper()
	dir, err := filepath.Abs(filepath.Join("testdata", "field"))
	if err != nil {
		n.t.Fatal(err)
	}
	return dir
}

func (n *relayNetwork) namespace(name string) {
	n.t.Helper()
	run := func(verb string) {
		if out, err := exec.Command("ip", "netns", verb, n.prefix+name).CombinedOutput(); err != nil {
			n.t.Fatalf("namespace %s: %v\n%s", name, err, out)
		}
	}
	run("add")
	n.t.Cleanup(func() { run("delete") })
	n.ip(name, "link set lo up")
	// A preflight in the seconds after an interface came up would find its questions for
	// IPv6 routers and neighbours on the radio.
	n.do(name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
}

// plug connects an interface of a node with a bridge, at 2 Mbit/s where that is a radio's.
func (n *relayNetwork) plug(node, device, address, bridge string, index int) {
	n.t.Helper()
	made := "link add " + device
	if index > 0 {
		made += fmt.Sprintf(" index %d", index)
	}
	far := node + device
	n.ip(node, fmt.Sprintf("%s type veth peer name %s netns %s", made, far, n.prefix+bridge))
	n.ip(bridge, "link set "+far+" master b0 up")
	n.ip(node, fmt.Sprintf("addr add %s/24 dev %s", address, device))
	n.ip(node, "link set "+device+" up")
	if bridge != "control" {
		n.do(node, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "2mbit", "burst", "16kb", "latency", "400ms")
	}
}

// ip changes a node's network as ip(8) does; nothing without a change.
func (n *relayNetwork) ip(node, change string) {
	n.t.Helper()
	if change != "" {
		n.do(node, append([]string{"ip"}, strings.Fields(change)...)...)
	}
}

func (n *relayNetwork) do(node string, args ...string) {
	n.t.Helper()
	if out, err := n.inside(node, args...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s at %s: %v\n%s", strings.Join(args, " "), node, err, out)
	}
}

func (n *relayNetwork) inside(node string, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.prefix + node}, args...)...)
	cmd.Dir = n.p.work
	cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+n.p.data, "LINKTRIAL_ORCHESTRATOR="+n.server)
	return cmd
}

func (n *relayNetwork) linktrial(args ...string) *exec.Cmd {
	return n.inside("control", append([]string{filepath.Join(n.p.bin, "linktrial")}, args...)...)
}

// start runs the program at a node until the test ends.
func (n *relayNetwork) start(node string, args ...string) {
	n.t.Helper()
	cmd := n.inside(node, append([]string{filepath.Join(n.p.bin, "linktrial")}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("%s at %s:\n%s", args[0], node, out.String())
		}
	})
}

func (n *relayNetwork) agent(role, device, address string, more ...string) {
	n.t.Helper()
	n.start(role, append([]string{"agent", "--role", role, "--radio", "bench-radio", "--device", device, "--radio-address", address, "--pin",
		"--state", filepath.Join(n.p.data, role), "--orchestrator", n.server}, more...)...)
}

// check holds the results against what was done to the relay.
func (n *relayNetwork) check() {
	t := n.t
	t.Helper()
	if out, err := n.linktrial("results", "--format", "json", "--out", filepath.Join(n.p.work, "results", "relay")).CombinedOutput(); err != nil {
		t.Fatalf("results: %v\n%s", err, out)
	}
	ds := n.p.exported()
	checkRun(t, ds)
	named := 0
	for _, tr := range ds.Runs[0].Trials {
		if tr.Verdict != journal.Succeeded {
			t.Errorf("trial %d of %s counts as %s: %s", tr.Index, tr.Treatment, tr.Verdict, attemptsOf(&tr))
		}
		for _, a := range tr.Attempts {
			if a.Verdict == journal.Failed || a.Verdict == journal.TimedOut {
				t.Errorf("an attempt at trial %d of %s counts against it: %s: %s", tr.Index, tr.Treatment, a.Reason, a.Message)
			}
			if a.Verdict == journal.Invalid {
				t.Logf("trial %d of %s: %s: %s", tr.Index, tr.Treatment, a.Reason, a.Message)
			}
			if a.Verdict == journal.Invalid && strings.Contains(a.Reason+a.Message, "the radio's interface out0 of the relay was not in order") {
				named++
			}
		}
	}
	if named == 0 {
		t.Error("no attempt is invalid because of out0")
	}
	for _, role := range []string{"relay", "server"} { // the plan has a rule about busy processors
		files, _ := filepath.Glob(filepath.Join(n.p.data, role, "runs", "*", "journal.jsonl"))
		if len(files) != 1 {
			t.Fatalf("journals of the %s: %q", role, files)
		}
		text, err := os.ReadFile(files[0])
		if err != nil || !bytes.Contains(text, []byte(`"host":{"missed_ns":`)) {
			t.Errorf("the journal of the %s does not say what its processors kept from programs (%v)", role, err)
		}
	}
}
