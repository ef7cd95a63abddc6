package netif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/packetsocket"
	"linktrial/internal/process"
)

// machine is another machine, whose stack is not this node's.
type machine struct {
	h  *netlink.Handle
	ns string // path of its namespace
}

// plug has a machine on the other end of a cable whose end here has a name and a hardware
// address. The machine lasts as long as the test.
func plug(t *testing.T, device, mac string) *machine {
	t.Helper()
	ns, err := namespace.Unnamed()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()))
	require.NoError(t, err)
	t.Cleanup(h.Close)
	m := &machine{h, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd())}
	m.plug(t, ns, device, mac)
	return m
}

const otherMAC = "02:00:00:00:00:aa"

func (m *machine) plug(t *testing.T, ns *os.File, device, mac string) {
	t.Helper()
	own, _ := net.ParseMAC(mac)
	there, _ := net.ParseMAC(otherMAC)
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device, HardwareAddr: own}, PeerName: "far0", PeerHardwareAddr: there, PeerNamespace: netlink.NsFd(int(ns.Fd()))}
	require.NoError(t, netlink.LinkAdd(veth))
	far, err := m.h.LinkByName("far0")
	require.NoError(t, err)
	require.NoError(t, m.h.LinkSetUp(far))
	require.NoError(t, netlink.LinkSetUp(veth))
}

func (m *machine) add(t *testing.T, address string) {
	t.Helper()
	far, err := m.h.LinkByName("far0")
	require.NoError(t, err)
	a, err := netlink.ParseAddr(address)
	require.NoError(t, err)
	a.Flags = unix.IFA_F_NODAD
	require.NoError(t, m.h.AddrAdd(far, a))
}

func (m *machine) remove(t *testing.T, address string) {
	t.Helper()
	far, err := m.h.LinkByName("far0")
	require.NoError(t, err)
	a, err := netlink.ParseAddr(address)
	require.NoError(t, err)
	require.NoError(t, m.h.AddrDel(far, a))
}

// await waits until the watch says that something is wrong which contains text, or that
// nothing is where text is empty.
func await(t *testing.T, w *Watch, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		fault, changed := w.State()
		if (fault == "") == (text == "") && strings.Contains(fault, text) {
			return fault
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the interface's fault is %q, expected %q", fault, text)
		}
	}
}

func watch(t *testing.T, r Radio) *Watch {
	t.Helper()
	w := startAll(t, r)
	w.Settled(t.Context())
	return w.each[0]
}

// An interface goes, and one with its name, address and hardware address comes, as that of
// a radio on USB.
func TestInterfaceComesBack(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	r := Radio{Device: "radio0", Address: netip.MustParseAddr("10.77.0.3"), Peers: []netip.Addr{netip.MustParseAddr("10.77.0.1")}}
	comes := func() {
		plug(t, r.Device, "02:00:00:00:00:03")
		namespacetest.IP(t, "addr add 10.77.0.3/24 dev radio0")
	}
	comes()
	w := watch(t, r)
	require.Empty(t, await(t, w, ""))
	began := time.Now()
	namespacetest.IP(t, "link del radio0")
	await(t, w, "it does not exist")
	comes()
	await(t, w, "")
	fault, _, _ := w.Since(began)
	require.NotEmpty(t, fault)

	began = time.Now()
	namespacetest.IP(t, "link set radio0 down")
	namespacetest.IP(t, "link set radio0 name other")
	await(t, w, "it does not exist: the interface is now named other")
	namespacetest.IP(t, "link set other name radio0")
	namespacetest.IP(t, "link set radio0 up")
	await(t, w, "")
	namespacetest.IP(t, "link set radio0 address 02:00:00:00:00:04")
	require.Eventually(t, func() bool { fault, _, _ := w.Since(began); return strings.Contains(fault, "hardware address") }, 10*time.Second, time.Millisecond)
	await(t, w, "")
}

