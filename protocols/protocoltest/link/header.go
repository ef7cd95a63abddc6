package link

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// header is what a lane reads of an IP packet.
type header struct {
	source  netip.Addr
	flow    uint64 // tells flows apart: the protocol and its ports
	content int64  // see [Traffic.Content]
	dscp    uint8
	// transport: it is of TCP, UDP, SCTP or DCCP, and not what the kernel says of itself.
	transport bool
}

// readHeader is false for a packet to a group, and for one that is not IP.
func readHeader(b []byte) (header, bool) {
	var h header
	var to netip.Addr
	var protocol byte
	var rest []byte
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		n := int(b[0]&15) * 4
		if n > len(b) {
			return h, false
		}
		h.source, _ = netip.AddrFromSlice(b[12:16])
		to, _ = netip.AddrFromSlice(b[16:20])
		protocol, rest = b[9], b[n:]
		h.dscp = b[1] >> 2
	case len(b) >= 40 && b[0]>>4 == 6:
		h.source, _ = netip.AddrFromSlice(b[8:24])
		to, _ = netip.AddrFromSlice(b[24:40])
		protocol, rest = b[6], b[40:]
		h.dscp = b[0]<<4>>2 | b[1]>>6
	default:
		return h, false
	}
	if to.IsMulticast() || h.source.IsLinkLocalUnicast() {
		return header{}, false
	}
	n := 0 // bytes of the protocol's header
	h.flow = uint64(protocol) << 32
	switch protocol {
	case unix.IPPROTO_TCP:
		if len(rest) >= 20 {
			n = int(rest[12]>>4) * 4
		}
	case unix.IPPROTO_UDP:
		n = 8
	case unix.IPPROTO_SCTP:
		n = 12
	case unix.IPPROTO_DCCP:
		if len(rest) >= 5 {
			n = int(rest[4]) * 4
		}
	default:
		h.content = int64(len(rest))
		return h, true
	}
	h.transport = true
	if len(rest) >= 4 {
		h.flow |= uint64(binary.BigEndian.Uint32(rest))
	}
	h.content = int64(max(0, len(rest)-n))
	return h, true
}
