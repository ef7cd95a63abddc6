package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Three laptops without radios: a person points at an interface of each, the relay's two
// included, and client and server reach each other over it. The radios are there again
// after the power was lost and after an adapter was pulled, and removed they leave
// everything as it was.
func TestSetUpRadios(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	n := newSetUpNetwork(t, p)
	interfaces := map[string][]string{"alpha": {"usb0"}, "relay": {"in0", "out0"}, "beta": {"usb0"}}
	before := map[string]string{}
	for node, all := range interfaces {
		for _, device := range all {
			before[node+device] = n.looks(node, device)
		}
	}
	stop := n.start("alpha", n.agentArgs("alpha")...)
	n.start("relay", n.agentArgs("relay")...)
	n.start("beta", n.agentArgs("beta")...)
	n.await("three nodes", "nodes", "connected", 3)
	n.says(true, "usb0       possible", "nodes", "--interfaces", "alpha")
	n.says(false, "the way to the orchestrator goes over eth0", "node", "radio", "alpha", "--interface", "eth0")
	n.says(false, "this machine has no interface usb7; it has", "node", "radio", "alpha", "--interface", "usb7")

	n.says(true, "in0 has the address 10.77.0.2/24, and is the radio of this relay", "node", "radio", "relay", "--interface", "in0", "--role", "relay")
	n.says(true, "out0 has the address 10.77.1.2/24, and is the radio of this relay", "node", "radio", "relay", "--interface", "out0")
	n.says(true, "usb0 has the address 10.77.0.1/24, an MTU of 1400 bytes, a route to 10.77.1.0/24 over 10.77.0.2, and is the radio of this client", "node", "radio", "alpha", "--interface", "usb0", "--mtu", "1400")
	n.says(false, "another machine on the link of usb0 has the address 10.77.1.2", "node", "radio", "beta", "--interface", "usb0", "--address", "10.77.1.2/24", "--role", "server")
	n.says(true, "usb0 has the address 10.77.1.3/24, a route to 10.77.0.0/24 over 10.77.1.2, and is the radio of this server", "node", "radio", "beta", "--interface", "usb0")
	n.reaches("alpha", "10.77.1.3")
	n.says(true, "server  real, unnamed  10.77.1.3", "nodes")

	stop(unix.SIGKILL) // as without power; the kernel has been started again, too
	n.ip("alpha", "link set usb0 down")
	n.ip("alpha", "addr flush dev usb0")
	n.start("alpha", n.agentArgs("alpha")...)
	n.reaches("alpha", "10.77.1.3")
	n.ip("beta", "link del usb0")
	n.await("the fault", "nodes", "the radio's interface usb0 is gone", 1)
	n.adapter("beta", "usb0", "out-air")
	n.reaches("alpha", "10.77.1.3")

	for node, all := range interfaces {
		n.says(true, " before", "node", "radio", node, "--remove")
		for _, device := range all {
			if now := n.looks(node, device); now != before[node+device] {
				t.Errorf("%s of %s is %s, before %s", device, node, now, before[node+device])
			}
		}
	}
	n.says(false, "no radio was set up here", "node", "radio", "beta", "--remove")
}

func sum(s string) (out byte) {
	for _, c := range []byte(s) {
		out = out*31 + c
	}
	return out
}

type setUpNetwork struct{ relayNetwork }

// newSetUpNetwork makes three laptops on a control network, with adapters that nobody has
// configured.
func newSetUpNetwork(t *testing.T, p *program) *setUpNetwork {
	n := &setUpNetwork{relayNetwork{t: t, p: p, prefix: fmt.Sprintf("lt-su%d-%d-", os.Getpid(), time.Now().UnixNano()%1e6), server: "http://10.9.0.1:7700"}}
	for i, bridge := range []string{"control", "in-air", "out-air"} {
		n.namespace(bridge)
		n.ip(bridge, "link add b0 type bridge")
		n.ip(bridge, "link set b0 up")
		if i == 0 {
			n.ip(bridge, "addr add 10.9.0.1/24 dev b0")
		}
	}
	for i, node := range []string{"alpha", "relay", "beta"} {
		n.namespace(node)
		n.plug(node, "eth0", fmt.Sprintf("10.9.0.%d", 2+i), "control", 0)
	}
	n.adapter("alpha", "usb0", "in-air")
	n.adapter("relay", "in0", "in-air")
	n.adapter("relay", "out0", "out-air")
	n.adapter("beta", "usb0", "out-air")
	n.relayNetwork.start("control", "serve", "--listen", "10.9.0.1:7700", "--open")
	waitUntil(t, "the orchestrator", time.Minute, func() bool { return n.linktrial("nodes").Run() == nil }, func() string { return "" })
	return n
}

