package transfer

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var (
	here  = netip.MustParseAddr("10.77.0.1")
	there = netip.MustParseAddr("10.77.0.3")
)

// packet4 is the beginning of an IPv4 packet; flags is the field of fragments.
func packet4(protocol byte, id, flags uint16, source, destination netip.Addr, from, to uint16) []byte {
	b := make([]byte, 24)
	b[0], b[9] = 0x45, protocol
	b[4], b[5], b[6], b[7] = byte(id>>8), byte(id), byte(flags>>8), byte(flags)
	copy(b[12:], source.AsSlice())
	copy(b[16:], destination.AsSlice())
	b[20], b[21], b[22], b[23] = byte(from>>8), byte(from), byte(to>>8), byte(to)
	return b
}

// Packets count by port and direction, whatever IP protocol carries them, fragments too.
func TestCount(t *testing.T) {
	c := newCounter([]uint16{5001, 5002}, []netip.Addr{here, there})
	const more, second = 0x2000, 0x00b9
	for _, p := range []struct {
		b    []byte
		kind uint8
	}{
		{packet4(unix.IPPROTO_UDP, 1, 0, here, there, 40000, 5001), unix.PACKET_OUTGOING},
		{packet4(unix.IPPROTO_UDP, 2, 0, there, here, 5001, 40000), unix.PACKET_HOST},
		{packet4(unix.IPPROTO_UDP, 3, more, here, there, 40000, 5001), unix.PACKET_OUTGOING},
		{packet4(unix.IPPROTO_UDP, 3, second, here, there, 0, 0), unix.PACKET_OUTGOING},        // the rest of it
		{packet4(unix.IPPROTO_UDP, 4, second, here, there, 40000, 5001), unix.PACKET_OUTGOING}, // of a packet whose beginning nobody saw
		{packet4(unix.IPPROTO_SCTP, 5, 0, here, there, 40000, 5002), unix.PACKET_HOST},
		{packet4(unix.IPPROTO_SCTP, 6, 0, here, there, 40000, 80), unix.PACKET_HOST},   // of others
		{packet4(unix.IPPROTO_ICMP, 7, 0, here, there, 40000, 5001), unix.PACKET_HOST}, // has no ports
		{packet4(unix.IPPROTO_TCP, 8, 0, netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("10.1.1.2"), 40000, 5001), unix.PACKET_HOST},
	} {
		c.count(p.b, 7, p.kind)
	}
	require.Equal(t, counted{toSent: 3, fromReceived: 1, fragments: 2, protocol: unix.IPPROTO_UDP, interfaces: []int{7}}, c.of(5001))
	require.Equal(t, counted{toReceived: 1, protocol: unix.IPPROTO_SCTP, interfaces: []int{7}}, c.of(5002))
}

// FuzzTake: what comes from a network is counted within its bounds.
func FuzzTake(f *testing.F) {
	f.Add(packet4(unix.IPPROTO_UDP, 1, 0, here, there, 1, 2))
	f.Add([]byte{0x4f})
	f.Fuzz(func(t *testing.T, b []byte) {
		newCounter([]uint16{1, 2}, []netip.Addr{here}).count(b, 1, unix.PACKET_OUTGOING)
	})
}
