package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"linktrial/protocols/contract"
)

// client carries one transfer.
func (r *run) client(ctx context.Context) int {
	id := r.p.Transfer.ID
	r.ev.write(&contract.Event{Event: contract.KindReady, Info: r.info})
	begin := time.Now()
	limit := after(begin, r.p.Limits.ConnectMS)
	dctx, cancel := ctx, context.CancelFunc(func() {})
	if !limit.IsZero() {
		dctx, cancel = context.WithDeadline(ctx, limit)
	}
	defer cancel()
	c, err := r.Dial(dctx, r.p)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			err = errStopped
		case dctx.Err() != nil:
			err = connectTimeout(r.p, err)
		}
		return r.ev.failed(id, dialCode(err), err)
	}
	if err := r.send(ctx, c, begin, limit); err != nil {
		c.Abort()
		return r.ev.failed(id, codeOf(err, contract.CodeInternal), err)
	}
	// The result is out: what goes wrong from here on is no longer part of it.
	if err := c.Close(); err != nil {
		r.log.Warn("close after the result", "error", err)
	}
	return contract.ExitOK
}

// connectTimeout is what a dial that its limit ended is reported as. That it timed out, in
// the words of a socket, adds nothing.
func connectTimeout(p *contract.Parameters, err error) error {
	cause := ""
	if ne := net.Error(nil); !errors.As(err, &ne) || !ne.Timeout() {
		cause = ": " + err.Error()
	}
	return Failf(contract.CodeConnectTimeout, "no connection to %s within limits.connect_ms (%d ms)%s", net.JoinHostPort(p.Remote.Address, strconv.Itoa(p.Remote.Port)), p.Limits.ConnectMS, cause)
}

// late is the message of a transfer that reached its limit.
const late = "no acknowledgement within limits.transfer_ms"

// send is the transfer as the client does it (breedy-2015, section V).
func (r *run) send(ctx context.Context, c Conn, begin, connectLimit time.Time) error {
	defer interrupt(ctx, c)()
	p := r.p
	id, err := contract.ParseTransferID(p.Transfer.ID)
	if err != nil {
		return Failf(contract.CodeBadParameters, "%w", err)
	}
	if err := awaitReady(ctx, c, connectLimit); err != nil {
		return err
	}
	connect := time.Since(begin)
	r.ev.write(&contract.Event{Event: contract.KindConnected, Transfer: p.Transfer.ID, ConnectNS: connect.Nanoseconds()})

	h := contract.Header{ID: id, SizeBytes: uint64(p.Transfer.SizeBytes), Open: p.Transfer.DurationMS > 0}
	if err := setDeadline(ctx, c, after(time.Now(), p.Limits.TransferMS)); err != nil {
		return err
	}
	if _, err := c.Write(h.Append(nil)); err != nil {
		return settle(ctx, err, contract.CodeTransferTimeout, late)
	}

	start := time.Now()
	if err := setDeadline(ctx, c, after(start, p.Limits.TransferMS)); err != nil {
		return err
	}
	s := r.sample(c, p.Transfer.ID, nil, start)
	defer s.end()
	out := outgoing{c: c, from: r.in, sent: &s.bytes}
	if h.Open {
		err = out.open(p.Transfer.SizeBytes, start.Add(time.Duration(p.Transfer.DurationMS)*time.Millisecond))
	} else {
		err = out.sized(p.Transfer.SizeBytes)
	}
	if err != nil {
		return settle(ctx, err, contract.CodeTransferTimeout, late)
	}
	answer, err := readByte(ctx, c, "acknowledgement", contract.CodeTransferTimeout, late)
	elapsed := time.Since(start)
	if err != nil {
		return err
	}
	if answer != contract.ByteAccepted {
		return Failf(contract.CodeProtocolViolation, "the server's acknowledgement is %#02x, expected %#02x", answer, contract.ByteAccepted)
	}
	r.ev.write(&contract.Event{Event: contract.KindResult, Transfer: p.Transfer.ID, Result: &contract.Result{
		SizeBytes: s.bytes.Load(), ElapsedNS: elapsed.Nanoseconds(), ConnectNS: connect.Nanoseconds(),
		Final: s.finish(elapsed), Info: c.Info(), Paths: pathsOf(c, true),
	}})
	return nil
}

// awaitReady reads the server's first byte, which shows that it is there.
func awaitReady(ctx context.Context, c Conn, limit time.Time) error {
	if err := setDeadline(ctx, c, limit); err != nil {
		return err
	}
	first, err := readByte(ctx, c, "first byte", contract.CodeConnectTimeout, "connected, but the server sent no byte within limits.connect_ms")
	if err != nil {
		return err
	}
	if first != contract.ByteReady {
		return Failf(contract.CodeProtocolViolation, "the server's first byte is %#02x, expected %#02x", first, contract.ByteReady)
	}
	return nil
}

// readByte reads one byte of the server, until the connection's deadline.
// timeout and message are the error of a deadline that passed.
func readByte(ctx context.Context, c Conn, what string, timeout contract.Code, message string) (byte, error) {
	var b [1]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = Failf(contract.CodeReset, "the server closed the connection before its %s", what)
		}
		return 0, settle(ctx, err, timeout, message)
	}
	return b[0], nil
}
