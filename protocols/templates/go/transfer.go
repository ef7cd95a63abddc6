// The transfer from both ends, and the driver's three roles.

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// stream is one reliable connection of the protocol. SetDeadline is called from any
// goroutine and ends waits, which then fail with os.ErrDeadlineExceeded.
type stream interface {
	io.Reader
	io.Writer
	SetDeadline(t time.Time) error
	keepLittleUnsent(bytes int) error
	figures(s *sample) // from any goroutine
	finish()           // in order: what was written still arrives
	abort()            // reset: what was not sent is discarded
}

// listener accepts connections until it is closed.
type listener interface {
	Accept() (stream, error) // net.ErrClosed after Close
	Close() error
}

const (
	headerSize = 24
	maxChunk   = 1 << 20
	openBit    = 1 << 63  // of the header's size: the payload comes in chunks
	piece      = 32 << 10 // of payload at a time
	openPiece  = 4 << 10  // a chunk is sent whole, also when the time is up
)

func main() { os.Exit(run()) }

func run() int {
	in := bufio.NewReader(os.Stdin)
	p, err := readParameters(in)
	if err != nil {
		return fail("", internal, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	i, err := probe(p)
	if err != nil {
		return fail("", internal, err)
	}
	switch p.Role {
	case "server":
		return server(ctx, p, i)
	case "client":
		say(event{Event: "ready", Info: i})
		return client(ctx, p, in)
	}
	say(event{Event: "ready", Info: i})
	return 0
}

// limit is the end of a limit that begins now; the zero time where there is none.
func limit(ms int64) time.Time {
	if ms <= 0 || ms > maxDuration*100 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ms) * time.Millisecond)
}

var errStopped = failf(aborted, "SIGTERM while the transfer ran")

// bounded sets a stream's deadline, and ends its waits when ctx ends.
type bounded struct {
	stream
	ended func() error // of ctx
}

func (b *bounded) until(t time.Time) error {
	if err := b.SetDeadline(t); err != nil {
		return err
	}
	if b.ended() != nil {
		return errStopped
	}
	return nil
}

// interruptible returns a stream whose waits end with ctx, until release is called.
func interruptible(ctx context.Context, s stream) (b *bounded, release func() bool) {
	return &bounded{s, ctx.Err}, context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
}

// transfer is the clock, the bytes and the samples of one transfer.
type transfer struct {
	id       string
	s        stream
	began    time.Time
	moved    atomic.Int64
	last     time.Duration // of the newest sample
	quit     chan struct{}
	sampling sync.WaitGroup
	ended    bool
}

// begin starts the clock.
func begin(id string, s stream) *transfer {
	return &transfer{id: id, s: s, began: time.Now(), quit: make(chan struct{})}
}

// sampleEvery starts the samples.
func (t *transfer) sampleEvery(ms int64) {
	t.sampling.Add(1)
	go t.run(time.Duration(ms) * time.Millisecond)
}

// run writes samples at the interval, which doubles after 500 and every 250 more.
func (t *transfer) run(interval time.Duration) {
	defer t.sampling.Done()
	due := interval
	timer := time.NewTimer(due)
	defer timer.Stop()
	for count := 1; ; count++ {
		select {
		case <-t.quit:
			return
		case <-timer.C:
		}
		now := time.Since(t.began)
		t.sample(now)
		if count >= 500 && count%250 == 0 {
			interval *= 2
		}
		due += interval
		if due <= now { // what was missed is left out
			due += (now-due)/interval*interval + interval
		}
		timer.Reset(time.Until(t.began.Add(due)))
	}
}

func (t *transfer) sample(at time.Duration) *sample {
	t.last = max(t.last, at)
	x := &sample{ElapsedNS: t.last.Nanoseconds(), SentBytes: t.moved.Load()}
	t.s.figures(x)
	say(event{Event: "sample", Transfer: t.id, Sample: x})
	return x
}

func (t *transfer) end() {
	if !t.ended {
		t.ended = true
		close(t.quit)
		t.sampling.Wait()
	}
}

