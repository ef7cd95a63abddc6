package path

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Packets of a port's check look to a firewall like the first ones of a connection, and
// open none: nobody completes them.

// packet is one of them.
type packet struct {
	protocol int // of IP: unix.IPPROTO_TCP, _UDP or _SCTP
	from, to netip.AddrPort
	answer   bool
	number   uint32 // identifies the probe; in an answer it is the probe's
}

const udpMark = "linktrial port check"

// encode has no IP header.
func (p *packet) encode() []byte {
	b := binary.BigEndian.AppendUint16(nil, p.from.Port())
	b = binary.BigEndian.AppendUint16(b, p.to.Port())
	switch p.protocol {
	case unix.IPPROTO_UDP: // RFC 768
		b = binary.BigEndian.AppendUint16(b, uint16(8+len(udpMark)+4))
		b = append(b, 0, 0)
		b = append(b, udpMark...)
		b = binary.BigEndian.AppendUint32(b, p.number)
		sum := p.checksum(b)
		if sum == 0 {
			sum = 0xffff
		}
		binary.BigEndian.PutUint16(b[6:], sum)
	case unix.IPPROTO_TCP: // RFC 9293, section 3.1: SYN, or SYN and ACK, with the MSS of IPv6's least MTU
		ack, flags := uint32(0), byte(0x02)
		if p.answer {
			ack, flags = p.number+1, 0x12
		}
		b = binary.BigEndian.AppendUint32(b, p.number)
		b = binary.BigEndian.AppendUint32(b, ack)
		b = append(b, 6<<4, flags, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 1220>>8, 1220&0xff)
		binary.BigEndian.PutUint16(b[16:], p.checksum(b))
	case unix.IPPROTO_SCTP: // RFC 9260, sections 3.1, 3.3.2 and 3.3.3: INIT, or INIT ACK with a cookie
		tag, kind, parameter := uint32(0), byte(1), []byte{0, 12, 0, 8, 0, 5, 0, 6} // addresses of IPv4 and IPv6
		if p.answer {
			tag, kind, parameter = p.number, 2, []byte{0, 7, 0, 8, 'l', 't', 'p', 'c'}
		}
		b = binary.BigEndian.AppendUint32(b, tag)
		b = append(b, 0, 0, 0, 0, kind, 0, 0, 28)
		b = binary.BigEndian.AppendUint32(b, p.number)
		b = append(b, 0, 1, 0, 0, 0, 1, 0, 1) // window of 64 KiB, one stream each way
		b = binary.BigEndian.AppendUint32(b, p.number)
		b = append(b, parameter...)
		// Section 6.8 and appendix A: the CRC's bytes in the order that they leave a register.
		binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	}
	return b
}

// checksum is that of RFC 1071 over the pseudo header of RFC 768 or RFC 8200, section 8.1,
// and the packet.
func (p *packet) checksum(b []byte) uint16 {
	from, to := p.from.Addr().AsSlice(), p.to.Addr().AsSlice()
	sum := uint32(p.protocol) + uint32(len(b))
	for _, part := range [][]byte{from, to, b} {
		for i := 0; i+1 < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
		if len(part)%2 == 1 {
			sum += uint32(part[len(part)-1]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// ports are those of a packet without its IP header.
func ports(b []byte) (source, destination uint16, ok bool) {
	if len(b) < 4 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), true
}

// refusal reports whether a packet without its IP header is a reset of TCP, which a
// firewall sends as well.
func refusal(protocol int, b []byte) bool {
	return protocol == unix.IPPROTO_TCP && len(b) > 13 && b[13]&0x04 != 0
}

// probeNumber is what identifies a probe, of a packet without its IP header; not ok: it is
// none.
func probeNumber(protocol int, b []byte) (number uint32, ok bool) {
	switch protocol {
	case unix.IPPROTO_UDP:
		if len(b) != 8+len(udpMark)+4 || string(b[8:8+len(udpMark)]) != udpMark {
			return 0, false
		}
		return binary.BigEndian.Uint32(b[8+len(udpMark):]), true
	case unix.IPPROTO_TCP:
		if len(b) < 20 || b[13] != 0x02 {
			return 0, false
		}
		return binary.BigEndian.Uint32(b[4:]), true
	case unix.IPPROTO_SCTP:
		if len(b) < 32 || b[12] != 1 {
			return 0, false
		}
		return binary.BigEndian.Uint32(b[16:]), true
	}
	return 0, false
}

// numbers are those of a run's probes, of which there are most: nobody without the key
// makes a node answer one.
func numbers(key *Key, most int) (out []uint32) {
	for i := range most {
		m := hmac.New(sha256.New, key[:])
		m.Write([]byte("linktrial port check"))
		m.Write([]byte{byte(i >> 8), byte(i)})
		out = append(out, binary.BigEndian.Uint32(m.Sum(nil))|1) // an SCTP tag is not 0
	}
	return out
}

// addrPort joins an address without its zone and a port.
func addrPort(address string, port int) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if port <= 0 || port > 0xffff {
		return netip.AddrPort{}, errors.New("a port out of range")
	}
	return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port)), nil
}
