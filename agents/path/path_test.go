package path

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"linktrial/executor"
	"linktrial/internal/namespace"
	"linktrial/internal/testkind"
)

const all = executor.PathUDP | executor.PathUDPFull | executor.PathTCP | executor.PathTCPFull | executor.PathICMP

// nodes are two namespaces with a veth pair between them, which stands for a radio.
type nodes struct {
	t     *testing.T
	names [2]string
}

// made counts the namespaces of this process.
var made atomic.Int32

func newNodes(t *testing.T) *nodes {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	n := &nodes{t: t}
	for i := range n.names {
		n.names[i] = fmt.Sprintf("ltpath-%d-%d", os.Getpid(), made.Add(1))
		require.NoError(t, namespace.Make(n.names[i]))
		t.Cleanup(func() { require.NoError(t, namespace.Remove(n.names[i])) })
	}
	n.run("ip", "-n", n.names[0], "link", "add", "radio0", "type", "veth", "peer", "name", "radio0", "netns", n.names[1])
	for i := range n.names {
		n.run("ip", "netns", "exec", n.names[i], "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.radio0.disable_ipv6=0")
		n.ip(i, "link", "set", "lo", "up")
		n.ip(i, "address", "add", fmt.Sprintf("10.98.0.%d/24", i+1), "dev", "radio0")
		n.ip(i, "address", "add", fmt.Sprintf("fd98::%d/64", i+1), "dev", "radio0", "nodad")
		n.ip(i, "link", "set", "radio0", "up")
	}
	return n
}

func (n *nodes) run(command ...string) {
	n.t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	require.NoError(n.t, err, "%s: %s", strings.Join(command, " "), out)
}

func (n *nodes) ip(i int, args ...string) {
	n.t.Helper()
	n.run(append([]string{"ip", "-n", n.names[i]}, args...)...)
}

// drop has the firewall of a node drop what a rule is about (iptables, which
// scripts/install-docker installs).
func (n *nodes) drop(i int, chain string, rules ...string) {
	n.t.Helper()
	for _, rule := range rules {
		n.run(append([]string{"ip", "netns", "exec", n.names[i], "iptables", "-A", chain, "-j", "DROP"}, strings.Fields(rule)...)...)
	}
}

func (n *nodes) allow(i int) { n.run("ip", "netns", "exec", n.names[i], "iptables", "-F") }

// respond answers on the second node, in a process of its own, until the test ends.
func (n *nodes) respond(from, to string) {
	n.t.Helper()
	c := n.command(1, "respond", to)
	require.NoError(n.t, c.Start())
	n.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // killed
	})
	n.awaitAnswer(from, to)
}

// awaitAnswer waits until the second node answers: its port is refused before.
func (n *nodes) awaitAnswer(from, to string) {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return n.ask(from, to, executor.PathUDP|executor.PathTCP, 5*time.Second).Node != nil }, long, 10*time.Millisecond)
}

// ask exchanges packets from the first node.
func (n *nodes) ask(from, to string, methods executor.PathMethods, patience time.Duration) (x executor.PathExchange) {
	n.t.Helper()
	c := n.command(0, "ask", from, to, fmt.Sprint(uint8(methods)), patience.String())
	out, err := c.Output()
	require.NoError(n.t, err)
	require.NoError(n.t, json.Unmarshal(out, &x))
	return x
}

// command is this test's own program in a namespace: sockets belong to that of the thread
// that opens them.
func (n *nodes) command(i int, args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(n.t, err)
	c := exec.Command("ip", append([]string{"netns", "exec", n.names[i], self}, args...)...)
	c.Env, c.Stderr = append(os.Environ(), "LINKTRIAL_PATH_TEST=1"), os.Stderr
	return c
}

var testKey = NewKey("r", []byte("signature"))

var said = executor.NodeState{Listeners: []executor.ListenerReport{{Treatment: "haul", Port: 5005, Up: true, UpFor: time.Hour}}}

// node is what [nodes.command] runs.
func node(args []string) error {
	switch args[0] {
	case "respond":
		Respond(context.Background(), End{Address: args[1], Device: "radio0", Key: testKey}, func(q executor.PathQuestion) executor.NodeState {
			s := said
			s.Since = q.Since
			return s
		}, slog.New(slog.DiscardHandler))
		return nil
	case "ask":
		methods, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		patience, err := time.ParseDuration(args[4])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		p := &Paths{Device: "radio0", Key: testKey}
		return json.NewEncoder(os.Stdout).Encode(p.Exchange(ctx, executor.PathEnds{From: args[1], To: args[2]}, executor.PathMethods(methods), executor.PathQuestion{Since: time.Minute, Treatments: []string{"haul"}}))
	}
	return portNode(args)
}

