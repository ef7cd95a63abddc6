package tun

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
)

// blast sends numbered packets from client to server, a little apart.
func (r *rig) blast(t *testing.T, from *net.UDPConn, n, bytes int) {
	t.Helper()
	to := &net.UDPAddr{IP: net.ParseIP(radio.Addresses[radio.RoleServer]), Port: 7001}
	b := make([]byte, bytes)
	for i := range n {
		binary.BigEndian.PutUint32(b, uint32(i))
		if _, err := from.WriteToUDP(b, to); err != nil {
			t.Fatal(err)
		}
		if i%32 == 31 {
			time.Sleep(500 * time.Microsecond) // so that no buffer of the kernel overflows
		}
	}
}

func TestLossIsAsConfiguredAndCounted(t *testing.T) {
	const packets, loss = 5000, 0.1
	n := pair()
	n.Queue = radio.Queue{}
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: loss}
	r := up(t, n)
	c, ctx := r.dial(t), timeout(t)
	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "x", Seed: 5}); err != nil {
		t.Fatal(err)
	}
	from, to := r.udp(t, radio.RoleClient, 0), r.udp(t, radio.RoleServer, 7001)
	done := make(chan map[uint32]bool, 1)
	go func() { done <- received(t, to, packets) }()
	r.blast(t, from, packets, 200)
	got := <-done
	rep, err := c.End(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	h := rep.Hops[0]
	if h.SentPackets != packets || h.SentBytes != packets*228 || h.DeliveredPackets != int64(len(got)) || h.LostPackets+h.DeliveredPackets != packets || h.DroppedPackets != 0 {
		t.Errorf("sent %d, received %d, counted %+v", packets, len(got), h)
	}
	if sd := math.Sqrt(loss * (1 - loss) / packets); math.Abs(float64(h.LostPackets)/packets-loss) > 4*sd {
		t.Errorf("lost %d of %d, configured %g", h.LostPackets, packets, loss)
	}
	if want := time.Duration(packets * 228 * 8e9 / 200e6); h.Airtime != want {
		t.Errorf("airtime %s, expected %s", h.Airtime, want)
	}
}

func TestFullQueueDropsTail(t *testing.T) {
	n := pair()
	n.Links[0].RateBitsPerSecond = 1e6
	n.Queue = radio.Queue{Packets: 10}
	r := up(t, n)
	c, ctx := r.dial(t), timeout(t)
	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "x", Seed: 5}); err != nil {
		t.Fatal(err)
	}
	from, to := r.udp(t, radio.RoleClient, 0), r.udp(t, radio.RoleServer, 7001)
	r.blast(t, from, 31, 1300) // in one go: 11 ms each on the air
	got := received(t, to, 31)
	rep, err := c.End(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	h := rep.Hops[0]
	if int(h.DeliveredPackets) != len(got) || h.DroppedPackets+h.SentPackets != 31 || h.DroppedPackets < 5 || h.MaxQueueBytes != 10*1328 {
		t.Errorf("received %d, counted %+v", len(got), h)
	}
	for i := range uint32(11) {
		if !got[i] {
			t.Errorf("packet %d is missing: the head of the queue was dropped", i)
		}
	}
}

