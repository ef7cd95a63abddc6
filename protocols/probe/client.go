package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/measure"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/wire"
)

// Pauses between two datagrams that ask the same.
const (
	askAgain    = 250 * time.Millisecond
	askAgainMax = 2 * time.Second
)

// errAborted: SIGTERM before there was a probe.
var errAborted = harness.Failf(contract.CodeAborted, "SIGTERM before the server had answered")

// errRefused: the server's node reports that nobody has its port any more.
var errRefused = harness.Failf(contract.CodeReset, "the server has ended: its node refuses packets")

// client is one probe at the sending end.
type client struct {
	p    *contract.Parameters
	key  *wire.Key
	conn way
	dccp *dccpConn // conn, where it is one
	out  *harness.Reporter
	log  *packetLog

	clock clock
	sent  wire.Sent
	begin time.Time // of the probe's clock
	limit time.Time // of the whole probe; zero: none
}

// send carries one probe.
func send(ctx context.Context, p *contract.Parameters, out *harness.Reporter) error {
	spec, err := pattern.Read(p.Options)
	if err != nil {
		return harness.Failf(contract.CodeBadParameters, "%w", err)
	}
	id, err := contract.ParseTransferID(p.Transfer.ID)
	if err != nil {
		return harness.Failf(contract.CodeBadParameters, "%w", err)
	}
	began := time.Now()
	c := &client{p: p, key: wire.NewKey(id, p.Transfer.Seed), out: out}
	info, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }() // nothing that was sent waits for it
	if c.log, err = openLog(p, p.Transfer.ID, "number,sent_ns,bytes"); err != nil {
		return err
	}
	defer c.log.close()
	if err := c.hello(ctx, began); err != nil {
		return err
	}
	connect := time.Since(began)
	out.Connected(p.Transfer.ID, connect)
	figures, err := c.run(ctx, spec)
	if err != nil {
		_, _ = c.conn.Write(c.key.Bye()) // the server need not wait for more
		return err
	}
	elapsed := time.Since(c.begin)
	_, _ = c.conn.Write(c.key.Bye())
	final := c.sample(elapsed)
	out.Sample(p.Transfer.ID, final)
	out.Result(p.Transfer.ID, &contract.Result{SizeBytes: c.sent.Bytes, ElapsedNS: elapsed.Nanoseconds(), ConnectNS: connect.Nanoseconds(), Final: final, Probe: figures, Info: info})
	return nil
}

// dial opens the client's way to the server. The info is what only the connection shows.
func (c *client) dial(ctx context.Context) (*contract.Info, error) {
	local, remote, err := harness.ClientAddrPorts(c.p)
	if err != nil {
		return nil, err
	}
	s := settingsOf(c.p)
	if !s.dccp {
		c.conn, err = dialUDP(ctx, c.p, local, remote)
		return nil, err
	}
	conn, err := dialDCCP(ctx, c.p, local, remote)
	if err != nil {
		return nil, err
	}
	c.conn, c.dccp = conn, conn
	info, err := conn.info(s.ccid)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return info, nil
}

// hello asks the server until it answers.
func (c *client) hello(ctx context.Context, began time.Time) error {
	limit := time.Time{}
	if ms := c.p.Limits.ConnectMS; ms > 0 {
		limit = began.Add(time.Duration(ms) * time.Millisecond)
	}
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	ok, err := c.ask(ctx, c.key.Hello(), limit, c.key.IsHere)
	switch {
	case ctx.Err() != nil:
		return errAborted
	case err != nil:
		return err
	case !ok:
		return harness.Failf(contract.CodeConnectTimeout, "no answer of the server within limits.connect_ms (%d ms)", c.p.Limits.ConnectMS)
	}
	return nil
}

// ask sends a datagram, again and again, until an answer is taken, the limit has
// passed or ctx has ended.
func (c *client) ask(ctx context.Context, what []byte, limit time.Time, take func([]byte) bool) (answered bool, err error) {
	var buf [2048]byte
	for pause := askAgain; ctx.Err() == nil; pause = min(2*pause, askAgainMax) {
		if _, err := c.conn.Write(what); err != nil && !errors.Is(err, errHeld) {
			return false, err
		}
		until := time.Now().Add(pause)
		if !limit.IsZero() && limit.Before(until) {
			until = limit
		}
		if err := c.conn.SetReadDeadline(until); err != nil {
			return false, err
		}
		for ctx.Err() == nil {
			n, err := c.conn.Read(buf[:])
			if isTimeout(err) {
				break
			}
			if err != nil {
				return false, err
			}
			if take(buf[:n]) {
				return true, nil
			}
		}
		if !limit.IsZero() && !time.Now().Before(limit) {
			return false, nil
		}
	}
	return false, nil
}

