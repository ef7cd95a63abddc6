package main

import (
	"context"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/wire"
)

// errClientGone: nobody has the client's port any more.
var errClientGone = harness.Failf(contract.CodeReset, "the client has ended: its node refuses packets, or has closed the connection")

// lead is how long before its first packet the server answers: the answer is off the
// radio by then, and not in that packet's way.
const lead = 100 * time.Millisecond

// serving is one probe from the server at the server: its packets are sent by a
// goroutine of its own, which [server] hands the client's datagrams.
type serving struct {
	server *server
	key    *wire.Key // for take; the sender has another, which is not for two goroutines
	id     string
	peer   netip.AddrPort
	cancel context.CancelCauseFunc
	in     chan []byte
	stop   chan struct{} // closed when no more packets are wanted
	asked  bool          // stop is closed
	done   atomic.Bool   // the result is reported
}

// servingTo is the probe that is sent to a client; nil: none.
func (s *server) servingTo(client netip.AddrPort) *serving {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving[client]
}

// serve begins a probe from the server.
func (s *server) serve(id contract.TransferID, seed uint64, lasts time.Duration, from netip.AddrPort) {
	if !s.leaveBefore(from) {
		return
	}
	x := &serving{server: s, key: wire.NewKey(id, seed), id: id.String(), peer: from, in: make(chan []byte, inFlight), stop: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.Background()) // end and leave end it
	x.cancel = cancel
	s.mu.Lock()
	s.serving[from] = x
	s.mu.Unlock()
	sender := &sender{
		id: x.id, key: wire.NewKey(id, seed), conn: &servedWay{ctx: ctx, gate: s.gate, peer: from, in: x.in}, out: s.out, errRefused: errClientGone,
		lasts: lasts, limit: time.Duration(s.p.Limits.TransferMS) * time.Millisecond, interval: time.Duration(s.p.SampleIntervalMS) * time.Millisecond,
		header: headerBytes(from.Addr()),
	}
	if s.gate.ownTimes() {
		sender.largest = func() int { return s.gate.largest(from) }
	}
	s.out.Connected(x.id, 0)
	s.send(from, x.key.Here())
	s.sending.Go(func() { x.carry(ctx, sender) })
}

// carry sends the packets, reports the result, and answers for a while a client that
// does not know that it has arrived.
func (x *serving) carry(ctx context.Context, s *sender) {
	defer x.leave()
	err := x.probe(ctx, s)
	x.server.send(x.peer, s.key.Bye())
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		x.server.out.Fail(x.id, err)
		return
	}
	x.done.Store(true)
	forgotten := time.NewTimer(keepMetrics)
	defer forgotten.Stop()
	select {
	case <-ctx.Done():
	case <-forgotten.C:
	}
}

// probe carries the probe to its result.
func (x *serving) probe(ctx context.Context, s *sender) (err error) {
	if s.log, err = openLog(x.server.p, x.id, sentColumns); err != nil {
		return err
	}
	defer s.log.close()
	begin := time.NewTimer(lead)
	defer begin.Stop()
	select {
	case <-begin.C:
	case <-x.stop:
	}
	metrics, err := s.run(ctx, x.stop, x.server.spec)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	elapsed := time.Since(s.begin)
	final := s.sample(elapsed)
	x.server.out.Sample(x.id, final)
	x.server.out.Result(x.id, &contract.Result{SizeBytes: s.sent.Bytes, ElapsedNS: elapsed.Nanoseconds(), Final: final, Probe: metrics})
	return nil
}

// leave forgets the probe, and its client where that has no other.
func (x *serving) leave() {
	x.cancel(nil)
	if x.server.drop(x) {
		x.server.gate.forget(x.peer)
	}
}

// drop takes a probe from those that are sent; false: it is not among them.
func (s *server) drop(x *serving) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving[x.peer] != x {
		return false
	}
	delete(s.serving, x.peer)
	return true
}

// end ends a probe before its result.
func (x *serving) end(cause error) {
	x.cancel(cause)
	x.halt()
}

// halt ends the packets. It is called by the server's goroutine alone.
func (x *serving) halt() {
	if !x.asked {
		x.asked = true
		close(x.stop)
	}
}

// handleDatagram takes a datagram of the probe's client.
func (x *serving) handleDatagram(b []byte) {
	switch {
	case x.key.IsStop(b):
		x.halt()
	case x.key.IsBye(b):
		if !x.done.Load() {
			x.end(harness.Failf(contract.CodeReset, "the client gave the probe up"))
		}
	case x.done.Load():
		if _, ok := x.key.ParseMetrics(b); ok { // it has not heard that they arrived
			x.server.send(x.peer, x.key.Bye())
		}
	default:
		select {
		case x.in <- append([]byte(nil), b...):
		default: // lost like any other
		}
	}
}

// servedWay is the sending end of a probe from the server: it writes at the gate and
// gets what the server's goroutine has read there.
type servedWay struct {
	ctx      context.Context //nolint:containedctx // the probe's, which ends a receive
	gate     gate
	peer     netip.AddrPort
	in       chan []byte
	deadline time.Time
}

func (w *servedWay) Write(b []byte) (int, error) {
	if err := w.gate.write(b, w.peer); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (w *servedWay) receive(b []byte) (n int, arrived int64, err error) {
	var due <-chan time.Time
	if !w.deadline.IsZero() {
		t := time.NewTimer(time.Until(w.deadline))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-w.ctx.Done():
		return 0, 0, w.ctx.Err()
	case <-due:
		return 0, 0, os.ErrDeadlineExceeded
	case d := <-w.in:
		return copy(b, d), time.Now().UnixNano(), nil
	}
}

func (w *servedWay) SetReadDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// Close leaves the gate open, which is the server's.
func (w *servedWay) Close() error { return nil }
