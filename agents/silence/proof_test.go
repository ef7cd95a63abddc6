package silence

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// One byte to the orchestrator is seen on whichever interface it passes; what goes to
// other ports is none of its traffic.
func TestProof(t *testing.T) {
	for name, address := range map[string]string{"IPv4": "127.0.0.1:0", "IPv6": "[::1]:0"} {
		t.Run(name, func(t *testing.T) { testProof(t, address) })
	}
}

func testProof(t *testing.T, address string) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a packet socket")
	}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	orchestrator, other := listen(), listen()
	p, err := NewProof(t.Context(), "http://"+orchestrator.Addr().String())
	require.NoError(t, err)
	defer p.Close()
	talk := func(l net.Listener) {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = c.Write([]byte{1})
		require.NoError(t, err)
		there, err := l.Accept()
		require.NoError(t, err)
		_, err = there.Read(make([]byte, 1))
		require.NoError(t, err)
		c.Close()
		there.Close()
	}
	talk(other)
	silent, err := p.Take()
	require.NoError(t, err)
	require.Zero(t, silent)
	talk(orchestrator)
	c, err := p.Take()
	require.NoError(t, err)
	require.GreaterOrEqual(t, c.Packets, int64(4)) // a handshake and a byte
	require.GreaterOrEqual(t, c.Bytes, 40*c.Packets)
	require.Zero(t, c.Others)
	p.local = nil // as if the address had come since
	talk(orchestrator)
	c, err = p.Take()
	require.NoError(t, err)
	require.NotZero(t, c.Packets)
	require.Zero(t, c.Others)
	p.local, p.own = nil, func() (map[netip.Addr]bool, error) { return nil, nil } // as if this node only forwarded them
	talk(orchestrator)
	c, err = p.Take()
	require.NoError(t, err)
	require.GreaterOrEqual(t, c.Others, int64(4))
	require.Equal(t, c.Packets, c.Others)
	require.Equal(t, c.Bytes, c.OthersBytes)
}

// Both ends are read from a packet's beginning, however short it is.
func TestPacketEnds(t *testing.T) {
	for _, ends := range [][2]string{{"10.0.0.1:8443", "10.9.9.9:40000"}, {"[fd00::1]:8443", "[fd00::9]:40000"}} {
		a, b := netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])
		whole := packet(a, b, unix.IPPROTO_TCP)[2:]
		source, destination, ok := packetEnds(whole)
		require.True(t, ok)
		require.Equal(t, a, source)
		require.Equal(t, b, destination)
		p := &Proof{ends: []netip.AddrPort{a}}
		for _, w := range [][]byte{whole, packet(b, a, unix.IPPROTO_TCP)[2:]} {
			end, ok := p.node(w)
			require.True(t, ok)
			require.Equal(t, b.Addr(), end)
		}
		for n := range 44 {
			if _, _, ok := packetEnds(whole[:min(n, 24)]); ok {
				t.Errorf("ends of a packet of %d B", n)
			}
		}
	}
}

// The filter picks packets by either end's address and port, of every address that the
// orchestrator has, however many.
func TestControlFilter(t *testing.T) {
	var addresses []netip.Addr
	for i := range byte(maxAddresses / 2) {
		addresses = append(addresses, netip.AddrFrom4([4]byte{10, 0, 0, i + 1}), netip.AddrFrom16([16]byte{0xfd, 15: i + 1}))
	}
	vm, err := bpf.NewVM(withoutProtocol(controlFilter(addresses, 8443)))
	require.NoError(t, err)
	taken := func(source, destination netip.AddrPort, protocol byte) bool {
		n, err := vm.Run(packet(source, destination, protocol))
		require.NoError(t, err)
		return n > 0
	}
	other := map[bool]netip.AddrPort{true: netip.MustParseAddrPort("10.9.9.9:40000"), false: netip.MustParseAddrPort("[fd00::9]:40000")}
	for _, a := range addresses {
		end, here := netip.AddrPortFrom(a, 8443), other[a.Is4()]
		require.True(t, taken(end, here, unix.IPPROTO_TCP), a)
		require.True(t, taken(here, end, unix.IPPROTO_TCP), a)
		require.False(t, taken(here, end, unix.IPPROTO_UDP), a)
		require.False(t, taken(here, netip.AddrPortFrom(a, 5001), unix.IPPROTO_TCP), a)
		require.False(t, taken(here, netip.AddrPortFrom(lastByte(a, 200), 8443), unix.IPPROTO_TCP), a)
		// The port at the other end is not the orchestrator's.
		require.False(t, taken(netip.AddrPortFrom(a, 5001), netip.AddrPortFrom(here.Addr(), 8443), unix.IPPROTO_TCP), a)
	}
}

// withoutProtocol reads the packet's family from the two bytes that [packet] puts in front
// of the IP header, where the kernel knows it beside the packet.
func withoutProtocol(code []bpf.Instruction) []bpf.Instruction {
	out := slices.Clone(code)
	for i, x := range out {
		switch x := x.(type) {
		case bpf.LoadExtension:
			out[i] = bpf.LoadAbsolute{Off: 0, Size: 2}
		case bpf.LoadAbsolute:
			out[i] = bpf.LoadAbsolute{Off: x.Off + 2, Size: x.Size}
		case bpf.LoadIndirect:
			out[i] = bpf.LoadIndirect{Off: x.Off + 2, Size: x.Size}
		case bpf.LoadMemShift:
			out[i] = bpf.LoadMemShift{Off: x.Off + 2}
		}
	}
	return out
}

// packet is a packet's beginning, with its EtherType in front.
func packet(source, destination netip.AddrPort, protocol byte) []byte {
	var b []byte
	if source.Addr().Is4() {
		b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
		b = append(b, 0x46, 0, 0, 48, 0, 0, 0, 0, 64, protocol, 0, 0) // with four bytes of options
		b = append(append(b, source.Addr().AsSlice()...), destination.Addr().AsSlice()...)
		b = append(b, 1, 1, 1, 0)
	} else {
		b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IPV6)
		b = append(b, 0x60, 0, 0, 0, 0, 20, protocol, 64)
		b = append(append(b, source.Addr().AsSlice()...), destination.Addr().AsSlice()...)
	}
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, source.Port()), destination.Port())
	return append(b, make([]byte, 16)...)
}

func lastByte(a netip.Addr, to byte) netip.Addr {
	b := a.AsSlice()
	b[len(b)-1] = to
	a, _ = netip.AddrFromSlice(b)
	return a
}

// The orchestrator's ends are those of its URL, and where it is this machine, all of it.
func TestEnds(t *testing.T) {
	got, err := Ends(t.Context(), "https://192.0.2.7:7701")
	require.NoError(t, err)
	require.Equal(t, []netip.AddrPort{netip.MustParseAddrPort("192.0.2.7:7701")}, got)
	got, err = Ends(t.Context(), "http://127.0.0.1:7700")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(got), 2)
	for _, end := range got {
		require.Equal(t, uint16(7700), end.Port())
	}
	_, err = Ends(t.Context(), "http://[")
	require.Error(t, err)
}
