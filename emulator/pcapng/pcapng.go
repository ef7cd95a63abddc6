// Package pcapng writes packet logs of emulated radios in the pcapng format
// (draft-ietf-opsawg-pcapng). Comes in: packets with their time, hop and fate.
// Goes out: bytes appended to the caller's buffer, without allocation once the
// buffer has grown.
package pcapng

import "encoding/binary"

// Numbers of draft-ietf-opsawg-pcapng, sections 3.5 and 4.
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockPacket    = 6 // enhanced packet block

	magic = 0x1A2B3C4D

	optionEnd       = 0
	optionComment   = 1
	optionShbApp    = 4
	optionIfName    = 2
	optionIfDescr   = 3
	optionIfSpeed   = 8
	optionIfTsresol = 9
	optionEpbFlags  = 2

	linkRaw     = 101 // LINKTYPE_RAW: the packet begins with its IP header
	nanoseconds = 9   // if_tsresol: units of 10^-9 s
)

// Bits of an enhanced packet block's flags (section 4.3.1).
const (
	FlagInbound  uint32 = 1
	FlagOutbound uint32 = 2
	FlagCRCError uint32 = 1 << 24
)

// Interface describes where packets were seen.
type Interface struct {
	Name          string
	Description   string
	BitsPerSecond uint64 // 0: not said
	SnapBytes     uint32 // 0: no limit
}

var order = binary.LittleEndian

// AppendHeader opens a section with its interfaces; packets name them by index.
func AppendHeader(b []byte, application string, interfaces []Interface) []byte {
	b, at := open(b, blockSection)
	b = order.AppendUint32(b, magic)
	b = order.AppendUint16(b, 1) // version 1.0
	b = order.AppendUint16(b, 0)
	b = order.AppendUint64(b, ^uint64(0)) // length of the section not known
	b = text(b, optionShbApp, application)
	b = closeOptions(b)
	b = finish(b, at)
	for _, i := range interfaces {
		b, at = open(b, blockInterface)
		b = order.AppendUint16(b, linkRaw)
		b = order.AppendUint16(b, 0)
		b = order.AppendUint32(b, i.SnapBytes)
		b = text(b, optionIfName, i.Name)
		if i.Description != "" {
			b = text(b, optionIfDescr, i.Description)
		}
		if i.BitsPerSecond > 0 {
			b = option(b, optionIfSpeed, 8)
			b = order.AppendUint64(b, i.BitsPerSecond)
		}
		b = option(b, optionIfTsresol, 1)
		b = append(b, nanoseconds, 0, 0, 0)
		b = closeOptions(b)
		b = finish(b, at)
	}
	return b
}

// AppendPacket adds a packet seen at a time in nanoseconds since 1970. An
// empty comment is left out.
func AppendPacket(b []byte, iface int, unixNano uint64, data []byte, flags uint32, comment string) []byte {
	b, at := open(b, blockPacket)
	b = order.AppendUint32(b, uint32(iface))
	b = order.AppendUint32(b, uint32(unixNano>>32))
	b = order.AppendUint32(b, uint32(unixNano))
	b = order.AppendUint32(b, uint32(len(data)))
	b = order.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	b = pad(b, len(data))
	if comment != "" {
		b = text(b, optionComment, comment)
	}
	b = option(b, optionEpbFlags, 4)
	b = order.AppendUint32(b, flags)
	b = closeOptions(b)
	return finish(b, at)
}

func open(b []byte, kind uint32) ([]byte, int) {
	at := len(b)
	b = order.AppendUint32(b, kind)
	return order.AppendUint32(b, 0), at
}

// finish writes the block's length to its two places.
func finish(b []byte, at int) []byte {
	n := uint32(len(b) - at + 4)
	order.PutUint32(b[at+4:], n)
	return order.AppendUint32(b, n)
}

func option(b []byte, code uint16, length int) []byte {
	b = order.AppendUint16(b, code)
	return order.AppendUint16(b, uint16(length))
}

func text(b []byte, code uint16, s string) []byte {
	s = s[:min(len(s), 1<<15)]
	b = option(b, code, len(s))
	b = append(b, s...)
	return pad(b, len(s))
}

func closeOptions(b []byte) []byte { return option(b, optionEnd, 0) }

func pad(b []byte, n int) []byte {
	for ; n%4 != 0; n++ {
		b = append(b, 0)
	}
	return b
}
