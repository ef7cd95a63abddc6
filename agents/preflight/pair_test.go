package preflight

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/checkkind"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// wire makes two namespaces with a veth pair between them, which stands for a
// radio, and returns how to do something inside the first, and how to change
// an interface of either.
func wire(t *testing.T) (inside func(func()), set func(node int, change func(*netlink.Handle, netlink.Link) error)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	var handles [2]*netlink.Handle
	var ns [2]netns.NsHandle
	var names [2]string
	for i := range names {
		names[i] = fmt.Sprintf("ltpf-%d-%d", os.Getpid(), i)
		if err := namespace.Make(names[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := namespace.Remove(names[i]); err != nil {
				t.Error(err)
			}
		})
		var err error
		if ns[i], err = netns.GetFromName(names[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns[i].Close() })
		if handles[i], err = netlink.NewHandleAt(ns[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(handles[i].Close)
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "radio0", MTU: 1500}, PeerName: "radio0", PeerNamespace: netlink.NsFd(ns[1])}
	if err := handles[0].LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	set = func(node int, change func(*netlink.Handle, netlink.Link) error) {
		t.Helper()
		l, err := handles[node].LinkByName("radio0")
		if err == nil {
			err = change(handles[node], l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, addr := range []string{"10.99.0.1", "10.99.0.2"} {
		set(i, func(h *netlink.Handle, l netlink.Link) error {
			if err := h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(addr), Mask: net.CIDRMask(24, 32)}}); err != nil {
				return err
			}
			return h.LinkSetUp(l)
		})
	}
	return func(f func()) {
		t.Helper()
		if err := process.InNamespace(namespace.Path(names[0]), func() error { f(); return nil }); err != nil {
			t.Fatal(err)
		}
	}, set
}

// look looks at the peer from the first node.
func look(t *testing.T, inside func(func()), wanted *linktrialv1.PreflightRequest, change ...func(*Config)) Report {
	t.Helper()
	var r Report
	dir := t.TempDir()
	inside(func() {
		c := Config{Node: "client", Device: "radio0", Address: "10.99.0.1", StateDir: dir, FloorBytes: -1, spread: 300 * time.Millisecond, last: 300 * time.Millisecond,
			Drivers: driverList{}, Clock: func(context.Context) journal.ClockOffset { return journal.ClockOffset{} }}
		for _, f := range change {
			f(&c)
		}
		r = Run(t.Context(), c, wanted)
	})
	for _, c := range r.Checks {
		if c.Node != "client" {
			t.Errorf("check of nobody: %v", c)
		}
	}
	return r
}

// A node without a radio looks at itself alone.
func TestWithoutRadio(t *testing.T) {
	c := Config{Node: "alpha", StateDir: t.TempDir(), FloorBytes: -1, Drivers: driverList{}, Clock: func(context.Context) journal.ClockOffset { return journal.ClockOffset{} }}
	r := Run(t.Context(), c, &linktrialv1.PreflightRequest{})
	of(t, r, checkkind.Clock.Name)
	of(t, r, checkkind.Disk.Name)
	for _, check := range r.Checks {
		for _, kind := range []*checkkind.Kind{checkkind.Radio, checkkind.Traffic, checkkind.Attach, checkkind.Telemetry} {
			if check.Kind == kind.Name {
				t.Errorf("a check of a radio: %v", check)
			}
		}
	}
	if len(r.Links) > 0 {
		t.Errorf("links %v", r.Links)
	}
}

func of(t *testing.T, r Report, kind string) *linktrialv1.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Kind == kind {
			return c
		}
	}
	t.Fatalf("no check of %s in %v", kind, r.Checks)
	return nil
}

var peer = []*linktrialv1.PreflightPeer{{Name: "server", RadioAddress: "10.99.0.2"}}

