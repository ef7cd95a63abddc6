package tun

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	network "linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
)

// hang bounds every wait: it is there to end a hanging test, not to time one.
const hang = 30 * time.Second

var names atomic.Int64

// namespace makes a network namespace for the test.
func namespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("ltun-%d-%d", os.Getpid(), names.Add(1))
	t.Cleanup(func() {
		if err := network.Remove(name); err != nil {
			t.Error(err)
		}
	})
	if err := network.Make(name); err != nil {
		t.Fatal(err)
	}
	return name
}

func in(t *testing.T, ns string, f func() error) {
	t.Helper()
	if err := process.InNamespace(network.Path(ns), f); err != nil {
		t.Fatal(err)
	}
}

// rig is an emulator between namespaces.
type rig struct {
	cfg Config
	ns  map[radio.Role]string
	*Emulator
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces and TUN devices")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs /dev/net/tun: ", err)
	}
}

func up(t *testing.T, n *radio.Network) *rig {
	t.Helper()
	return start(t, n, false)
}

func start(t *testing.T, n *radio.Network, shared bool) *rig {
	t.Helper()
	needRoot(t)
	r := &rig{ns: map[radio.Role]string{}, cfg: Config{
		Device: "radio0", Network: n, Shared: shared, ControlSocket: filepath.Join(t.TempDir(), "control"),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
	for _, v := range n.Nodes {
		r.ns[v.Role] = namespace(t)
		r.cfg.Nodes = append(r.cfg.Nodes, NodeConfig{Role: v.Role, NetNS: r.ns[v.Role], Address: v.Address})
	}
	e, err := Start(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Emulator = e
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return r
}

func (r *rig) dial(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.Dial(r.cfg.ControlSocket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}

// chain is client – relay – server on one shared medium.
func chain() *radio.Network {
	n := &radio.Network{MTUBytes: 1400, Medium: radio.MediumShared, Queue: radio.Queue{Bytes: 256 << 10}}
	for _, r := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
		n.Nodes = append(n.Nodes, radio.Node{Role: r, Address: radio.Addresses[r]})
	}
	for _, l := range [][2]radio.Role{{radio.RoleClient, radio.RoleRelay}, {radio.RoleRelay, radio.RoleServer}} {
		n.Links = append(n.Links, radio.Link{A: l[0], B: l[1], RateBitsPerSecond: 20e6, Delay: time.Millisecond,
			Channel: radio.Channel{Model: radio.ChannelPerfect}})
	}
	return n
}

// pair is client – server, full duplex, fast.
func pair() *radio.Network {
	n := chain()
	n.Nodes = []radio.Node{n.Nodes[0], n.Nodes[2]}
	n.Medium = radio.MediumFullDuplex
	n.Links = n.Links[:1]
	n.Links[0].B = radio.RoleServer
	n.Links[0].RateBitsPerSecond = 200e6
	return n
}

func TestPing(t *testing.T) {
	r := up(t, chain())
	var conn *icmp.PacketConn
	in(t, r.ns[radio.RoleClient], func() (err error) {
		conn, err = icmp.ListenPacket("ip4:icmp", "10.77.0.1")
		return err
	})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(hang))
	for seq := range 3 {
		m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: 77, Seq: seq, Data: []byte("over the air")}}
		b, err := m.Marshal(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.WriteTo(b, &net.IPAddr{IP: net.ParseIP("10.77.0.3")}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1500)
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			t.Fatal(err)
		}
		got, err := icmp.ParseMessage(1, buf[:n])
		if err != nil || got.Type != ipv4.ICMPTypeEchoReply || from.String() != "10.77.0.3" {
			t.Fatalf("got %+v from %s, %v", got, from, err)
		}
	}
}

