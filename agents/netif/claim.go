package netif

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// A machine claims an address in ARP packets that it sends from it (RFC 826; RFC 5227,
// section 1.1), and in neighbour advertisements (RFC 4861, section 4.4).

const (
	arpBytes   = 28 // of a packet for Ethernet and IPv4
	headBytes  = 40 // of IPv6
	advertised = 24 // bytes of a neighbour advertisement without options
)

// claimant is the hardware address of the machine that claims an address in a packet,
// which begins with the header of ARP or IPv6; nil: none does. link is the packet's source
// on the link.
func claimant(b []byte, address netip.Addr, link net.HardwareAddr) net.HardwareAddr {
	if address.Is4() {
		if len(b) < arpBytes || b[4] != 6 || b[5] != 4 || netip.AddrFrom4([4]byte(b[14:])) != address {
			return nil
		}
		return net.HardwareAddr(b[8:14])
	}
	if len(b) < headBytes+advertised || b[6] != unix.IPPROTO_ICMPV6 || b[headBytes] != byte(ipv6.ICMPTypeNeighborAdvertisement) || netip.AddrFrom16([16]byte(b[headBytes+8:])) != address {
		return nil
	}
	return link
}

// claims takes packets in which a machine claims the address, see [claimant].
func claims(address netip.Addr) (protocol uint16, filter []bpf.Instruction) {
	protocol = unix.ETH_P_ARP
	at := uint32(14)
	if address.Is6() {
		protocol, at = unix.ETH_P_IPV6, headBytes+8
		filter = append(filter,
			bpf.LoadAbsolute{Off: 6, Size: 1}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipTrue: 1}, bpf.RetConstant{},
			bpf.LoadAbsolute{Off: headBytes, Size: 1}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(ipv6.ICMPTypeNeighborAdvertisement), SkipTrue: 1}, bpf.RetConstant{})
	}
	words := address.AsSlice()
	for i := 0; i < len(words); i += 4 {
		filter = append(filter,
			bpf.LoadAbsolute{Off: at + uint32(i), Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(words[i:]), SkipTrue: 1}, bpf.RetConstant{})
	}
	return protocol, append(filter, bpf.RetConstant{Val: 0xffff})
}

// question is a packet that asks who has an address, from nobody, so that no machine
// takes note of it, and where it goes on the link: an ARP probe (RFC 5227, section 2.1.1)
// or a neighbour solicitation as in RFC 4862, section 5.4.2.
func question(address netip.Addr, own net.HardwareAddr) (packet []byte, to net.HardwareAddr) {
	if address.Is4() {
		b := make([]byte, 0, arpBytes)
		b = append(b, 0, 1, 8, 0, 6, 4, 0, 1) // Ethernet, IPv4, their lengths, a request
		b = append(b, own...)
		b = append(b, make([]byte, 10)...)
		return append(b, address.AsSlice()...), net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	a := address.As16()
	group := netip.MustParseAddr("ff02::1:ff00:0").As16() // RFC 4291, section 2.7.1
	copy(group[13:], a[13:])
	m := icmp.Message{Type: ipv6.ICMPTypeNeighborSolicitation, Body: &icmp.RawBody{Data: append(make([]byte, 4), a[:]...)}}
	body, err := m.Marshal(icmp.IPv6PseudoHeader(net.IPv6unspecified, group[:]))
	if err != nil {
		panic(err) // a body of bytes has no errors
	}
	b := make([]byte, headBytes, headBytes+len(body))
	b[0], b[6], b[7] = 6<<4, unix.IPPROTO_ICMPV6, 255 // RFC 4861, section 7.1.1
	binary.BigEndian.PutUint16(b[4:], uint16(len(body)))
	copy(b[24:], group[:])
	return append(b, body...), append(net.HardwareAddr{0x33, 0x33}, group[12:]...) // RFC 2464, section 7
}
