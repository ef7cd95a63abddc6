package tun

import "encoding/binary"

const ecnMask = 3 // of the second byte of the IPv4 header (RFC 3168, section 5); 3 is CE

// capable reports whether a packet's transport understands marks: ECT(0), ECT(1)
// or CE already.
func capable(ip []byte) bool { return ip[1]&ecnMask != 0 }

// markCongestion sets CE in an IPv4 header and updates its checksum (RFC 1624,
// equation 3).
func markCongestion(ip []byte) {
	old := binary.BigEndian.Uint16(ip)
	ip[1] |= ecnMask
	sum := uint32(^binary.BigEndian.Uint16(ip[10:])) + uint32(^old) + uint32(binary.BigEndian.Uint16(ip))
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
}