func (t *transfer) result(elapsed, connect time.Duration) {
	t.end()
	final := t.sample(elapsed)
	say(event{Event: "result", Transfer: t.id, Result: &result{SizeBytes: t.moved.Load(), ElapsedNS: elapsed.Nanoseconds(),
		ConnectNS: connect.Nanoseconds(), Final: final}})
}

// client carries one transfer, of the payload that in has.
func client(ctx context.Context, p *parameters, in io.Reader) int {
	id, start := p.Transfer.ID, time.Now()
	end := limit(p.Limits.ConnectMS)
	dial, cancel := ctx, func() {}
	if !end.IsZero() {
		dial, cancel = context.WithDeadline(ctx, end)
	}
	defer cancel()
	s, err := connect(dial, p)
	if err != nil {
		if ctx.Err() != nil {
			err = errStopped
		} else if dial.Err() != nil {
			err = failf(connectTimeout, "no connection within limits.connect_ms: %w", err)
		}
		return fail(id, connectTimeout, err)
	}
	b, release := interruptible(ctx, s)
	if late, err := send(b, p, in, start, end); err != nil {
		if ctx.Err() != nil {
			err = errStopped
		}
		s.abort()
		return fail(id, late, err)
	}
	release()
	s.finish()
	return 0
}

// send is the transfer after the connection; late is the code of a limit that passed.
func send(b *bounded, p *parameters, in io.Reader, start, connectEnd time.Time) (late string, err error) {
	if err := b.until(connectEnd); err != nil {
		return connectTimeout, err
	}
	if first, err := readByte(b); err != nil {
		return connectTimeout, err
	} else if first != 'R' {
		return connectTimeout, failf(protocolViolation, "the server's first byte is %q, expected R", first)
	}
	connected := time.Since(start)
	say(event{Event: "connected", Transfer: p.Transfer.ID, ConnectNS: connected.Nanoseconds()})
	size := uint64(p.Transfer.SizeBytes)
	if p.Transfer.DurationMS > 0 {
		size |= openBit
	}
	header := binary.BigEndian.AppendUint64(p.id[:], size)
	if err := b.until(limit(p.Limits.TransferMS)); err != nil {
		return transferTimeout, err
	}
	if _, err := b.Write(header); err != nil {
		return transferTimeout, err
	}
	t := begin(p.Transfer.ID, b)
	t.sampleEvery(p.SampleIntervalMS)
	defer t.end()
	if err := b.until(limit(p.Limits.TransferMS)); err != nil {
		return transferTimeout, err
	}
	if err := t.write(b, p, in); err != nil {
		return transferTimeout, err
	}
	answer, err := readByte(b)
	elapsed := time.Since(t.began)
	switch {
	case err != nil:
		return transferTimeout, err
	case answer != '.':
		return transferTimeout, failf(protocolViolation, "the server's answer is %q, expected .", answer)
	}
	t.result(elapsed, connected)
	return "", nil
}

// write sends the payload: all of it, or chunks until its time is up.
func (t *transfer) write(b *bounded, p *parameters, in io.Reader) error {
	open, n := p.Transfer.DurationMS > 0, int64(piece)
	until := t.began.Add(time.Duration(p.Transfer.DurationMS) * time.Millisecond)
	if open {
		n = openPiece
		if err := b.keepLittleUnsent(4 * openPiece); err != nil {
			return failf(unsupported, "bound what is not sent yet: %w", err)
		}
	}
	buf := make([]byte, 4+n)
	for at := int64(0); at < p.Transfer.SizeBytes && (!open || time.Now().Before(until)); {
		part := buf[4 : 4+min(n, p.Transfer.SizeBytes-at)]
		if _, err := io.ReadFull(in, part); err != nil {
			return failf(internal, "standard input ended within the payload: %w", err)
		}
		out := part
		if open {
			binary.BigEndian.PutUint32(buf, uint32(len(part)))
			out = buf[:4+len(part)]
		}
		if _, err := b.Write(out); err != nil {
			return err
		}
		at += int64(len(part))
		t.moved.Store(at)
	}
	if open {
		_, err := b.Write(make([]byte, 4))
		return err
	}
	return nil
}