func TestPairs(t *testing.T) {
	inside, set := wire(t)
	pairs := &linktrialv1.PreflightRequest{Peers: peer, PairsOnly: true, MtuBytes: 1500}

	r := look(t, inside, pairs)
	expect(t, of(t, r, checkkind.Reach.Name), ok, "10 of 10")
	expect(t, of(t, r, checkkind.MTU.Name), ok, "1500 bytes pass")
	expect(t, of(t, r, checkkind.Rate.Name), ok, "32 packets of 1500 bytes each way")
	expect(t, of(t, r, checkkind.Address.Name), ok, "no other machine")
	if len(r.Checks) != 4 || len(r.Links) != 1 {
		t.Fatalf("%v", r)
	}
	if l := r.Links[0]; !l.Reachable || l.RttSeconds <= 0 || l.Loss != 0 || l.Probes != 10 || l.From != "client" || l.To != "server" {
		t.Errorf("link %v", l)
	}

	// The wanted size does not fit the node's own interface.
	pairs.MtuBytes = 1600
	expect(t, of(t, look(t, inside, pairs), checkkind.MTU.Name), failed, "packets of 1492 bytes pass, of 1600 bytes do not", "own interface")

	// The peer's answers are too large for its interface, and are lost silently on the way.
	pairs.MtuBytes = 1500
	set(1, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetMTU(l, 1492) })
	expect(t, of(t, look(t, inside, pairs), checkkind.MTU.Name), failed, "of 1492 bytes pass, of 1500 bytes do not")
	set(1, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetMTU(l, 1500) })

	// Nobody at the other end.
	absent := &linktrialv1.PreflightRequest{Peers: []*linktrialv1.PreflightPeer{{Name: "server", RadioAddress: "10.99.0.7"}}, PairsOnly: true}
	r = look(t, inside, absent)
	expect(t, of(t, r, checkkind.Reach.Name), failed, "no answer")
	expect(t, of(t, r, checkkind.MTU.Name), notChecked)
	expect(t, of(t, r, checkkind.Rate.Name), notChecked, "not reached")
	if l := r.Links[0]; l.Reachable || l.Loss != 1 || l.RttSeconds != 0 {
		t.Errorf("link %v", l)
	}
}

// A node that answers no ICMP is reached all the same, and no loss of its link is claimed.
func TestNoICMP(t *testing.T) {
	inside, _ := wire(t)
	quiet := func() error { return os.WriteFile("/proc/sys/net/ipv4/icmp_echo_ignore_all", []byte("1"), 0) }
	if err := process.InNamespace(namespace.Path(fmt.Sprintf("ltpf-%d-1", os.Getpid())), quiet); err != nil {
		t.Fatal(err)
	}
	r := look(t, inside, &linktrialv1.PreflightRequest{Peers: peer, PairsOnly: true, MtuBytes: 1500})
	expect(t, of(t, r, checkkind.Reach.Name), warning, "while TCP is answered", "nft list ruleset")
	expect(t, of(t, r, checkkind.MTU.Name), notChecked, "no ICMP")
	expect(t, of(t, r, checkkind.Rate.Name), notChecked, "no ICMP")
	if len(r.Links) != 0 {
		t.Errorf("links %v", r.Links)
	}
}

// The rate is probed with a short train where the radio is fast enough for one,
// and compared with the radio's own.
func TestRate(t *testing.T) {
	inside, set := wire(t)
	pairs := &linktrialv1.PreflightRequest{Peers: peer, PairsOnly: true, MtuBytes: 1500}
	limit := func(bytesPerSecond uint64) {
		set(0, func(h *netlink.Handle, l netlink.Link) error {
			return h.QdiscReplace(&netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
				Rate: bytesPerSecond, Limit: 1 << 20, Buffer: uint32(1600 / float64(bytesPerSecond) * 1e6 * netlink.TickInUsec())}) // the time that 1600 bytes take
		})
	}
	of400 := func(rate string) func(*Config) {
		p, err := radio.ParseProfile("p", []byte("name: p\ntitle: T\nmanufacturer: M\nmodel: m\nwaveform: w\nfigures: [{name: rate, value: "+rate+", source: s}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		return func(c *Config) { c.Profile = p }
	}
	limit(50_000)
	expect(t, of(t, look(t, inside, pairs, of400("400 kbit/s")), checkkind.Rate.Name), ok, "kbit/s there and", "32 packets")
	expect(t, of(t, look(t, inside, pairs, of400("1000 Mbit/s")), checkkind.Rate.Name), warning, "antennas")
	limit(1000)
	expect(t, of(t, look(t, inside, pairs), checkkind.Rate.Name), notChecked, "skipped: a packet of 1500 bytes takes", "even 4 of them would hold the radio")
}

func TestAttach(t *testing.T) {
	inside, set := wire(t)
	inside(func() { // a new namespace takes the machine's setting
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0); err != nil {
			t.Error(err)
		}
	})
	profile := func(role string) func(*Config) {
		p, err := radio.ParseProfile("p", []byte("name: p\ntitle: T\nmanufacturer: M\nmodel: m\nwaveform: w\nfigures: []\n"+
			"attach: {reach: by cable, source: s, interface: radio0, mtu: 1500 B, roles: {client: {"+role+"}}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return func(c *Config) { c.Profile, c.Role = p, radio.RoleClient }
	}
	self := &linktrialv1.PreflightRequest{}
	expect(t, of(t, look(t, inside, self), checkkind.Attach.Name), notChecked, "does not state how")
	expect(t, of(t, look(t, inside, self, func(c *Config) { c.Emulated = true }), checkkind.Telemetry.Name), notChecked)
	whole := profile("address: 10.99.0.1/24, routes: [{to: 10.99.0.0/24}, {to: 10.98.0.0/16, via: 10.99.0.2}], forwarding: false")
	expect(t, of(t, look(t, inside, self, whole), checkkind.Attach.Name), failed, "no route to 10.98.0.0/16 by 10.99.0.2", "ip route add 10.98.0.0/16 via 10.99.0.2 dev radio0")
	set(0, func(h *netlink.Handle, l netlink.Link) error {
		_, dst, err := net.ParseCIDR("10.98.0.0/16")
		if err != nil {
			return err
		}
		return h.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Gw: net.ParseIP("10.99.0.2")})
	})
	expect(t, of(t, look(t, inside, self, whole), checkkind.Attach.Name), ok, "interface radio0, 10.99.0.1/24, MTU 1500 bytes, route to 10.99.0.0/24, route to 10.98.0.0/16 by 10.99.0.2, forwarding off")
	expect(t, of(t, look(t, inside, self, profile("address: 10.99.0.1/16, forwarding: true")), checkkind.Attach.Name), failed,
		"address 10.99.0.1/16 is missing, there is 10.99.0.1/24", "forwarding is not on", "sysctl net.ipv4.ip_forward=1")
	expect(t, of(t, look(t, inside, self, profile("interface: eth7")), checkkind.Attach.Name), failed, "there is no interface eth7; the radio is reached so: by cable")
	expect(t, of(t, look(t, inside, self, profile("interface: lo")), checkkind.Attach.Name), failed, "the agent uses interface radio0, the radio is at lo", "--device lo", "MTU 65536 bytes, not 1500")
}