func TestTrialBoundaries(t *testing.T) {
	n := pair()
	n.Links[0].RateBitsPerSecond = 16e3 // a packet of 500 bytes takes 250 ms
	r := up(t, n)
	c, ctx := r.dial(t), timeout(t)
	flow := radiocontrol.Flow{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1000}
	refused := func(what string, err error, words ...string) {
		t.Helper()
		var ref *client.Refused
		if !errors.As(err, &ref) {
			t.Fatalf("%s: %v, expected a refusal", what, err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", what, err, w)
			}
		}
	}
	_, err := c.End(ctx, "none")
	refused("end without begin", err, "no trial runs")
	refused("flow to nowhere", c.Begin(ctx, radiocontrol.Begin{Flows: []radiocontrol.Flow{{From: radio.RoleClient, To: radio.RoleRelay}}}), "no way", "relay")
	refused("negative size", c.Begin(ctx, radiocontrol.Begin{Flows: []radiocontrol.Flow{{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: -1}}}))
	refused("relative packet log", c.Begin(ctx, radiocontrol.Begin{Capture: "x.pcapng"}), "absolute")
	refused("packet log in no folder", c.Begin(ctx, radiocontrol.Begin{Capture: filepath.Join(t.TempDir(), "none", "x.pcapng")}), "no such file")

	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "one", Seed: 1, Flows: []radiocontrol.Flow{flow}}); err != nil {
		t.Fatal(err)
	}
	from, to := r.udp(t, radio.RoleClient, 0), r.udp(t, radio.RoleServer, 7001)
	r.blast(t, from, 6, 472)
	if s, err := c.Status(ctx); err != nil || s.Trial != "one" || s.PID != os.Getpid() || s.Network.Links[0].RateBitsPerSecond != 16e3 {
		t.Errorf("status %+v, %v", s, err)
	}
	_, err = c.End(ctx, "two")
	refused("end of another trial", err, `"one" runs`)
	received(t, to, 1) // one has come out, others wait
	// The next trial finds empty queues and counters, also where the one
	// before was never ended.
	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "two", Seed: 1, Flows: []radiocontrol.Flow{flow, flow}}); err != nil {
		t.Fatal(err)
	}
	if got := received(t, to, 1); len(got) != 0 {
		t.Errorf("packets %v of the trial before came out", got)
	}
	rep, err := c.End(ctx, "two")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range rep.Hops {
		if h.SentPackets != 0 || h.MaxQueueBytes != 0 {
			t.Errorf("the new trial begins with %+v", h)
		}
	}
	if len(rep.Ideal) != 2 || rep.Ideal[0] != rep.Ideal[1] || rep.Ideal[0] <= 500*time.Millisecond {
		t.Errorf("ideal %v", rep.Ideal)
	}
	if len(rep.CodedBound) != 2 || rep.CodedBound[0] != rep.CodedBound[1] || rep.CodedBound[0] < rep.Ideal[0] {
		t.Errorf("coded bound %v, ideal %v", rep.CodedBound, rep.Ideal)
	}
}

