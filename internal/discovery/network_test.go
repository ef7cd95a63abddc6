package discovery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/process"
	"linktrial/internal/radiomark"
	"linktrial/internal/testkind"
)

// far is the other machine: another namespace.
type far struct{ path string }

func newFar(t *testing.T) *far {
	ns, err := namespace.Unnamed()
	require.NoError(t, err)
	t.Cleanup(func() { ns.Close() })
	return &far{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd())}
}

// do runs there.
func (f *far) do(t *testing.T, what func()) {
	require.NoError(t, process.InNamespace(f.path, func() error { what(); return nil }))
}

// cable joins an interface here with one there, with the addresses 10.0.N.1 and 10.0.N.2.
func (f *far) cable(t *testing.T, here, there string, n int) {
	f.do(t, func() {
		namespacetest.IP(t, "link add %s type veth peer name %s netns %d", there, here, os.Getpid())
		namespacetest.IP(t, "addr add 10.0.%d.2/24 dev %s", n, there)
		namespacetest.IP(t, "link set %s up", there)
	})
	namespacetest.IP(t, "addr add 10.0.%d.1/24 dev %s", n, here)
	namespacetest.IP(t, "link set %s up", here)
}

// find searches there, on all interfaces.
func (f *far) find(t *testing.T, limit time.Duration) (found []Found) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	f.do(t, func() {
		var err error
		found, err = Find(ctx, func() ([]net.Interface, error) { return Interfaces(nil) })
		require.NoError(t, err)
	})
	return found
}

func TestOverCables(t *testing.T) {
	t.Parallel()
	testkind.OfTest(t, testkind.RealTime, "waits for answers over interfaces")
	if !namespacetest.Alone(t) {
		return
	}
	namespacetest.IP(t, "link set lo up")
	other := newFar(t)
	other.cable(t, "control", "eth0", 1)
	other.cable(t, "radio", "wlan0", 2)

	require.Empty(t, other.find(t, time.Second), "nobody announces")

	announced := one
	announced.Only = netip.IPv4Unspecified()
	announced.Unused = func(i net.Interface) bool { return i.Name == "radio" }
	stop, err := Announce(announced)
	require.NoError(t, err)
	want := Found{Instance: "laptop-a", ID: "0b63aa", Version: "1.4.0", Port: 7700, Addresses: []netip.Addr{netip.MustParseAddr("10.0.1.1")}, Interface: "eth0"}
	began := time.Now()
	require.Equal(t, []Found{want}, other.find(t, 5*time.Second), "over the control network alone")
	t.Logf("found after %s", time.Since(began))

	// Another program has joined the group on the radio's interface: packets that come
	// there reach all sockets of the machine.
	radio, err := net.InterfaceByName("radio")
	require.NoError(t, err)
	beside, err := net.ListenMulticastUDP("udp4", radio, &net.UDPAddr{IP: group4.AsSlice(), Port: port})
	require.NoError(t, err)
	defer beside.Close()
	require.Equal(t, []Found{want}, other.find(t, 5*time.Second))

	// A cable that is plugged in later.
	other.cable(t, "later", "eth1", 3)
	require.Eventually(t, func() bool {
		f := other.find(t, 2*time.Second)
		return len(f) == 1 && len(f[0].Addresses) == 2
	}, 20*time.Second, time.Second/10)

	stop()
	require.Empty(t, other.find(t, time.Second), "it has ended")
}

// An interface that becomes a radio has no packet of multicast DNS from then on, whoever
// asks there, also by an orchestrator that is started again, until it is given back.
func TestInterfaceBecomesRadio(t *testing.T) {
	t.Parallel()
	testkind.OfTest(t, testkind.RealTime, "waits for answers over interfaces")
	if !namespacetest.Alone(t) {
		return
	}
	other := newFar(t)
	other.cable(t, "control", "eth0", 1)
	other.cable(t, "radio", "wlan0", 2)
	announced := one
	announced.Only = netip.IPv4Unspecified()
	announced.Unused = radiomark.On
	radio := func(is bool) {
		l, err := netlink.LinkByName("radio")
		require.NoError(t, err)
		require.NoError(t, radiomark.Set(l, is))
	}
	var addresses []string
	found := func() []string {
		addresses = nil
		for _, f := range other.find(t, 5*time.Second) {
			for _, a := range f.Addresses {
				addresses = append(addresses, a.String())
			}
		}
		slices.Sort(addresses)
		return addresses
	}
	both, control := []string{"10.0.1.1", "10.0.2.1"}, []string{"10.0.1.1"}

	stop, err := Announce(announced)
	require.NoError(t, err)
	arrived := other.watch(t, "wlan0")
	require.Equal(t, both, found())
	require.NotZero(t, arrived())

	radio(true)
	require.Equal(t, control, found()) // asks at once, and for longer than the pause between two looks
	time.Sleep(rescan / 2)
	require.Equal(t, control, found())
	stop()
	stop, err = Announce(announced)
	require.NoError(t, err)
	require.Equal(t, control, found())
	require.Zero(t, arrived(), "packets of multicast DNS over the radio")

	radio(false)
	require.Eventually(t, func() bool { return slices.Equal(both, found()) }, 20*time.Second, time.Second/10)
	stop()
}

