package docker_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/agents/runner/docker"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// The confinement's node has a radio and a control network, with a machine at
// the other end of each.
const (
	radioHere, radioPeer     = "10.91.1.1", "10.91.1.2"
	controlHere, controlPeer = "10.91.2.1", "10.91.2.2"
	secondHere, secondPeer   = "10.91.3.1", "10.91.3.2"
)

// nodeOrder has this test's program act as a node's agent: in a process of its
// own, because the runner's network is that of its process.
type nodeOrder struct {
	Agent            string // "node" where it is not said
	Engine, Holder   string
	Device, Protocol string
	Second           string   // interface of a second radio, which the parameters name
	Do               []string // one container each
	Flush            bool     // of all packet filters between two of them
	Sweep            bool     // of what an earlier one left, and nothing else
}

const nodeEnvironment = "LINKTRIAL_TEST_NODE"

// actAsNode prints what drivers told, and returns an exit code.
func actAsNode(order string) int {
	var o nodeOrder
	err := json.Unmarshal([]byte(order), &o)
	var r *docker.Runner
	if err == nil {
		r, err = docker.New(context.Background(), docker.Config{Agent: cmp.Or(o.Agent, "node"), Host: o.Engine, Holder: []string{o.Holder}, Device: o.Device})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := 0
	if o.Sweep {
		if err := r.Sweep(context.Background()); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	for i, do := range o.Do {
		if i > 0 && o.Flush {
			c, err := nftables.New()
			if err == nil {
				c.FlushRuleset()
				err = c.Flush()
			}
			if err != nil {
				fmt.Println(err)
				code = 1
			}
		}
		q := parameters(contract.RoleServer, 1)
		q.Options["do"] = do
		if o.Second != "" {
			q.Paths = []contract.Path{{Device: o.Device, Address: radioHere}, {Device: o.Second, Address: secondHere}}
		}
		p, err := r.Start(context.Background(), o.Protocol, q, nil)
		if err != nil {
			fmt.Println("start:", err)
			code = 1
			continue
		}
		_, _ = io.Copy(io.Discard, p.Output())
		<-p.Done()
		p.Output().Close()
		fmt.Print(p.Log())
	}
	if err := r.Close(context.Background()); err != nil {
		fmt.Println(err)
		code = 1
	}
	return code
}

// start has the order carried out in a node's network.
func (o nodeOrder) start(t *testing.T, node *os.File, out io.Writer) *exec.Cmd {
	t.Helper()
	o.Engine, o.Holder = engine.Host, holder
	order, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nodeEnvironment+"="+string(order))
	cmd.Stdout, cmd.Stderr = out, out
	if err := process.StartIn(cmd, at(node)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// filters counts the packet filter's tables in a network.
func filters(t *testing.T, in *os.File) int {
	t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(in.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := c.ListTables()
	if err != nil {
		t.Fatal(err)
	}
	return len(tables)
}

// at is a path by which a namespace can be entered from any process.
func at(f *os.File) string {
	return "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(f.Fd()))
}

func newNetwork(t *testing.T) *os.File {
	t.Helper()
	f, err := namespace.Unnamed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	h, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// join puts a cable between two networks.
func join(t *testing.T, here *os.File, name, address string, there *os.File, peer string) {
	t.Helper()
	h, err := netlink.NewHandleAt(netns.NsHandle(here.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "eth0", PeerNamespace: netlink.NsFd(int(there.Fd()))}
	veth.Name = name
	if err := h.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	up := func(in *os.File, name, address string) {
		h, err := netlink.NewHandleAt(netns.NsHandle(in.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		l, err := h.LinkByName(name)
		if err == nil {
			err = h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(24, 32)}})
		}
		if err == nil {
			err = h.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	up(here, name, address)
	up(there, "eth0", peer)
}

// answer has a machine say "here" to whoever comes to NETWORK/ADDRESS.
func answer(t *testing.T, in *os.File, address string) {
	t.Helper()
	network, address, _ := strings.Cut(address, "/")
	err := process.InNamespace(at(in), func() error {
		if network == "udp" {
			c, err := net.ListenPacket(network, address)
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				b := make([]byte, 16)
				for {
					_, from, err := c.ReadFrom(b)
					if err != nil {
						return // closed
					}
					_, _ = c.WriteTo([]byte("here"), from)
				}
			}()
			return nil
		}
		l, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return // closed
				}
				_, _ = c.Write([]byte("here"))
				c.Close()
			}
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A driver's container reaches the radio's peer and the listeners of drivers on its
// node, and neither the control network nor the node's own services, whatever its
// rights.
func TestOutboundOnlyByTheRadio(t *testing.T) {
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	importImage(t, "admin:latest", "admin", manifest("admin", "capabilities: [CAP_NET_ADMIN, CAP_NET_RAW]\n"), program(confined))
	peer := []string{"tcp/" + radioPeer + ":7001", "udp/" + radioPeer + ":7001", "mptcp/" + radioPeer + ":7001"}
	listener := []string{"tcp/" + radioHere + ":5001", "udp/" + radioHere + ":5001"} // of a driver on this node
	either := slices.Concat(peer, listener)
	addresses := append(slices.Clone(either),
		"tcp/127.0.0.1:5001", "udp/127.0.0.1:5001", "tcp/[::1]:5001", "tcp/"+controlPeer+":5001",
		"tcp/127.0.0.1:7001", "udp/127.0.0.1:7001", "tcp/[::1]:7001",
		"tcp/"+controlHere+":7001", "tcp/"+radioHere+":7001",
		"tcp/"+radioHere+":7001/from/5003", "udp/"+radioHere+":7001/from/5003", // as if it answered
		"tcp/"+controlPeer+":7001", "udp/"+controlPeer+":7001", "mptcp/"+controlPeer+":7001",
		"tcp/"+secondPeer+":7001", "mptcp/"+secondPeer+":7001",
	)
	reach := "reach " + strings.Join(addresses, " ")
	for _, c := range []struct {
		name     string
		order    nodeOrder
		reached  []string // of the addresses
		contains []string
	}{
		// What the others must not reach is there to be reached.
		{"not confined", nodeOrder{Device: "", Protocol: "confined", Do: []string{reach}}, addresses, []string{"Gid: 0 0 0 0"}},
		{"confined", nodeOrder{Device: "radio0", Protocol: "confined", Do: []string{reach, "sockets"}}, either,
			[]string{"Seccomp: 2", "socket IPv4: made", "socket IPv6: made", "socket routes: made", "socket generic netlink: refused", "socket multipath IPv4: refused", "socket multipath IPv6: refused", "socket unix: refused", "socket netfilter: refused", "socket packet: refused", "socket vsock: refused"}},
		{"confined with rights", nodeOrder{Device: "radio0", Protocol: "admin", Do: []string{reach, "sockets"}}, either,
			[]string{"CapEff: 0000000000003000", "socket routes: made", "socket generic netlink: made", "socket multipath IPv4: made", "socket netfilter: refused", "socket packet: refused"}},
		{"two radios", nodeOrder{Device: "radio0", Second: "radio1", Protocol: "admin", Do: []string{reach}}, slices.Concat(either, []string{"tcp/" + secondPeer + ":7001", "mptcp/" + secondPeer + ":7001"}), nil},
		{"a firewall that is loaded anew", nodeOrder{Device: "radio0", Protocol: "confined", Do: []string{"", reach}, Flush: true}, either, nil},
		{"a radio that is not there", nodeOrder{Device: "radio2", Protocol: "confined", Do: []string{reach}}, listener, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			node, peer, control, second := newNetwork(t), newNetwork(t), newNetwork(t), newNetwork(t)
			join(t, node, "radio0", radioHere, peer, radioPeer)
			join(t, node, "radio1", secondHere, second, secondPeer)
			join(t, node, "control0", controlHere, control, controlPeer)
			for _, l := range []string{"tcp/:7001", "udp/:7001", "tcp/:5001", "udp/:5001"} {
				answer(t, node, l)
				answer(t, peer, l)
				answer(t, control, l)
				answer(t, second, l)
			}
			c.order.Agent = strings.ReplaceAll(c.name, " ", "-")
			var out bytes.Buffer
			cmd := c.order.start(t, node, &out)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v", err)
			}
			for _, a := range addresses {
				want := a + ": not reached\n"
				if slices.Contains(c.reached, a) {
					want = a + ": here\n"
				}
				c.contains = append(c.contains, want)
			}
			for _, want := range c.contains {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
			// The filter goes with its drivers.
			if n := filters(t, node); n > 0 {
				t.Errorf("%d tables of the packet filter after the runner's end", n)
			}
		})
	}
}

// Who comes to a driver from elsewhere than the radio gets no connection.
func TestInboundOnlyByTheRadio(t *testing.T) {
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	node, peer, control := newNetwork(t), newNetwork(t), newNetwork(t)
	join(t, node, "radio0", radioHere, peer, radioPeer)
	join(t, node, "control0", controlHere, control, controlPeer)
	for _, c := range []struct {
		device string
		from   []string
	}{
		{"", []string{controlPeer, radioPeer}},
		{"radio0", []string{radioPeer}},
	} {
		var out bytes.Buffer
		cmd := nodeOrder{Device: c.device, Protocol: "confined", Do: []string{"accept :7002"}}.start(t, node, &out)
		ended := make(chan struct{})
		var coming sync.WaitGroup
		for _, v := range []struct {
			in *os.File
			to string
		}{{peer, radioHere}, {control, controlHere}} {
			coming.Go(func() {
				for {
					_ = process.InNamespace(at(v.in), func() error { // the driver tells who came
						c, err := net.DialTimeout("tcp", v.to+":7002", 200*time.Millisecond)
						if err == nil {
							c.Close()
						}
						return err
					})
					select {
					case <-ended:
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			})
		}
		err := cmd.Wait()
		close(ended)
		coming.Wait()
		if err != nil {
			t.Errorf("%v: %s", err, out.String())
		}
		for _, address := range []string{radioPeer, controlPeer} {
			if came := strings.Contains(out.String(), "accepted: "+address+"\n"); came != slices.Contains(c.from, address) {
				t.Errorf("device %q: %s came: %t", c.device, address, came)
			}
		}
	}
}

// Where drivers cannot be held to the radio, none is started.
func TestStartFailsWithoutConfinement(t *testing.T) {
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	r, err := docker.New(t.Context(), docker.Config{Agent: "long", Host: engine.Host, Holder: []string{holder}, Device: "a-name-too-long-for-linux"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(t.Context(), "confined", parameters(contract.RoleServer, 1), nil); err == nil || !strings.Contains(err.Error(), "at most 15 characters") {
		t.Errorf("a device that cannot be: %v", err)
	}
	if have := containers(t, "long"); strings.Contains(strings.Join(have, ","), "server") {
		t.Errorf("containers %q", have)
	}
	if err := r.Sweep(context.Background()); err != nil {
		t.Error(err)
	}
}

// An agent that is killed leaves its containers and its filter; the next start of
// the same agent takes them away.
func TestKilledAgent(t *testing.T) {
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	node := newNetwork(t)
	var out bytes.Buffer
	cmd := nodeOrder{Device: "lo", Protocol: "confined", Do: []string{"sleep"}}.start(t, node, &out)
	running := []string{"network running", "server running"}
	for begin := time.Now(); !slices.Equal(containers(t, "node"), running); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("containers %q: %s", containers(t, "node"), out.String())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if have := containers(t, "node"); !slices.Equal(have, running) || filters(t, node) != 1 {
		t.Errorf("after the kill: containers %q, %d filters; nothing would be left to remove", have, filters(t, node))
	}
	out.Reset()
	if err := (nodeOrder{Device: "lo", Protocol: "confined", Sweep: true}).start(t, node, &out).Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	if have := containers(t, "node"); len(have) > 0 || filters(t, node) != 0 {
		t.Errorf("after the next start: containers %q, %d filters", have, filters(t, node))
	}
}