// What listens on an interface that another one has replaced, or at an address that the
// node has lost, lives and hears nothing.
func TestDeaf(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	r := Radio{Device: "radio0", Address: netip.MustParseAddr("10.77.0.3")}
	comes := func() {
		plug(t, r.Device, "02:00:00:00:00:03")
		namespacetest.IP(t, "addr add 10.77.0.3/24 dev radio0")
	}
	comes()
	bound := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), r.Device) })
		return errors.Join(cerr, err)
	}}
	listen := func(c net.ListenConfig, network string, port int) {
		at := fmt.Sprintf("10.77.0.3:%d", port)
		var closer io.Closer
		var err error
		if network == "tcp" {
			closer, err = c.Listen(t.Context(), network, at)
		} else {
			closer, err = c.ListenPacket(t.Context(), network, at)
		}
		require.NoError(t, err)
		t.Cleanup(func() { _ = closer.Close() })
	}
	listen(bound, "tcp", 5001)
	listen(bound, "udp", 5002)
	listen(net.ListenConfig{}, "tcp", 5003)
	all := startAll(t, r)
	w := all.each[0]
	for port := 5001; port <= 5004; port++ {
		require.Empty(t, all.Deaf(port), port)
	}
	namespacetest.IP(t, "link del radio0")
	comes()
	await(t, w, "")
	require.Contains(t, all.Deaf(5001), "its socket is bound to an interface that does not exist any more (index ")
	require.Contains(t, all.Deaf(5002), "its socket is bound to an interface that does not exist any more (index ")
	require.Empty(t, all.Deaf(5003), "it is bound to none")
	listen(bound, "udp", 5001)
	require.Empty(t, all.Deaf(5001), "another one hears")
	namespacetest.IP(t, "addr del 10.77.0.3/24 dev radio0")
	require.Equal(t, "its socket has the address 10.77.0.3, which this node does not have", all.Deaf(5003))
}

// While the kernel looks whether an IPv6 address is somebody else's, and when it is, the
// address is there and nobody can use it.
func TestAddressNotUsable(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	r := Radio{Device: "radio0", Address: netip.MustParseAddr("fd77::1"), Peers: []netip.Addr{netip.MustParseAddr("fd77::3")}}
	m := plug(t, r.Device, "02:00:00:00:00:01")
	w := watch(t, r)
	await(t, w, "does not have the node's radio address fd77::1 and has none")
	namespacetest.IP(t, "addr add fd77::1/64 dev radio0")
	await(t, w, "(tentative)")
	await(t, w, "")
	namespacetest.IP(t, "addr del fd77::1/64 dev radio0")
	await(t, w, "does not have")
	m.add(t, "fd77::1/64")
	namespacetest.IP(t, "addr add fd77::1/64 dev radio0")
	await(t, w, "(the kernel says dadfailed)")
}

// Another machine on the link has the address: before the watch begins, and later.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	for own, prefix := range map[string]string{"10.77.0.1": "/24", "fd77::1": "/64"} {
		r := Radio{Device: "radio0", Address: netip.MustParseAddr(own)}
		m := plug(t, r.Device, "02:00:00:00:00:01")
		namespacetest.IP(t, "addr add %s%s dev radio0 nodad", own, prefix)
		mac, err := Duplicate(t.Context(), &r)
		require.NoError(t, err)
		require.Empty(t, mac)

		w := watch(t, r)
		await(t, w, "")
		began := time.Now()
		m.add(t, own+prefix)
		m.announce(t, netip.MustParseAddr(own))
		require.Equal(t, "another machine on the link has the address "+own+", too: "+otherMAC+"; give one of them another one", await(t, w, "another machine"))
		fault, _, _ := w.Since(began)
		require.Contains(t, fault, otherMAC)
		mac, err = Duplicate(t.Context(), &r)
		require.NoError(t, err)
		require.Equal(t, otherMAC, mac)
		fault, _ = watch(t, r).State() // one that begins now knows
		require.Contains(t, fault, otherMAC)
		m.remove(t, own+prefix)
		await(t, w, "")
		namespacetest.IP(t, "link del radio0")
	}
}

