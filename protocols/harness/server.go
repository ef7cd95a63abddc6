package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"linktrial/protocols/contract"
)

// readBuffer is how much is read at a time at most, in bytes.
const readBuffer = 128 << 10

// acceptPause lets connections end when the process has no descriptor left.
const acceptPause = 50 * time.Millisecond

// buffers are the read buffers of connections, kept between transfers.
var buffers = sync.Pool{New: func() any { b := make([]byte, blockHead+readBuffer); return &b }}

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
		c.Abort()
		return
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

// receive reads the payload and hands it over.
func (r *run) receive(ctx context.Context, c Conn, h *contract.Header) error {
	id := h.ID.String()
	const late = "the payload did not arrive within limits.transfer_ms"
	start := time.Now()
	// The client's clock started earlier, so its own limit comes first.
	if err := setDeadline(ctx, c, after(start, r.p.Limits.TransferMS)); err != nil {
		return err
	}
	r.ev.write(&contract.Event{Event: contract.KindConnected, Transfer: id})
	bp := buffers.Get().(*[]byte)
	defer buffers.Put(bp)
	in := incoming{c: c, ev: r.ev, transfer: id, buf: *bp, from: blockHead, to: blockHead}
	s := r.sample(c, id, &in, start)
	defer s.end()

	read := in.sized
	if h.Open {
		read = in.open
	}
	if err := read(int64(h.SizeBytes)); err != nil {
		return settle(ctx, err, contract.CodeTransferTimeout, late)
	}
	elapsed := time.Since(start)
	in.flush()
	if _, err := c.Write([]byte{contract.ByteAccepted}); err != nil {
		return settle(ctx, err, contract.CodeTransferTimeout, late)
	}
	r.ev.write(&contract.Event{Event: contract.KindResult, Transfer: id, Result: &contract.Result{
		SizeBytes: s.bytes.Load(), ElapsedNS: elapsed.Nanoseconds(), Final: s.finish(elapsed), Info: c.Info(), Paths: pathsOf(c, false),
	}})
	return nil
}