// watch counts the packets from port 5353 of this machine that arrive there at an interface,
// since it was asked last.
func (f *far) watch(t *testing.T, at string) (arrived func() int) {
	const toNetwork = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
	var socket int
	f.do(t, func() {
		i, err := net.InterfaceByName(at)
		require.NoError(t, err)
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, toNetwork)
		require.NoError(t, err)
		require.NoError(t, unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: toNetwork, Ifindex: i.Index}))
	})
	t.Cleanup(func() { unix.Close(socket) })
	return func() (n int) {
		b := make([]byte, maxPacket)
		for {
			length, from, err := unix.Recvfrom(socket, b, 0)
			if errors.Is(err, unix.EAGAIN) {
				return n
			}
			require.NoError(t, err)
			if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING && fromPort(b[:length]) == port {
				n++
			}
		}
	}
}

// fromPort is the port that a packet of IP comes from; 0: it is not one of UDP.
func fromPort(b []byte) int {
	switch {
	case len(b) >= 40 && b[0]>>4 == 6 && b[6] == unix.IPPROTO_UDP:
		b = b[40:]
	case len(b) >= 20 && b[0]>>4 == 4 && b[9] == unix.IPPROTO_UDP:
		b = b[int(b[0]&15)*4:]
	default:
		return 0
	}
	if len(b) < 2 {
		return 0
	}
	return int(binary.BigEndian.Uint16(b))
}

// Two orchestrators of one name are two, each with its address; one listens at one
// address only.
func TestSeveralOverACable(t *testing.T) {
	t.Parallel()
	testkind.OfTest(t, testkind.RealTime, "waits for answers over interfaces")
	if !namespacetest.Alone(t) {
		return
	}
	other := newFar(t)
	other.cable(t, "control", "eth0", 1)
	namespacetest.IP(t, "addr add 10.0.9.1/24 dev control")
	for i, only := range []string{"10.0.1.1", "10.0.9.1", "10.0.8.1"} { // the last one is no address of this machine
		s := one
		s.ID, s.Only = fmt.Sprint(i), netip.MustParseAddr(only)
		stop, err := Announce(s)
		require.NoError(t, err)
		defer stop()
	}
	var got []string
	for _, f := range other.find(t, 5*time.Second) {
		got = append(got, f.ID+" "+f.Address())
	}
	require.Equal(t, []string{"0 10.0.1.1:7700", "1 10.0.9.1:7700"}, got)
}

// Without IPv4, as on a cable between laptops that no DHCP server is on.
func TestLinkLocal(t *testing.T) {
	t.Parallel()
	testkind.OfTest(t, testkind.RealTime, "waits for answers over interfaces")
	if !namespacetest.Alone(t) {
		return
	}
	other := newFar(t)
	other.cable(t, "control", "eth0", 1)
	namespacetest.IP(t, "addr flush dev control")
	namespacetest.IP(t, "addr add fe80::aa/64 dev control nodad")
	other.do(t, func() {
		namespacetest.IP(t, "addr flush dev eth0")
		namespacetest.IP(t, "addr add fe80::bb/64 dev eth0 nodad")
	})
	stop, err := Announce(one)
	require.NoError(t, err)
	defer stop()
	found := other.find(t, 5*time.Second)
	require.Len(t, found, 1)
	require.Equal(t, "[fe80::aa%eth0]:7700", found[0].Address())
}

func TestNoInterface(t *testing.T) {
	t.Parallel()
	testkind.OfTest(t, testkind.RealTime, "a network namespace of its own")
	if !namespacetest.Alone(t) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Find(ctx, func() ([]net.Interface, error) { return Interfaces(nil) })
	require.ErrorIs(t, err, ErrNoInterface)
	require.Contains(t, err.Error(), "no network interface")
}