// transfer sends size bytes by TCP from client to server and waits for the end.
func (r *rig) transfer(t *testing.T, size int64) {
	t.Helper()
	var ln net.Listener
	in(t, r.ns[radio.RoleServer], func() (err error) {
		ln, err = net.Listen("tcp4", "10.77.0.3:7000")
		return err
	})
	defer ln.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(hang))
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	var c net.Conn
	in(t, r.ns[radio.RoleClient], func() (err error) {
		c, err = net.DialTimeout("tcp4", "10.77.0.3:7000", hang)
		return err
	})
	c.SetDeadline(time.Now().Add(hang))
	if _, err := io.CopyN(c, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := <-got; n != size {
		t.Fatalf("%d bytes arrived, expected %d", n, size)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestTrialOverTCP(t *testing.T) {
	n := chain()
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: 0.01}
	r := up(t, n)
	c := r.dial(t)
	ctx := timeout(t)
	log := filepath.Join(t.TempDir(), "trial.pcapng")
	const size = 256 << 10
	flow := radiocontrol.Flow{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: size}
	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "a/1", Seed: 42, Flows: []radiocontrol.Flow{flow}, Capture: log}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r.transfer(t, size)
	rep, err := c.End(ctx, "a/1")
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if len(rep.Hops) != 4 || len(rep.Ideal) != 1 || len(rep.CodedBound) != 1 {
		t.Fatalf("report %+v", rep)
	}
	if rep.Ideal[0] <= 0 || rep.Ideal[0] > rep.Duration || rep.Duration > took+time.Second {
		t.Errorf("ideal %s, duration %s, measured %s", rep.Ideal[0], rep.Duration, took)
	}
	if rep.CodedBound[0] < rep.Ideal[0] {
		t.Errorf("coded bound %s, ideal %s", rep.CodedBound[0], rep.Ideal[0])
	}
	if rep.BusyShare <= 0 || rep.BusyShare > 1 {
		t.Errorf("busy share %g", rep.BusyShare)
	}
	var sent, lost int64
	for _, h := range rep.Hops {
		sent += h.SentPackets
		lost += h.LostPackets
		if h.SentPackets == 0 {
			t.Errorf("nothing sent on hop %s to %s", h.From, h.To)
		}
	}
	s, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ideal %s of %s, busy %.2f, %d packets on the air, %d lost, late %s median %s max", rep.Ideal[0], rep.Duration, rep.BusyShare, sent, lost, s.LateMedian, s.LateMax)
	checkCapture(t, log, rep)
}

// checkCapture has tshark read the packet log and compares it with the counters.
func checkCapture(t *testing.T, path string, rep *radiocontrol.Report) {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("needs tshark to read the packet log")
	}
	out, err := exec.Command(tshark, "-n", "-r", path, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.comment", "-e", "ip.src", "-e", "ip.len").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	type count struct{ packets, lost, dropped, bytes int64 }
	got := map[string]*count{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 || !strings.HasPrefix(f[2], "10.77.0.") {
			t.Fatalf("line %q", line)
		}
		k := got[f[0]]
		if k == nil {
			k = &count{}
			got[f[0]] = k
		}
		switch {
		case strings.HasPrefix(f[1], "dropped"):
			k.dropped++
			continue
		case strings.HasPrefix(f[1], "lost"):
			k.lost++
		}
		k.packets++
		var n int64
		fmt.Sscan(f[3], &n)
		k.bytes += n
	}
	for _, h := range rep.Hops {
		k := got[fmt.Sprintf("%s-%s", h.From, h.To)]
		if k == nil || k.packets != h.SentPackets || k.lost != h.LostPackets || k.dropped != h.DroppedPackets || k.bytes != h.SentBytes {
			t.Errorf("hop %s to %s: the log has %+v, counters say %+v", h.From, h.To, k, h)
		}
	}
}

// udp opens a socket in a node's namespace.
func (r *rig) udp(t *testing.T, role radio.Role, port int) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	in(t, r.ns[role], func() (err error) {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(radio.Addresses[role]), Port: port})
		return err
	})
	t.Cleanup(func() { c.Close() })
	c.SetReadBuffer(4 << 20)
	return c
}

// received reads numbered packets until none comes for a while after until.
func received(t *testing.T, c *net.UDPConn, expect int) map[uint32]bool {
	t.Helper()
	got := map[uint32]bool{}
	b := make([]byte, 2000)
	for len(got) < expect {
		c.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := c.Read(b)
		if err != nil {
			break
		}
		if n >= 4 {
			got[binary.BigEndian.Uint32(b)] = true
		}
	}
	return got
}
