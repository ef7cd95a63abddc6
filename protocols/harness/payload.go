package harness

import (
	"bufio"
	"errors"
	"hash"
	"io"
	"sync/atomic"
	"time"

	"linktrial/protocols/contract"
)

// chunk is how much payload is made, hashed and handed over at a time, in
// bytes: it stays in the cache of the processor, and sent_bytes grows in steps
// that a chart does not show.
const chunk = 32 << 10

// At some 100 Mbit/s and more it is four times as much: a transport in user space
// then fills more of its batches of packets, and the processor changes less often
// between the two. One such chunk stays within the time of a few packets of a radio.
const (
	fastChunk  = 4 * chunk
	fastWrite  = 3 * time.Millisecond // a write that took no longer was fast
	fastWrites = 64                   // so many fast ones on end; more than buffers hold
)

// pace is how much is handed over at a time, from how long writes took.
type pace struct{ fast int }

func (p *pace) chunk() int64 {
	if p.fast >= fastWrites {
		return fastChunk
	}
	return chunk
}

func (p *pace) took(d time.Duration) {
	if p.fast++; d > fastWrite {
		p.fast = 0
	}
}

// openChunk is the length of an open payload's chunks, in bytes. What was
// announced is sent, also when the time is up meanwhile: at 16 kbit/s that is
// 2 s at most, and 4 bytes in 4096 are of no weight.
const openChunk = 4 << 10

// outgoing is the payload as the client sends it.
type outgoing struct {
	c    io.Writer
	seed uint64
	sum  hash.Hash
	sent *atomic.Int64 // payload handed over so far
}

// sized sends a payload of a size.
func (o *outgoing) sized(size int64) error {
	buf := make([]byte, fastChunk)
	var p pace
	for at := int64(0); at < size; {
		b := buf[:min(p.chunk(), size-at)]
		o.fill(b, at)
		began := time.Now()
		n, err := o.c.Write(b)
		p.took(time.Since(began))
		at += int64(n)
		o.sent.Store(at)
		if err != nil {
			return err
		}
	}
	return nil
}

// open sends chunks until a moment, at most so many bytes of payload.
func (o *outgoing) open(atMost int64, until time.Time) error {
	// A chunk's length and content are handed over together, lest each
	// length become a packet of its own.
	var buf [contract.ChunkLengthSize + openChunk]byte
	for at := int64(0); at < atMost && time.Now().Before(until); {
		n := min(openChunk, atMost-at)
		b := contract.AppendChunkLength(buf[:0], int(n))[:contract.ChunkLengthSize+n]
		o.fill(b[contract.ChunkLengthSize:], at)
		wrote, err := o.c.Write(b)
		at += max(0, int64(wrote)-contract.ChunkLengthSize)
		o.sent.Store(at)
		if err != nil {
			return err
		}
	}
	_, err := o.c.Write(contract.AppendChunkLength(buf[:0], 0))
	return err
}

func (o *outgoing) fill(b []byte, at int64) {
	contract.Payload(b, o.seed, uint64(at))
	o.sum.Write(b)
}

// openPayload is how much of a stream of so many bytes, begun after the
// header, is payload, where every chunk has openChunk bytes.
func openPayload(stream int64) int64 {
	const unit = contract.ChunkLengthSize + openChunk
	return stream/unit*openChunk + max(0, stream%unit-contract.ChunkLengthSize)
}

// incoming is the payload as the server reads and checks it.
type incoming struct {
	c     io.Reader
	seed  uint64
	sum   hash.Hash
	got   *atomic.Int64 // payload read so far
	buf   []byte
	flip  int64 // place of the byte that a test has expected to be another, or -1
	wrong int64 // place of the first byte that is not the payload's, or -1
}

// take notes what was read.
func (in *incoming) take(b []byte) {
	at := in.got.Load()
	in.sum.Write(b)
	if in.wrong < 0 {
		flip := in.flip - at
		if in.flip >= at && flip < int64(len(b)) {
			b[flip] ^= 0xff
			defer func() { b[flip] ^= 0xff }()
		}
		if i := contract.Verify(b, in.seed, uint64(at)); i >= 0 {
			in.wrong = at + int64(i)
		}
	}
	in.got.Store(at + int64(len(b)))
}

// sized reads a payload of a size.
func (in *incoming) sized(size int64) error {
	for in.got.Load() < size {
		n, err := in.c.Read(in.buf[:min(int64(len(in.buf)), size-in.got.Load())])
		in.take(in.buf[:n])
		if err != nil && in.got.Load() < size {
			if errors.Is(err, io.EOF) {
				err = Failf(contract.CodeReset, "the client closed the connection after %d of %d bytes", in.got.Load(), size)
			}
			return err
		}
	}
	return nil
}

// open reads chunks up to their end; more payload than announced is a
// protocol violation. Bytes after the end are ignored.
func (in *incoming) open(atMost int64) error {
	closed := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Failf(contract.CodeReset, "the client closed the connection after %d bytes, before the payload's end", in.got.Load())
		}
		return err
	}
	r := bufio.NewReaderSize(in.c, len(in.buf)/2)
	var length [contract.ChunkLengthSize]byte
	for {
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return closed(err)
		}
		left, err := contract.ParseChunkLength(length[:])
		if err != nil {
			return Failf(contract.CodeProtocolViolation, "after %d bytes: %w", in.got.Load(), err)
		}
		if left == 0 {
			return nil
		}
		if got := in.got.Load(); got+int64(left) > atMost {
			return Failf(contract.CodeProtocolViolation, "a chunk of %d bytes after %d, the header announced at most %d", left, got, atMost)
		}
		for left > 0 {
			n, err := r.Read(in.buf[:min(len(in.buf), left)])
			in.take(in.buf[:n])
			left -= n
			if err != nil && left > 0 {
				return closed(err)
			}
		}
	}
}
