package harness

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"linktrial/protocols/contract"
)

// chunk is how much payload is read and sent at a time, in bytes: it stays in the cache
// of the processor, and sent_bytes grows in steps that a chart does not show.
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
	from io.Reader     // standard input
	sent *atomic.Int64 // payload handed over so far
}

// sized sends a payload of a size.
func (o *outgoing) sized(size int64) error {
	buf := make([]byte, fastChunk)
	var p pace
	for at := int64(0); at < size; {
		b := buf[:min(p.chunk(), size-at)]
		if err := o.fill(b, at); err != nil {
			return err
		}
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

// open sends chunks until a moment, at least one, at most so many bytes of payload.
func (o *outgoing) open(atMost int64, until time.Time) error {
	// A chunk's length and content are handed over together, lest each
	// length become a packet of its own.
	var buf [contract.ChunkLengthSize + openChunk]byte
	for at := int64(0); at < atMost && (at == 0 || time.Now().Before(until)); {
		n := min(openChunk, atMost-at)
		b := contract.AppendChunkLength(buf[:0], int(n))[:contract.ChunkLengthSize+n]
		if err := o.fill(b[contract.ChunkLengthSize:], at); err != nil {
			return err
		}
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

// fill reads the next part of the payload.
func (o *outgoing) fill(b []byte, at int64) error {
	n, err := io.ReadFull(o.from, b)
	if err != nil {
		return Failf(contract.CodeInternal, "standard input ended after %d bytes of payload: %w", at+int64(n), err)
	}
	return nil
}

// openPayload is how much of a stream of so many bytes, begun after the
// header, is payload, where every chunk has openChunk bytes.
func openPayload(stream int64) int64 {
	const unit = contract.ChunkLengthSize + openChunk
	return stream/unit*openChunk + max(0, stream%unit-contract.ChunkLengthSize)
}

// blockHead is room before a block for the line that announces it, in bytes.
const blockHead = 128

// blockSize is when a block is handed over at the latest, in bytes: few enough writes,
// and little memory.
const blockSize = 32 << 10

// incoming is the payload as the server reads it and hands it over, in blocks: when one is
// full, before each sample, and at the end. Only the reading goroutine calls room and take.
type incoming struct {
	c        io.Reader
	ev       *events
	transfer string
	read     int64         // payload read so far
	handed   *atomic.Int64 // payload handed over so far

	mu       sync.Mutex
	buf      []byte
	from, to int // what of buf is not handed over yet; at least blockHead before it is free
}

// room is where the next part is read to, at most so many bytes.
func (in *incoming) room(atMost int64) []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.from == in.to || len(in.buf)-in.to < blockSize {
		in.handOver()
		in.from, in.to = blockHead, blockHead
	}
	return in.buf[in.to:min(int64(len(in.buf)), int64(in.to)+atMost)]
}

// take notes how much was read to room.
func (in *incoming) take(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.to += n
	in.read += int64(n)
	if in.to-in.from >= blockSize {
		in.handOver()
	}
}

// flush hands over what has been read.
func (in *incoming) flush() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.handOver()
}

func (in *incoming) handOver() {
	n := in.to - in.from
	if n == 0 {
		return
	}
	in.ev.block(in.transfer, in.buf[in.from-blockHead:in.to])
	in.from = in.to
	in.handed.Add(int64(n))
}

// sized reads a payload of a size.
func (in *incoming) sized(size int64) error {
	for in.read < size {
		n, err := in.c.Read(in.room(size - in.read))
		in.take(n)
		if err != nil && in.read < size {
			if errors.Is(err, io.EOF) {
				err = Failf(contract.CodeReset, "the client closed the connection after %d of %d bytes", in.read, size)
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
			return Failf(contract.CodeReset, "the client closed the connection after %d bytes, before the payload's end", in.read)
		}
		return err
	}
	r := bufio.NewReaderSize(in.c, readBuffer/2)
	var length [contract.ChunkLengthSize]byte
	for {
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return closed(err)
		}
		left, err := contract.ParseChunkLength(length[:])
		if err != nil {
			return Failf(contract.CodeProtocolViolation, "after %d bytes: %w", in.read, err)
		}
		if left == 0 {
			return nil
		}
		if in.read+int64(left) > atMost {
			return Failf(contract.CodeProtocolViolation, "a chunk of %d bytes after %d, the header announced at most %d", left, in.read, atMost)
		}
		for left > 0 {
			n, err := r.Read(in.room(int64(left)))
			in.take(n)
			left -= n
			if err != nil && left > 0 {
				return closed(err)
			}
		}
	}
}