func readByte(r io.Reader) (byte, error) {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return b[0], nil
}

// server accepts transfers until SIGTERM.
func server(ctx context.Context, p *parameters, i *info) int {
	l, err := listen(p)
	if err != nil {
		var f *failure
		if !errors.As(err, &f) {
			err = failf(listenFailed, "%w", err)
		}
		return fail("", internal, err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	context.AfterFunc(ctx, func() { _ = l.Close() })
	say(event{Event: "ready", Info: i})
	for {
		s, err := l.Accept()
		switch {
		case err == nil:
			running.Add(1)
			go func() {
				defer running.Done()
				serve(ctx, p, s)
			}()
		case ctx.Err() != nil:
			return 0
		case errors.Is(err, net.ErrClosed):
			return fail("", internal, err)
		default: // no descriptors left, or a connection that is gone already
			fmt.Fprintln(os.Stderr, "accept:", err)
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// serve takes one connection from R to its close.
func serve(ctx context.Context, p *parameters, s stream) {
	b, release := interruptible(ctx, s)
	defer release()
	var header [headerSize]byte
	err := b.until(limit(p.Limits.ConnectMS))
	if err == nil {
		_, err = b.Write([]byte{'R'})
	}
	if err == nil {
		_, err = io.ReadFull(b, header[:])
	}
	if err != nil { // nobody knows whose it was
		fmt.Fprintln(os.Stderr, "a connection ended before its header:", err)
		s.abort()
		return
	}
	if err := receive(b, p, header); err != nil {
		if ctx.Err() != nil {
			err = errStopped
		}
		_ = fail(hex.EncodeToString(header[:16]), transferTimeout, err)
		s.abort()
		return
	}
	// The client closes first, once it has the answer.
	if b.until(limit(p.Limits.TransferMS)) == nil {
		_, _ = readByte(b)
	}
	s.finish()
}

// receive reads the payload, hands it over, and answers.
func receive(b *bounded, p *parameters, header [headerSize]byte) error {
	id := hex.EncodeToString(header[:16])
	size := binary.BigEndian.Uint64(header[16:])
	open := size&openBit != 0
	size &^= openBit
	if size > maxSize {
		return failf(protocolViolation, "the header announces %d bytes", size)
	}
	t := begin(id, b)
	say(event{Event: "connected", Transfer: id})
	t.sampleEvery(p.SampleIntervalMS)
	defer t.end()
	if err := b.until(limit(p.Limits.TransferMS)); err != nil {
		return err
	}
	in := incoming{t: t, buf: make([]byte, piece)}
	read := in.sized
	if open {
		read = in.chunks
	}
	if err := read(bufio.NewReaderSize(b, piece), int64(size)); err != nil {
		return err
	}
	elapsed := time.Since(t.began)
	if _, err := b.Write([]byte{'.'}); err != nil {
		return err
	}
	t.result(elapsed, 0)
	return nil
}

// incoming hands over what arrives.
type incoming struct {
	t   *transfer
	buf []byte
}

// sized reads n bytes of payload.
func (in *incoming) sized(r *bufio.Reader, n int64) error {
	for n > 0 {
		got, err := r.Read(in.buf[:min(n, int64(len(in.buf)))])
		if got > 0 {
			sayPayload(in.t.id, in.buf[:got])
		}
		in.t.moved.Add(int64(got))
		n -= int64(got)
		if err != nil && n > 0 {
			return err
		}
	}
	return nil
}

// chunks reads a payload in chunks, of most bytes at most.
func (in *incoming) chunks(r *bufio.Reader, most int64) error {
	for {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(length[:]))
		if n == 0 {
			return nil
		}
		if n > maxChunk || in.t.moved.Load()+n > most {
			return failf(protocolViolation, "a chunk of %d bytes after %d of %d", n, in.t.moved.Load(), most)
		}
		if err := in.sized(r, n); err != nil {
			return err
		}
	}
}