// run sends the packets and fetches the figures.
func (c *client) run(ctx context.Context, spec *pattern.Spec) (*contract.ProbeFigures, error) {
	c.begin = time.Now()
	c.clock.begin = c.begin
	if ms := c.p.Limits.TransferMS; ms > 0 {
		c.limit = c.begin.Add(time.Duration(ms) * time.Millisecond)
	}
	if err := c.packets(ctx, spec); err != nil {
		return nil, err
	}
	c.sent.ClockStep = c.clock.stepNS()
	limit := time.Now().Add(contract.ProbeDrainMS * time.Millisecond)
	if !c.limit.IsZero() && c.limit.Before(limit) {
		limit = c.limit
	}
	var figures *contract.ProbeFigures
	unknown := false
	// What ended the packets does not end the question.
	answered, err := c.ask(context.WithoutCancel(ctx), c.key.End(c.sent), limit, func(b []byte) (ok bool) {
		if unknown = c.key.IsUnknown(b); unknown {
			return true
		}
		figures, ok = c.key.ParseFigures(b)
		return ok
	})
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return nil, errRefused
	case err != nil:
		return nil, err
	case unknown:
		return nil, harness.Failf(contract.CodeReset, "the server does not know this probe: it was started again meanwhile")
	case !answered:
		return nil, harness.Failf(contract.CodeTransferTimeout, "the server's figures did not arrive within %d s of the last packet", contract.ProbeDrainMS/1000)
	}
	return figures, nil
}

// packets sends the pattern until its time is up or ctx ends.
func (c *client) packets(ctx context.Context, spec *pattern.Spec) error {
	end := time.Duration(1<<63 - 1)
	if ms := c.p.Transfer.DurationMS; ms > 0 {
		end = time.Duration(ms) * time.Millisecond
	}
	if c.p.Transfer.DurationMS == 0 && !c.limit.IsZero() { // the figures must still come within it
		end = max(0, c.limit.Sub(c.begin)-contract.ProbeDrainMS*time.Millisecond)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	beat := harness.NewBeat(time.Duration(c.p.SampleIntervalMS) * time.Millisecond)
	source := spec.Source(c.p.Transfer.Seed)
	next := source.Next()
	buf := make([]byte, pattern.MaxBytes)
	for c.sent.Packets < measure.MaxPackets {
		due := min(next.At, beat.Next(), end)
		timer.Reset(time.Until(c.begin.Add(due)))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		elapsed := time.Since(c.begin)
		if elapsed >= end {
			return nil
		}
		if elapsed >= beat.Next() {
			c.out.Sample(c.p.Transfer.ID, c.sample(elapsed))
			beat.Taken(elapsed)
		}
		if elapsed < next.At {
			continue
		}
		if err := c.packet(buf[:next.Bytes]); err != nil {
			return err
		}
		next = source.Next()
	}
	return nil
}

// packet sends the next packet. One that cannot be sent is lost like any other; one
// that the congestion control holds back has no number, and is none of the losses.
func (c *client) packet(b []byte) error {
	at, _ := c.clock.now()
	n := c.sent.Packets
	c.key.Packet(b, uint32(n), at)
	_, err := c.conn.Write(b)
	if errors.Is(err, errHeld) {
		c.sent.Unsent++
		c.log.row(-1, at, int64(len(b)))
		return nil
	}
	c.sent.Packets++
	c.sent.Bytes += int64(len(b))
	c.log.row(n, at, int64(len(b)))
	switch {
	case errors.Is(err, syscall.EMSGSIZE):
		if c.dccp != nil {
			return harness.Failf(contract.CodeUnreachable, "a packet of %d bytes is too large for the way to the server, on which DCCP carries at most %d", len(b), c.dccp.largest())
		}
		return harness.Failf(contract.CodeUnreachable, "a packet of %d bytes is too large for the way to the server", len(b))
	case errors.Is(err, syscall.ECONNREFUSED), c.dccp != nil && err != nil: // a connection that has ended
		return errRefused
	}
	return nil
}

func (c *client) sample(elapsed time.Duration) *contract.Sample {
	more := map[string]float64{"sent_packets": float64(c.sent.Packets)}
	if c.dccp != nil {
		more["unsent_packets"] = float64(c.sent.Unsent)
	}
	return &contract.Sample{ElapsedNS: elapsed.Nanoseconds(), SentBytes: c.sent.Bytes, More: more}
}