// After a trial the radios are quiet when they have carried nothing for twice the time of a
// full packet, and at once where their queues are emptied.
func TestQuiet(t *testing.T) {
	n := pair()
	n.Links[0].RateBitsPerSecond = 16e3 // a packet of 500 bytes takes 250 ms
	n.MTUBytes = 1000                   // a full one half a second, so a second without any is quiet
	r := up(t, n)
	c, ctx := r.dial(t), timeout(t)
	from, to := r.udp(t, radio.RoleClient, 0), r.udp(t, radio.RoleServer, 7001)
	quiet := func(want bool) {
		t.Helper()
		began := time.Now()
		got, err := c.Quiet(ctx, radiocontrol.Quiet{})
		if err != nil || got != want || time.Since(began) > 2*quietSlice {
			t.Fatalf("quiet: %t after %s (%v), expected %t", got, time.Since(began), err, want)
		}
	}
	r.blast(t, from, 20, 472) // 5 s
	quiet(false)
	emptied := time.Now()
	for flush, done := true, false; !done; flush = false {
		var err error
		if done, err = c.Quiet(ctx, radiocontrol.Quiet{Flush: flush}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(emptied); took < 900*time.Millisecond {
		t.Errorf("the radios were quiet %s after their queues were emptied, expected about a second", took)
	}
	if got := received(t, to, 20); len(got) == 0 || len(got) > 10 {
		t.Errorf("%d packets came out, expected those of about a second", len(got))
	}
	quiet(true)
}

func TestConfigure(t *testing.T) {
	r := up(t, pair())
	c, ctx := r.dial(t), timeout(t)
	n := pair()
	n.MTUBytes = 900
	n.Links[0].RateBitsPerSecond = 5e6
	if err := c.Configure(ctx, n); err != nil {
		t.Fatal(err)
	}
	in(t, r.ns[radio.RoleClient], func() error {
		l, err := netlink.LinkByName("radio0")
		if err == nil && l.Attrs().MTU != 900 {
			t.Errorf("MTU %d, expected 900", l.Attrs().MTU)
		}
		return err
	})
	if s, err := c.Status(ctx); err != nil || s.Network.MTUBytes != 900 || s.Network.Links[0].RateBitsPerSecond != 5e6 {
		t.Errorf("status %+v, %v", s, err)
	}
	r.transfer(t, 50_000)
	n.Nodes[0].Address = "10.99.0.1"
	n.Links[0].RateBitsPerSecond = 0
	if err := c.Configure(ctx, n); err == nil || !strings.Contains(err.Error(), "rate") {
		t.Errorf("a network of no rate: %v", err)
	}
	if err := c.Configure(ctx, chain()); err == nil || !strings.Contains(err.Error(), "relay has no device") {
		t.Errorf("a network of nodes without devices: %v", err)
	}
}

func TestUnroutableIsCounted(t *testing.T) {
	r := up(t, pair())
	c, ctx := r.dial(t), timeout(t)
	from := r.udp(t, radio.RoleClient, 0)
	for range 3 {
		if _, err := from.WriteToUDP([]byte("x"), &net.UDPAddr{IP: net.IPv4(10, 77, 0, 99), Port: 9}); err != nil {
			t.Fatal(err)
		}
	}
	for start := time.Now(); time.Since(start) < hang; time.Sleep(5 * time.Millisecond) {
		s, err := c.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if s.Unroutable == 3 {
			return
		}
	}
	t.Error("packets to an address that no node has were not counted")
}

func TestBadRequestsAreAnsweredAndSurvived(t *testing.T) {
	r := up(t, pair())
	conn, err := net.Dial("unix", r.cfg.ControlSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(hang))
	lines := bufio.NewScanner(conn)
	for _, line := range []string{"", "nonsense", "{}", `{"status":{},"end":{"trial":"x"}}`, `{"stats":{}}`, `{"status":{},"quiet":{}}`, `{"quiet":{"flash":true}}`, `{"status":{}} {"status":{}}`, `{"begin":{"seed":"-1"}}`, `{"configure":{}}`} {
		fmt.Fprintln(conn, line)
		var rep radiocontrol.Reply
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &rep) != nil || rep.Error == "" {
			t.Errorf("%q is answered %q", line, lines.Text())
		}
	}
	// A line without end costs that client its connection, and no other.
	big := strings.Repeat("x", maxRequestBytes+1)
	io.WriteString(conn, big)
	if lines.Scan() {
		t.Errorf("a line of %d bytes is answered %q", len(big), lines.Text())
	}
	if _, err := r.dial(t).Status(timeout(t)); err != nil {
		t.Error(err)
	}
}

func TestRemovedDeviceEndsTheEmulator(t *testing.T) {
	needRoot(t)
	n := pair()
	r := &rig{ns: map[radio.Role]string{}, cfg: Config{Network: n}}
	for _, v := range n.Nodes {
		r.ns[v.Role] = namespace(t)
		r.cfg.Nodes = append(r.cfg.Nodes, NodeConfig{Role: v.Role, NetNS: r.ns[v.Role], Address: v.Address})
	}
	e, err := Start(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	in(t, r.ns[radio.RoleServer], func() error {
		l, err := netlink.LinkByName("radio0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
	select {
	case <-e.Done():
	case <-time.After(hang):
		t.Error("the loop did not notice")
	}
	if err := e.Stop(); err == nil || !strings.Contains(err.Error(), "10.77.0.3") {
		t.Errorf("ended with %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	needRoot(t)
	ns := namespace(t)
	good := func() Config {
		n := pair()
		return Config{Network: n, Nodes: []NodeConfig{
			{Role: radio.RoleClient, NetNS: ns, Address: "10.77.0.1"}, {Role: radio.RoleServer, NetNS: namespace(t), Address: "10.77.0.3"}}}
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no network":        {func(c *Config) { c.Network = nil }, "no network"},
		"bad network":       {func(c *Config) { c.Network.Medium = "air" }, `"air"`},
		"no such namespace": {func(c *Config) { c.Nodes[1].NetNS = "ltun-none" }, "ltun-none"},
		"bad address":       {func(c *Config) { c.Nodes[0].Address = "fe80::1" }, "IPv4"},
		"another address":   {func(c *Config) { c.Nodes[0].Address = "10.77.0.9" }, "10.77.0.9"},
		"node without":      {func(c *Config) { c.Nodes = c.Nodes[:1] }, "server has no device"},
		"twice":             {func(c *Config) { c.Nodes = append(c.Nodes, c.Nodes[0]) }, "two nodes"},
		"same namespace":    {func(c *Config) { c.Nodes[1].NetNS = ns }, "already"},
		"device name":       {func(c *Config) { c.Device = "a/b" }, `"a/b"`},
		"socket folder":     {func(c *Config) { c.ControlSocket = filepath.Join(t.TempDir(), "none", "s") }, "control socket"},
	} {
		c := good()
		tc.change(&c)
		e, err := Start(c)
		if err == nil {
			e.Stop()
			t.Errorf("%s: started", name)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q does not say %q", name, err, tc.want)
		}
	}
}

func TestControlSocketOfAnother(t *testing.T) {
	r := up(t, pair())
	second := r.cfg
	second.Device = "radio1"
	if e, err := Start(second); err == nil {
		e.Stop()
		t.Error("two emulators on one socket")
	} else if !strings.Contains(err.Error(), "another emulator") {
		t.Error(err)
	}
	// A file left by a killed process is replaced.
	path := filepath.Join(t.TempDir(), "left")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	second.ControlSocket = path
	e, err := Start(second)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket was left behind: %v", err)
	}
}

func TestConfigTravelsAsJSON(t *testing.T) {
	in := Config{Device: "radio0", Network: chain(), ControlSocket: "/run/x", Nodes: []NodeConfig{{radio.RoleClient, "ns", "10.77.0.1"}},
		Logger: slog.Default(), Ready: func() {}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Config
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(out)
	if err != nil || string(again) != string(b) {
		t.Errorf("%s\n%s\n%v", b, again, err)
	}
}

// marks reads packets until all have come or none comes any more, and counts
// those with congestion experienced.
func marks(t *testing.T, from *net.UDPConn, want int) (arrived, marked int) {
	t.Helper()
	raw, err := from.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var serr error
	if err := raw.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1) }); err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	b, oob := make([]byte, 2000), make([]byte, 100)
	for arrived < want {
		if err := from.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, n, _, _, err := from.ReadMsgUDP(b, oob)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return arrived, marked
		}
		if err != nil {
			t.Fatal(err)
		}
		arrived++
		cms, err := unix.ParseSocketControlMessage(oob[:n])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range cms {
			if m.Header.Type == unix.IP_TOS && m.Data[0]&3 == 3 {
				marked++
			}
		}
	}
	return arrived, marked
}

// A trial over the layers of a radio: marks reach the receiver with a valid
// header, frames are counted, and the report tells of the channel.
func TestLayersOnTheDevices(t *testing.T) {
	const packets = 300
	n := pair()
	n.Links[0].RateBitsPerSecond = 4e6
	n.Framing = &radio.Framing{FrameBytes: 200, HeaderBytes: 10}
	n.ARQ = &radio.ARQ{NACKTimerFrames: 5, Persistence: 9, InOrder: true}
	n.Queue = radio.Queue{Bytes: 1 << 20, RED: &radio.RED{MinBytes: 2000, MaxBytes: 500_000, Weight: 0.5, MaxProbability: 0.5, ECN: true}}
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelMarkov, Alpha: 0.05, Beta: 0.5, Slot: time.Millisecond}
	n.Links[0].Back = &radio.Channel{Model: radio.ChannelPerfect}
	r := up(t, n)
	c, ctx := r.dial(t), timeout(t)
	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "x", Seed: 5, Flows: []radiocontrol.Flow{{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: packets * 500}}}); err != nil {
		t.Fatal(err)
	}
	from, to := r.udp(t, radio.RoleClient, 0), r.udp(t, radio.RoleServer, 7001)
	p := ipv4.NewConn(from)
	if err := p.SetTOS(2); err != nil { // ECT(0)
		t.Fatal(err)
	}
	r.blast(t, from, packets, 500)
	arrived, marked := marks(t, to, packets)
	s, err := c.Status(ctx)
	if err != nil || len(s.Radios) != 2 || s.Radios[0].From != radio.RoleClient || s.Radios[1].SNR != 30 {
		t.Errorf("status %+v, %v", s, err)
	}
	rep, err := c.End(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	h := rep.Hops[0]
	if arrived != packets-int(h.LostPackets) || h.MarkedPackets < 5 || marked > int(h.MarkedPackets) || marked < int(h.MarkedPackets-h.LostPackets) || h.EarlyDroppedPackets != 0 || h.FramesRetransmitted < 5 || h.FramesSent < packets*3 || rep.Hops[1].NACKs < h.FramesRetransmitted {
		t.Errorf("received %d, %d of them marked, counted %+v and back %+v", arrived, marked, h, rep.Hops[1])
	}
	if len(rep.Channels) != 1 || rep.Channels[0].From != radio.RoleClient || len(rep.Channels[0].Loss) == 0 || rep.Ideal[0] <= 0 || rep.Ideal[0] > rep.Duration {
		t.Errorf("ideal %v of %s, channels %+v", rep.Ideal, rep.Duration, rep.Channels)
	}
}
