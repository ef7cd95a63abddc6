package packetsocket

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Fragment is what the fragments of one IP packet have in common (RFC 791, section 3.2;
// RFC 8200, section 4.5).
type Fragment struct {
	Source, Destination netip.Addr
	Protocol            uint8
	ID                  uint32
}

// Snapshot is how much of each packet is looked at, in bytes: more than the longest IPv4
// header, or IPv6's with one for fragments, and the ports.
const Snapshot = 96

// Ports takes fragments, and packets with a port from first to last at either end.
// Offsets are of RFC 791 and RFC 8200.
func Ports(first, last uint32) []bpf.Instruction {
	ports := func(source, destination bpf.Instruction) []bpf.Instruction {
		return []bpf.Instruction{
			source,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: first, SkipTrue: 1},
			bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: last, SkipTrue: 3},
			destination,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: first, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: last, SkipTrue: 1},
			bpf.RetConstant{Val: Snapshot},
			bpf.RetConstant{Val: 0},
		}
	}
	over4 := slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: 0x3fff, SkipTrue: 1},
		bpf.RetConstant{Val: Snapshot},
		bpf.LoadMemShift{Off: 0},
	}, ports(bpf.LoadIndirect{Off: 0, Size: 2}, bpf.LoadIndirect{Off: 2, Size: 2}))
	over6 := slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_FRAGMENT, SkipTrue: 1},
		bpf.RetConstant{Val: Snapshot},
	}, ports(bpf.LoadAbsolute{Off: 40, Size: 2}, bpf.LoadAbsolute{Off: 42, Size: 2}))
	return slices.Concat([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: uint8(len(over4))},
	}, over4, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 1}, bpf.RetConstant{Val: 0},
	}, over6)
}

// Head is what the beginning of a packet says.
type Head struct {
	Fragment
	SourcePort, DestinationPort uint16
	Fragmented, First           bool
}

// ParseHead reads the IP header and the ports after it. TCP, UDP, UDP-Lite, DCCP and SCTP
// have them in the first four bytes (RFC 9293, 768, 3828, 4340, 9260).
func ParseHead(b []byte) (h Head, ok bool) {
	if len(b) < 1 {
		return h, false
	}
	var rest []byte
	switch b[0] >> 4 {
	case 4:
		size := int(b[0]&15) * 4
		if size < 20 || len(b) < size {
			return h, false
		}
		offset := binary.BigEndian.Uint16(b[6:])
		h.Fragmented, h.First = offset&0x3fff != 0, offset&0x1fff == 0
		h.ID, h.Protocol = uint32(binary.BigEndian.Uint16(b[4:])), b[9]
		h.Source, h.Destination = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
		rest = b[size:]
	case 6:
		if len(b) < 40 {
			return h, false
		}
		h.Protocol, h.First = b[6], true
		h.Source, h.Destination = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		rest = b[40:]
		if h.Protocol == unix.IPPROTO_FRAGMENT {
			if len(rest) < 8 {
				return h, false
			}
			offset := binary.BigEndian.Uint16(rest[2:])
			h.Fragmented, h.First = true, offset&0xfff8 == 0
			h.Protocol, h.ID = rest[0], binary.BigEndian.Uint32(rest[4:])
			rest = rest[8:]
		}
	default:
		return h, false
	}
	if h.Fragmented && !h.First {
		return h, true
	}
	switch h.Protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE, unix.IPPROTO_DCCP, unix.IPPROTO_SCTP:
	default:
		return h, false
	}
	if len(rest) < 4 {
		return h, false
	}
	h.SourcePort, h.DestinationPort = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	return h, true
}
