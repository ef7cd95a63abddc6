package main

import (
	"context"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/pattern"
)

// fetching is a probe from the server at the client, from when the server has answered.
type fetching struct {
	*client
	in    *receiver
	limit time.Time // of the whole probe; zero: none
	end   time.Time // when the server should have sent its last packet; zero: when it is asked to stop

	stopping bool      // the server is asked to stop
	deadline time.Time // for the metrics, once stopping
	again    time.Time // when it is asked again
	pause    time.Duration
}

// receive carries a probe whose packets the server sends.
func (c *client) receive(ctx context.Context, began time.Time, spec *pattern.Spec) (*contract.Result, error) {
	lasts := time.Duration(c.p.Transfer.DurationMS) * time.Millisecond
	in := newReceiver(c.p, spec, c.key, c.dccp != nil)
	var err error
	if in.log, err = openLog(c.p, c.p.Transfer.ID, arrivedColumns); err != nil {
		return nil, err
	}
	defer in.log.close()
	// A packet answers, too: the answer before it may have been lost.
	connect, err := c.hello(ctx, began, c.key.Fetch(lasts), func(b []byte, arrived int64) bool { return c.key.IsHere(b) || in.packet(b, arrived) })
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	in.clock = clock{begin: begin}
	f := &fetching{client: c, in: in, pause: askAgain}
	if ms := c.p.Limits.TransferMS; ms > 0 {
		f.limit = begin.Add(time.Duration(ms) * time.Millisecond)
		f.end = f.limit.Add(-drain)
	}
	if lasts > 0 { // the server ends by itself, and is asked only where it does not say so
		f.end = begin.Add(lead + lasts + askAgain)
	}
	if err := f.packets(ctx); err != nil {
		return nil, err
	}
	metrics := in.metrics()
	// The server needs them, too. Where it does not get them, it says so itself.
	_, _ = ask(context.WithoutCancel(ctx), c.conn, c.key.Metrics(metrics), f.deadline, func(b []byte, _ int64) bool { return c.key.IsBye(b) })
	_, elapsed := in.clock.now()
	return &contract.Result{SizeBytes: metrics.ReceivedBytes, ElapsedNS: elapsed.Nanoseconds(), ConnectNS: connect.Nanoseconds(), Final: in.sample(elapsed), Probe: metrics}, nil
}

// packets takes the packets until the probe is over.
func (f *fetching) packets(ctx context.Context) error {
	var buf [64 << 10]byte
	for {
		now := time.Now()
		switch {
		case f.in.over(now):
			f.stop(now) // for the time that the server may take to get the metrics
			return nil
		case f.stopping && !now.Before(f.deadline):
			return harness.Failf(contract.CodeTransferTimeout, "the server did not say within %d s of the last packet what it had sent", contract.ProbeDrainMS/1000)
		case ctx.Err() != nil, !f.end.IsZero() && !now.Before(f.end):
			f.stop(now)
		}
		if f.stopping && f.in.ended == nil && !now.Before(f.again) {
			if _, err := f.conn.Write(f.key.Stop()); isRefusal(err) {
				return errServerGone
			}
			f.again, f.pause = now.Add(f.pause), min(2*f.pause, askAgainMax)
		}
		if _, elapsed := f.in.clock.now(); elapsed >= f.in.beat.Next() {
			f.out.Sample(f.p.Transfer.ID, f.in.sample(elapsed))
			f.in.beat.Taken(elapsed)
		}
		if err := f.handleNext(ctx, buf[:]); err != nil {
			return err
		}
	}
}

// stop begins to ask the server to stop.
func (f *fetching) stop(now time.Time) {
	if f.stopping {
		return
	}
	f.stopping, f.again, f.deadline = true, now, now.Add(drain)
	if !f.limit.IsZero() && f.limit.Before(f.deadline) {
		f.deadline = f.limit
	}
}

// handleNext takes one datagram, or returns when there is something else to do.
func (f *fetching) handleNext(ctx context.Context, buf []byte) error {
	if err := f.conn.SetReadDeadline(f.due()); err != nil {
		return err
	}
	if !f.stopping {
		defer context.AfterFunc(ctx, func() { _ = f.conn.SetReadDeadline(time.Unix(1, 0)) })()
	}
	n, arrived, err := f.conn.receive(buf)
	b := buf[:n]
	switch {
	case isTimeout(err):
	case isRefusal(err):
		return errServerGone
	case err != nil:
		return err
	case f.key.IsUnknown(b):
		return errUnknown
	case f.key.IsBye(b):
		return harness.Failf(contract.CodeReset, "the server gave the probe up")
	default:
		f.take(b, arrived)
	}
	return nil
}

// take takes a datagram of the server, and answers one of a search. An answer that cannot
// be sent is lost like any other.
func (f *fetching) take(b []byte, arrived int64) {
	taken := f.in.packet(b, arrived)
	answer, asked := f.in.answer(b)
	if answer != nil {
		_, _ = f.conn.Write(answer)
	}
	if !taken && !asked && !f.in.end(b) && !f.key.IsHere(b) {
		f.in.strays++
	}
}

// due is when there is something to do although nothing arrives.
func (f *fetching) due() time.Time {
	at := f.in.clock.begin.Add(f.in.beat.Next())
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	switch {
	case f.in.ended != nil:
		earlier(f.in.settled)
	case f.stopping:
		earlier(f.again)
		earlier(f.deadline)
	default:
		earlier(f.end)
	}
	return at
}
