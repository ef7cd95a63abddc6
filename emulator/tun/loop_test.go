package tun

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"), goleak.IgnoreTopFunction("linktrial/internal/process.init.func1.1"))
}

// sockets stand in for devices: a read gives a packet, as with a TUN device.
func sockets(t testing.TB, n *radio.Network) (*loop, map[radio.Role]int) {
	t.Helper()
	ends := map[radio.Role]int{}
	var nodes []node
	var devices []*device
	for _, v := range n.Nodes {
		fd, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		d := &device{fd: fd[0]}
		t.Cleanup(func() { d.close(); unix.Close(fd[1]) })
		ends[v.Role] = fd[1]
		nodes = append(nodes, node{role: v.Role, address: netip.MustParseAddr(v.Address)})
		devices = append(devices, d)
	}
	l, err := newLoop(n, nodes, devices)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l, ends
}

func packetTo(address string, bytes int) []byte {
	b := make([]byte, bytes)
	b[0] = 0x45
	a := netip.MustParseAddr(address).As4()
	copy(b[16:], a[:])
	return b
}

func TestLoopAllocatesNothingPerPacket(t *testing.T) {
	n := pair()
	n.Links[0].RateBitsPerSecond, n.Links[0].Delay = 1e12, 0
	l, ends := sockets(t, n)
	l.observe(newTraffic(&radiocontrol.Begin{Listeners: listening}, len(n.Nodes), l.radios, &usedPorts{first: map[usedPort]int{}}, l.now), nil)
	p, buf := ported("10.77.0.3", unix.IPPROTO_UDP, 40001, 5001, 1000), make([]byte, 2000)
	events := make([]unix.EpollEvent, 4)
	step := func() {
		rawWrite(ends[radio.RoleClient], p)
		l.wait(events)
		l.read(0)
		for {
			l.release()
			if n, errno := rawRead(ends[radio.RoleServer], buf); errno == 0 {
				if n != len(p) {
					t.Errorf("%d bytes came out, expected %d", n, len(p))
				}
				return
			}
		}
	}
	for range 100 {
		step()
	}
	if a := testing.AllocsPerRun(5000, step); a != 0 {
		t.Errorf("%g allocations a packet, expected none", a)
	}
}

func TestPacketsThatAreNotCarried(t *testing.T) {
	n := chain()
	for i := range n.Links {
		n.Links[i].Delay = time.Hour // what is accepted stays inside, however late the test goes on
	}
	l, ends := sockets(t, n)
	for _, tc := range []struct {
		name                            string
		packet                          []byte
		unroutable, oversized, accepted int
	}{
		{"unicast to a node", packetTo("10.77.0.2", 100), 0, 0, 1},
		{"IPv6", append([]byte{0x60}, make([]byte, 60)...), 0, 0, 0},
		{"short", []byte{0x45, 0, 0}, 0, 0, 0},
		{"to itself", packetTo("10.77.0.1", 100), 1, 0, 0},
		{"broadcast", packetTo("10.77.0.255", 100), 1, 0, 0},
		{"multicast", packetTo("224.0.0.22", 100), 1, 0, 0},
		{"over the MTU", packetTo("10.77.0.2", 1401), 0, 1, 0},
		{"of the MTU", packetTo("10.77.0.2", 1400), 0, 0, 1},
	} {
		u, o, inside := l.unroutable, l.oversized, l.inside()
		rawWrite(ends[radio.RoleClient], tc.packet)
		l.read(0)
		if int(l.unroutable-u) != tc.unroutable || int(l.oversized-o) != tc.oversized || l.inside()-inside != tc.accepted {
			t.Errorf("%s: unroutable %d, oversized %d, accepted %d", tc.name, l.unroutable-u, l.oversized-o, l.inside()-inside)
		}
	}
}

func TestPool(t *testing.T) {
	var p pool
	p.reset(1400)
	seen := map[uint32]bool{}
	for range maxBuffers - 1 {
		h, ok := p.get()
		if !ok || seen[h] || h == scratch || len(p.at(h)) < 1401 {
			t.Fatalf("buffer %d after %d others: %v", h, len(seen), ok)
		}
		seen[h] = true
	}
	if h, ok := p.get(); ok || h != scratch {
		t.Fatal("the pool has no limit")
	}
	p.put(scratch)
	p.put(7)
	if h, ok := p.get(); !ok || h != 7 {
		t.Fatal("a returned buffer is not lent again")
	}
	p.reset(9000)
	if h, ok := p.get(); !ok || len(p.at(h)) < 9001 || len(p.chunks) != 1 {
		t.Fatal("the pool does not follow the MTU")
	}
}

func TestLateness(t *testing.T) {
	var h lateness
	if h.quantile(0.5) != 0 {
		t.Error("a value from nothing")
	}
	for i := range 1001 {
		h.add(time.Duration(i) * time.Microsecond)
	}
	h.add(-time.Second)
	if m := h.quantile(0.5); m > 500*time.Microsecond || m < 468*time.Microsecond {
		t.Errorf("median %s, expected 500µs or up to 1/16 less", m)
	}
	if h.max != time.Millisecond {
		t.Errorf("maximum %s", h.max)
	}
	for v := uint64(1); v < 1<<60; v += v/4 + 1 {
		if i := lateIndex(v); i < lateIndex(v-1) || i >= len(h.counts) {
			t.Fatalf("step %d for %d", i, v)
		}
	}
	if i := lateIndex(1<<64 - 1); i >= len(h.counts) {
		t.Errorf("step %d for the longest time", i)
	}
}

func FuzzRequest(f *testing.F) {
	for _, r := range []radiocontrol.Request{
		{Configure: chain()},
		{Begin: &radiocontrol.Begin{Trial: "a", Seed: 1 << 63, Flows: []radiocontrol.Flow{{From: "client", To: "server", SizeBytes: 5}}, Capture: "/x"}},
		{End: &radiocontrol.End{Trial: "a"}},
		{Status: &struct{}{}},
		{},
	} {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"configure":null,"end":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseRequest(again); err != nil {
			t.Fatalf("%s was read from %s, but is refused: %v", again, b, err)
		}
		if n := r.Configure; n != nil {
			// What the checks accept can be built.
			nodes := []node{}
			for _, v := range n.Nodes {
				if a, err := address(v.Address); err == nil {
					nodes = append(nodes, node{role: v.Role, address: a})
				}
			}
			if fits(n, nodes) == nil {
				if _, err := (&loop{}).prepare(n, nodes, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func FuzzConfig(f *testing.F) {
	b, err := json.Marshal(Config{Network: chain(), Nodes: []NodeConfig{{"client", "", "10.77.0.1"}, {"relay", "x", "10.77.0.2"}, {"server", "/run/netns/y", "10.77.0.3"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"nodes":[{"role":"","address":"::1"}],"network":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Config
		if json.Unmarshal(b, &c) != nil {
			return
		}
		nodes, err := c.check()
		if err != nil {
			return
		}
		if _, err := (&loop{}).prepare(c.Network, nodes, 1); err != nil {
			t.Fatalf("%s passes the checks, but: %v", b, err)
		}
	})
}