func (n *setUpNetwork) adapter(node, device, bridge string) {
	n.t.Helper()
	far := node + device
	// One that is pulled comes back with its hardware address, as other machines know it.
	n.ip(node, fmt.Sprintf("link add %s address 02:00:00:00:00:%02x type veth peer name %s netns %s", device, sum(far), far, n.prefix+bridge))
	n.ip(bridge, "link set "+far+" master b0 up")
}

// looks is what an interface is, without what another adapter has otherwise.
func (n *setUpNetwork) looks(node, device string) string {
	n.t.Helper()
	var out []string
	for _, args := range [][]string{{"-o", "link", "show", "dev", device}, {"-4", "-br", "addr", "show", "dev", device}, {"route", "show", "dev", device}} {
		b, err := n.inside(node, append([]string{"ip"}, args...)...).Output()
		if err != nil {
			n.t.Fatalf("ip %v at %s: %v", args, node, err)
		}
		text := string(b)
		if _, after, ok := strings.Cut(text, ">"); ok { // after index and flags
			text, _, _ = strings.Cut(after, "link/") // before its hardware address
		}
		// The kernel gives an interface its first queueing discipline when it comes up.
		out = append(out, strings.Join(strings.Fields(strings.ReplaceAll(text, "qdisc noop ", "qdisc noqueue ")), " "))
	}
	return strings.Join(out, "; ")
}

func (n *setUpNetwork) agentArgs(node string) []string {
	return []string{"agent", "--name", node, "--pin", "--state", filepath.Join(n.p.data, node), "--orchestrator", n.server}
}

// start runs the program at a node until the test ends, or until it is stopped.
func (n *setUpNetwork) start(node string, args ...string) (stop func(unix.Signal)) {
	n.t.Helper()
	cmd := n.inside(node, append([]string{filepath.Join(n.p.bin, "linktrial")}, args...)...)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	stop = func(s unix.Signal) {
		_ = cmd.Process.Signal(s) // it may have ended
		_ = cmd.Wait()
	}
	n.t.Cleanup(func() {
		if stop(unix.SIGINT); n.t.Failed() {
			n.t.Logf("%s at %s:\n%s", args[0], node, log.String())
		}
	})
	return stop
}

// says runs a command of a person, and holds its success and output against what is expected.
func (n *setUpNetwork) says(works bool, text string, args ...string) {
	n.t.Helper()
	out, err := n.linktrial(args...).CombinedOutput()
	if (err == nil) != works || !strings.Contains(string(out), text) {
		n.t.Fatalf("linktrial %s: %v\n%s\nexpected: %s", strings.Join(args, " "), err, out, text)
	}
}

func (n *setUpNetwork) await(what, command, text string, times int) {
	n.t.Helper()
	var out []byte
	waitUntil(n.t, what, time.Minute, func() bool {
		out, _ = n.linktrial(command).Output()
		return strings.Count(string(out), text) == times
	}, func() string { return string(out) })
}

// reaches waits until a node answers another one: nothing listens at the port, so its
// kernel says so at once.
func (n *setUpNetwork) reaches(node, address string) {
	n.t.Helper()
	var out []byte
	waitUntil(n.t, address+" answers "+node, 30*time.Second, func() bool {
		out, _ = n.inside(node, "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/"+address+"/1").CombinedOutput()
		return strings.Contains(string(out), "refused")
	}, func() string { return string(out) + n.looks(node, "usb0") })
}
