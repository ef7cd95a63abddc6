package contract

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// The transfer, byte by byte, over whatever reliable stream a protocol gives
// (breedy-2015, section V):
//
//	server → client  1 byte   [ByteReady]: the server is there
//	client → server  24 bytes [Header]: identity and size; the clock starts after it
//	client → server  size bytes of payload, as standard input has them
//	server → client  1 byte   [ByteAccepted]: all are there and handed over; the clock stops when it arrives
//
// An open payload, of a transfer that a time bounds, comes in chunks, each with
// its length before it ([AppendChunkLength]); a length of 0 ends it.
const (
	ByteReady    = 'R'
	ByteAccepted = '.' // the paper's acknowledgement
)

// HeaderSize is the length of [Header] on the wire, in bytes.
const HeaderSize = 24

// TransferID is the identity of one transfer of one attempt of one trial.
type TransferID [16]byte

func (id TransferID) String() string { return hex.EncodeToString(id[:]) }

// ParseTransferID reads 32 lower-case hexadecimal digits.
func ParseTransferID(s string) (TransferID, error) {
	var id TransferID
	if len(s) != 32 {
		return id, fmt.Errorf("transfer id %.40q, expected 32 hexadecimal digits", s)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return id, fmt.Errorf("transfer id %q, expected 32 hexadecimal digits", s)
	}
	if id.String() != s {
		return id, fmt.Errorf("transfer id %q, expected lower case", s)
	}
	return id, nil
}

// Header is what the paper calls "the size": the client sends it before the clock starts.
type Header struct {
	ID        TransferID
	SizeBytes uint64 // of an open payload: the most it will be
	// Open: the payload comes in chunks, and its size shows at its end.
	Open bool
}

// openBit of the size field announces an open payload.
const openBit = 1 << 63

// Append writes the header in network byte order: id, size.
func (h Header) Append(b []byte) []byte {
	b = append(b, h.ID[:]...)
	size := h.SizeBytes
	if h.Open {
		size |= openBit
	}
	return binary.BigEndian.AppendUint64(b, size)
}

// MaxSize is the largest payload a header may announce: 1 TiB.
const MaxSize = 1 << 40

// ParseHeader reads a header of exactly [HeaderSize] bytes.
func ParseHeader(b []byte) (Header, error) {
	var h Header
	if len(b) != HeaderSize {
		return h, fmt.Errorf("header of %d bytes, expected %d", len(b), HeaderSize)
	}
	copy(h.ID[:], b)
	h.SizeBytes = binary.BigEndian.Uint64(b[16:])
	h.Open, h.SizeBytes = h.SizeBytes&openBit != 0, h.SizeBytes&^openBit
	if h.SizeBytes > MaxSize {
		return h, fmt.Errorf("header announces %d bytes, at most %d are carried", h.SizeBytes, int64(MaxSize))
	}
	return h, nil
}

// ChunkLengthSize is the length of a chunk's length on the wire, in bytes.
const ChunkLengthSize = 4

// MaxChunk is the longest chunk of an open payload, in bytes: 1 MiB.
const MaxChunk = 1 << 20

// AppendChunkLength writes the length that precedes a chunk of an open
// payload, in network byte order; 0 is the payload's end.
func AppendChunkLength(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

// ParseChunkLength reads what [AppendChunkLength] writes: exactly
// [ChunkLengthSize] bytes, 0 to [MaxChunk].
func ParseChunkLength(b []byte) (int, error) {
	if len(b) != ChunkLengthSize {
		return 0, fmt.Errorf("chunk length of %d bytes, expected %d", len(b), ChunkLengthSize)
	}
	n := binary.BigEndian.Uint32(b)
	if n > MaxChunk {
		return 0, fmt.Errorf("a chunk of %d bytes, at most %d are carried", n, MaxChunk)
	}
	return int(n), nil
}