func TestMain(m *testing.M) {
	if os.Getenv("LINKTRIAL_PATH_TEST") != "" {
		if err := node(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The tests wait for packets that do not come, each between nodes of its own.
	testkind.AtOnce(4)
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"))
}

const long = time.Minute // for what passes, which does not take so long

// Over a path in order everything passes within moments, over IPv4 and IPv6, and the node
// says what it knows.
func TestExchange(t *testing.T) {
	t.Parallel()
	n := newNodes(t)
	for _, ends := range [][2]string{{"10.98.0.1", "10.98.0.2"}, {"fd98::1", "fd98::2"}} {
		n.respond(ends[0], ends[1])
		x := n.ask(ends[0], ends[1], all, long)
		require.Equal(t, all, x.Passed)
		require.Empty(t, x.Fault)
		want := said
		want.Since = time.Minute
		require.Equal(t, &want, x.Node)
		x = n.ask(ends[0], ends[1], executor.PathUDP, long)
		require.Equal(t, executor.PathUDP, x.Passed)
		require.Equal(t, &want, x.Node, "in a small datagram, too")
	}
}

// What does not pass is told from what does.
func TestExchangeThatDoesNotPass(t *testing.T) {
	t.Parallel()
	const from, to = "10.98.0.1", "10.98.0.2"
	for name, c := range map[string]struct {
		rules  []string
		passes executor.PathMethods
	}{
		"udp":          {[]string{"-p udp"}, executor.PathTCP | executor.PathTCPFull | executor.PathICMP},
		"tcp":          {[]string{"-p tcp"}, executor.PathUDP | executor.PathUDPFull | executor.PathICMP},
		"icmp":         {[]string{"-p icmp"}, all &^ executor.PathICMP},
		"full packets": {[]string{"-m length --length 1001:65535"}, executor.PathUDP | executor.PathTCP | executor.PathICMP},
		"all":          {[]string{"-p all"}, 0},
		"all but icmp": {[]string{"-p tcp", "-p udp"}, executor.PathICMP},
		"another port": {[]string{"-p udp --dport 5005"}, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNodes(t)
			n.respond(from, to)
			for _, at := range []int{0, 1} { // the answers, and the questions
				n.drop(at, "INPUT", c.rules...)
				x := n.ask(from, to, all, 4*time.Second)
				n.allow(at)
				require.Equal(t, c.passes, x.Passed, "at %d", at)
				require.Equal(t, c.passes&^executor.PathICMP != 0, x.Node != nil)
				require.Empty(t, x.Fault)
			}
		})
	}
}

// A node on which nobody listens, one that refuses, and one that cannot send are told from
// each other, and full packets that are lost from a channel that loses any.
func TestWhyAnExchangeDoesNotPass(t *testing.T) {
	t.Parallel()
	n := newNodes(t)
	const from, to = "10.98.0.1", "10.98.0.2"
	// Nobody answers there, and the node refuses.
	x := n.ask(from, to, executor.PathUDP|executor.PathTCP, long)
	require.Equal(t, executor.PathUDP|executor.PathTCP, x.Passed)
	require.Equal(t, x.Passed, x.Refused)
	require.Nil(t, x.Node)

	n.respond(from, to)
	// A firewall that refuses is told from a node on which nobody listens.
	n.run("ip", "netns", "exec", n.names[1], "iptables", "-A", "INPUT", "-p", "udp", "-j", "REJECT")
	x = n.ask(from, to, all, long)
	n.allow(1)
	require.Equal(t, executor.PathUDP|executor.PathUDPFull, x.Refused)
	require.NotNil(t, x.Node)
	// Full packets that are lost are told from a channel that loses any.
	n.drop(1, "INPUT", "-m length --length 1001:65535")
	x = n.ask(from, to, all, 8*time.Second)
	require.Equal(t, x.Small, x.SmallBack, "no small one is lost")
	require.Greater(t, x.Small, 15)
	require.Greater(t, x.Full, 15)
	n.allow(1)
	// What this node itself does not let out is its own fault.
	n.drop(0, "OUTPUT", "-p udp", "-p tcp", "-p icmp")
	x = n.ask(from, to, all, time.Second)
	n.allow(0)
	require.Zero(t, x.Passed)
	require.Equal(t, "operation not permitted", x.Fault)

	n.ip(0, "address", "del", from+"/24", "dev", "radio0")
	x = n.ask(from, to, all, time.Second)
	require.Zero(t, x.Passed)
	require.Equal(t, "cannot assign requested address", x.Fault)
}

// An interface that comes back as another one, with the same name and address, leaves no
// responder deaf.
func TestResponderOutlastsItsInterface(t *testing.T) {
	t.Parallel()
	n := newNodes(t)
	const from, to = "10.98.0.1", "10.98.0.2"
	n.respond(from, to)
	n.ip(1, "link", "del", "radio0")
	n.run("ip", "-n", n.names[0], "link", "add", "radio0", "type", "veth", "peer", "name", "radio0", "netns", n.names[1])
	for i := range n.names {
		n.ip(i, "address", "add", fmt.Sprintf("10.98.0.%d/24", i+1), "dev", "radio0")
		n.ip(i, "link", "set", "radio0", "up")
	}
	n.awaitAnswer(from, to)
	require.Equal(t, all, n.ask(from, to, all, long).Passed)
}