// Who waits for the first answer goes on when it has been passed on, not before.
func TestSettledAfterTold(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	r := Radio{Device: "radio0", Address: netip.MustParseAddr("10.77.0.1")}
	m := plug(t, r.Device, "02:00:00:00:00:01")
	namespacetest.IP(t, "addr add 10.77.0.1/24 dev radio0 nodad")
	m.add(t, "10.77.0.1/24")
	g := newGuard(&r, slog.New(slog.DiscardHandler))
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	require.NoError(t, err)
	defer h.Close()
	s := read(h, nil, &r, 0)
	g.renew(&s)
	ctx, end := context.WithCancel(t.Context())
	told := make(chan string, 1)
	go g.keep(ctx, func(mac string) {
		select {
		case <-g.first:
			mac = "too late: " + mac
		default:
		}
		told <- mac
		end()
	})
	require.Equal(t, otherMAC, <-told)
	g.settled(t.Context())
}

// announce has the machine say that it has an address, as one does that begins to use it
// (RFC 5227, section 2.3; RFC 4861, section 7.2.6).
func (m *machine) announce(t *testing.T, address netip.Addr) {
	t.Helper()
	mac, _ := net.ParseMAC(otherMAC)
	packet, to := question(address, mac)
	if address.Is4() {
		copy(packet[14:], address.AsSlice())
	} else {
		packet[headBytes] = byte(ipv6.ICMPTypeNeighborAdvertisement) // nobody holds the checksum against it
	}
	require.NoError(t, process.InNamespace(m.ns, func() error {
		far, err := net.InterfaceByName("far0")
		if err != nil {
			return err
		}
		fd, err := openClaims(address, far.Index)
		if err != nil {
			return err
		}
		protocol, _ := claims(address)
		there := &unix.SockaddrLinklayer{Protocol: packetsocket.Network(protocol), Ifindex: far.Index, Halen: 6}
		copy(there.Addr[:], to)
		return errors.Join(unix.Sendto(fd, packet, 0, there), unix.Close(fd))
	}))
}

// Packets to another node leave past the radio: by a route, by a rule, or not at all.
func TestDetour(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	for _, c := range []struct{ own, peer, prefix, wired, gateway string }{
		{"10.77.0.3", "10.77.0.1", "/24", "10.78.0.13", "10.78.0.11"},
		{"fd77::3", "fd77::1", "/64", "fd78::13", "fd78::11"},
	} {
		own, peer := netip.MustParseAddr(c.own), netip.MustParseAddr(c.peer)
		host, family := "32", "-4"
		if own.Is6() {
			host, family = "128", "-6"
		}
		plug(t, "radio0", "02:00:00:00:00:03")
		plug(t, "wired0", "02:00:00:00:00:05")
		namespacetest.IP(t, "addr add %s%s dev radio0 nodad", c.own, c.prefix)
		namespacetest.IP(t, "addr add %s%s dev wired0 nodad", c.wired, c.prefix)
		w := watch(t, Radio{Device: "radio0", Address: own, Peers: []netip.Addr{peer}})
		relay := watch(t, Radio{Device: "radio0", Address: own, Near: []netip.Addr{peer, netip.MustParseAddr(c.gateway)}})
		await(t, w, "")
		await(t, relay, "")
		past := fmt.Sprintf("packets to %s leave through wired0, not radio0 (ip route get %s from %s: via %s dev wired0): change this node's routes so that it says dev radio0", c.peer, c.peer, c.own, c.gateway)

		namespacetest.IP(t, "%s route add %s/%s via %s dev wired0", family, c.peer, host, c.gateway)
		require.Equal(t, past, await(t, w, "leave through"))
		await(t, relay, "leave through")
		namespacetest.IP(t, "%s route del %s/%s via %s dev wired0", family, c.peer, host, c.gateway)
		await(t, w, "")

		namespacetest.IP(t, "%s route add default via %s dev wired0 table 99", family, c.gateway)
		namespacetest.IP(t, "%s rule add from %s table 99", family, c.own)
		require.Equal(t, past, await(t, w, "leave through"))
		namespacetest.IP(t, "%s rule del from %s table 99", family, c.own)
		await(t, w, "")

		namespacetest.IP(t, "%s route add unreachable %s/%s", family, c.peer, host)
		await(t, w, "there is no route to "+c.peer)
		namespacetest.IP(t, "%s route del unreachable %s/%s", family, c.peer, host)
		await(t, w, "")
		namespacetest.IP(t, "addr add %s/%s dev wired0 nodad", c.peer, host)
		await(t, w, "stay on this node")
		namespacetest.IP(t, "link del radio0")
		namespacetest.IP(t, "link del wired0")
	}
}