func TestSelf(t *testing.T) {
	inside, set := wire(t)
	self := &linktrialv1.PreflightRequest{MtuBytes: 1500}
	r := look(t, inside, self)
	expect(t, of(t, r, checkkind.Radio.Name), ok)
	expect(t, of(t, r, checkkind.Traffic.Name), ok, "nothing")

	// Somebody uses the air.
	var other net.Conn
	var err error
	inside(func() { other, err = net.Dial("udp", "10.99.0.2:9") })
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
			select {
			case <-stop:
				tick.Stop()
				return
			default:
				_, _ = other.Write(make([]byte, 100)) // nobody listens there, and says so
			}
		}
	}()
	r = look(t, inside, self)
	close(stop)
	<-done
	other.Close()
	expect(t, of(t, r, checkkind.Traffic.Name), failed, "tcpdump")

	set(1, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetDown(l) })
	expect(t, of(t, look(t, inside, self), checkkind.Radio.Name), failed, "carrier")
	set(0, func(h *netlink.Handle, l netlink.Link) error { return h.LinkDel(l) })
	r = look(t, inside, self)
	expect(t, of(t, r, checkkind.Radio.Name), failed, "there is no interface radio0")
	expect(t, of(t, r, checkkind.Traffic.Name), unknown)
	if !strings.Contains(of(t, r, checkkind.Radio.Name).Remedy, "--device") {
		t.Error("no remedy")
	}
}

// An answer that came by its deadline counts, also where this process was awake only later;
// without one the time is up at once.
func TestAnswerByItsDeadline(t *testing.T) {
	inside, _ := wire(t)
	inside(func() {
		ping, err := newPinger("radio0", "10.99.0.1", "10.99.0.2")
		if err != nil {
			t.Error(err)
			return
		}
		defer ping.close()
		if got, err := ping.receive(t.Context(), time.Now().Add(-time.Second)); got >= 0 || err != nil {
			t.Errorf("before a question: answer %d, %v", got, err)
		}
		// Two: of an earlier one the answer is passed over by who asks, not here.
		for range 2 {
			seq, err := ping.send(probeBytes)
			if err != nil {
				t.Error(err)
				return
			}
			got := -1
			for end := time.Now().Add(20 * time.Second); got < 0 && time.Now().Before(end); {
				if got, err = ping.receive(t.Context(), time.Now().Add(-time.Second)); err != nil {
					t.Error(err)
					return
				}
			}
			if got != seq {
				t.Errorf("answer %d, expected %d", got, seq)
			}
		}
	})
}
