package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"linktrial/protocols/contract"
)

// readBuffer is how much is read, checked and hashed at a time, in bytes.
const readBuffer = 128 << 10

// acceptPause lets connections end when the process has no descriptor left.
const acceptPause = 50 * time.Millisecond

// buffers are the read buffers of connections, kept between transfers.
var buffers = sync.Pool{New: func() any { b := make([]byte, readBuffer); return &b }}

// server accepts transfers until ctx ends.
func (r *run) server(ctx context.Context) int {
	l, err := r.Listen(ctx, r.p)
	if err != nil {
		return r.ev.failed("", codeOf(err, contract.CodeListenFailed), err)
	}
	return accept(ctx, r, l, r.serve)
}

// accept reports ready and gives every connection of a listener to serve, in a
// goroutine of its own, until ctx ends.
func accept[C any](ctx context.Context, r *run, l interface {
	Accept() (C, error)
	Close() error
}, serve func(context.Context, C)) int {
	var conns sync.WaitGroup
	defer conns.Wait()
	cctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(cctx, func() { _ = l.Close() })
	r.ev.write(&contract.Event{Event: contract.KindReady, Info: r.info})

	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			conns.Go(func() { serve(cctx, c) })
		case ctx.Err() != nil:
			return contract.ExitOK
		case !errors.Is(err, net.ErrClosed) && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
			errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ECONNABORTED)):
			r.log.Warn("accept", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
		default:
			return r.ev.failed("", codeOf(err, contract.CodeInternal), err)
		}
	}
}

// serve takes one connection from its first byte to its end.
func (r *run) serve(ctx context.Context, c Conn) {
	release := interrupt(ctx, c)
	defer release()
	h, err := r.header(ctx, c)
	if i, ok := c.(Identified); ok && h != nil {
		i.Identify(h.ID.String())
	}
	if err == nil {
		err = r.receive(ctx, c, h)
	} else if h == nil {
		// Nobody knows whose connection it was: that is for the log alone.
		c.Abort()
		r.log.Info("a connection ended before its header", "error", err)
		return
	}
	if err != nil {
		r.ev.fail(h.ID.String(), codeOf(err, contract.CodeInternal), err)
		var answered *answeredError
		if !errors.As(err, &answered) {
			c.Abort()
			return
		}
	}
	// The client closes first, once it has the last byte. Until then the
	// connection stays, however long the link is down: a connection without an
	// owner is given up by the kernel much earlier. Nothing is sent meanwhile.
	if err := setDeadline(ctx, c, after(time.Now(), r.p.Limits.TransferMS)); err == nil {
		var b [1]byte
		if n, _ := c.Read(b[:]); n > 0 {
			r.log.Warn("a client sent more than its header announced", "transfer", h.ID.String())
		}
	}
	release() // Close may need time of its own
	if err := c.SetDeadline(time.Time{}); err != nil {
		r.log.Debug("clear deadline", "error", err)
	}
	if err := c.Close(); err != nil {
		r.log.Debug("close", "transfer", h.ID.String(), "error", err)
	}
}

// header sends the first byte and reads the header. A header with an error
// is one that was understood in part: its identity holds.
func (r *run) header(ctx context.Context, c Conn) (*contract.Header, error) {
	// A client that vanished in the handshake must not keep its connection.
	if err := setDeadline(ctx, c, after(time.Now(), r.p.Limits.ConnectMS)); err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte{contract.ByteReady}); err != nil {
		return nil, err
	}
	var b [contract.HeaderSize]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return nil, err
	}
	h, err := contract.ParseHeader(b[:])
	if err != nil {
		return &h, Failf(contract.CodeProtocolViolation, "%w", err)
	}
	return &h, nil
}

// answeredError is the failure of a transfer whose client still has to get
// its answer: the connection is closed in order.
type answeredError struct{ error }

func (e *answeredError) Unwrap() error { return e.error }

// receive reads and checks the payload. A wrong one is read to its end all the
// same, so that the client, which listens only then, gets the answer.
func (r *run) receive(ctx context.Context, c Conn, h *contract.Header) error {
	id := h.ID.String()
	const late = "the payload did not arrive within limits.transfer_ms"
	start := time.Now()
	// The client's clock started earlier, so its own limit comes first.
	if err := setDeadline(ctx, c, after(start, r.p.Limits.TransferMS)); err != nil {
		return err
	}
	r.ev.write(&contract.Event{Event: contract.KindConnected, Transfer: id})
	s := r.sample(c, id, false, start)
	defer s.end()

	bp := buffers.Get().(*[]byte)
	defer buffers.Put(bp)
	in := incoming{c: c, seed: h.Seed ^ r.p.VerifySeedXOR, sum: sha256.New(), got: &s.bytes, buf: *bp, flip: -1, wrong: -1}
	if r.p.VerifyFlipAt != nil {
		in.flip = *r.p.VerifyFlipAt
	}
	read := in.sized
	if h.Open {
		read = in.open
	}
	if err := read(int64(h.SizeBytes)); err != nil {
		return settle(ctx, err, contract.CodeTransferTimeout, late)
	}
	elapsed := time.Since(start)
	answer := byte(contract.ByteAccepted)
	if in.wrong >= 0 {
		answer = contract.ByteRejected
	}
	if _, err := c.Write([]byte{answer}); err != nil {
		return settle(ctx, err, contract.CodeTransferTimeout, late)
	}
	if in.wrong >= 0 {
		return &answeredError{Failf(contract.CodeCorrupted, "byte %d is not the payload's", in.wrong)}
	}
	r.ev.write(&contract.Event{Event: contract.KindResult, Transfer: id, Result: &contract.Result{
		SizeBytes: s.bytes.Load(), ElapsedNS: elapsed.Nanoseconds(), Digest: hex.EncodeToString(in.sum.Sum(nil)),
		Final: s.finish(elapsed), Info: c.Info(), Paths: pathsOf(c, false),
	}})
	return nil
}
