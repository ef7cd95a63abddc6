// Package wire is haul's format of packets and frames (docs/haul-protocol.md):
// it reads and writes bytes, and knows nothing of connections. Integers of
// variable length are those of encoding/binary (LEB128); those of fixed length
// are in network byte order. Every decoder takes any bytes: what it does not
// understand is [ErrMalformed], and nothing is allocated for it.
package wire

import (
	"encoding/binary"
	"errors"
)

// Version is the protocol's version, in the first byte of every packet.
const Version = 1

// ErrMalformed reports bytes that are no packet or frame of this version.
var ErrMalformed = errors.New("malformed")

// readVarint reads a number of variable length in its shortest form.
func readVarint(b []byte) (v uint64, rest []byte, err error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, ErrMalformed
	}
	return v, b[n:], nil
}

// takeUpTo reads a number that is at most limit.
func takeUpTo(b []byte, limit uint64) (v uint64, rest []byte, err error) {
	if v, rest, err = readVarint(b); err == nil && v > limit {
		err = ErrMalformed
	}
	return v, rest, err
}
