package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/measure"
	"linktrial/protocols/probe/wire"
)

const (
	// maxSessions bounds what strangers can make a server keep.
	maxSessions = 1000
	late        = contract.ProbeLateMS * time.Millisecond
	// keepFigures is how long the figures of a probe are kept for a client that
	// asks again.
	keepFigures = 2 * contract.ProbeDrainMS * time.Millisecond
)

// server takes any number of probes at one gate, from one goroutine.
type server struct {
	p        *contract.Parameters
	gate     gate
	out      *harness.Reporter
	sessions map[netip.AddrPort]*session
}

// session is one probe at the receiving end.
type session struct {
	server  *server
	key     *wire.Key
	id      string
	peer    netip.AddrPort
	log     *packetLog
	clock   clock
	probe   *measure.Probe
	strays  int64
	beat    *harness.Beat
	limit   time.Time // of the probe; zero: none
	last    time.Duration
	sampled sums // at the sample before

	ended   *wire.Sent // what the client has sent, once it has said so
	settled time.Time  // until when late packets count, after that
	figures []byte     // the answer; nil: not yet
	expires time.Time  // of the answer
}

// sums are what a sample of a probe is made of.
type sums struct{ packets, delay int64 }

// listen opens the server's gate.
func listen(ctx context.Context, p *contract.Parameters) (harness.PacketServer, error) {
	local, err := harness.AddrPort(p.Local, "local")
	if err != nil {
		return nil, err
	}
	var g gate
	if settingsOf(p).dccp {
		g, err = listenDCCP(p, local)
	} else {
		g, err = listenUDP(ctx, p, local)
	}
	if err != nil {
		return nil, err
	}
	return &server{p: p, gate: g, sessions: map[netip.AddrPort]*session{}}, nil
}

func (s *server) Close() error { return s.gate.Close() }

// Serve takes probes until ctx ends.
func (s *server) Serve(ctx context.Context, out *harness.Reporter) error {
	s.out = out
	defer func() {
		for _, x := range s.sessions {
			x.end(harness.Failf(contract.CodeAborted, "SIGTERM while the probe ran"))
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, from, arrived, err := s.gate.read(ctx, s.next(), buf)
		switch {
		case ctx.Err() != nil:
			return nil
		case isTimeout(err):
		case err != nil:
			return fmt.Errorf("probes: %w", err)
		case n == 0:
			s.left(from)
		default:
			s.take(buf[:n], from, arrived)
		}
		s.work(time.Now())
	}
}

// left ends the probe of a client that has left.
func (s *server) left(client netip.AddrPort) {
	if x := s.sessions[client]; x != nil {
		x.end(harness.Failf(contract.CodeReset, "the client closed its connection before the probe's end"))
	}
}

// take takes one datagram.
func (s *server) take(b []byte, from netip.AddrPort, arrived int64) {
	x := s.sessions[from]
	if id, seed, ok := wire.ParseHello(b); ok {
		if x == nil || x.key.ID != id {
			if x = s.open(x, id, seed, from); x == nil {
				return
			}
		}
		s.answer(from, x.key.Here())
		return
	}
	if x == nil {
		s.answer(from, wire.Unknowing(b))
		return
	}
	x.take(b, arrived)
}

// answer sends a datagram; one that cannot be sent is lost like any other.
func (s *server) answer(to netip.AddrPort, b []byte) {
	if b != nil {
		s.gate.write(b, to)
	}
}

// open begins a probe; nil where it cannot be taken. Another one that the same
// address had has been left by its client.
func (s *server) open(before *session, id contract.TransferID, seed uint64, from netip.AddrPort) *session {
	if before != nil {
		before.end(harness.Failf(contract.CodeReset, "the client began another probe"))
	}
	if len(s.sessions) >= maxSessions {
		return nil
	}
	x := &session{server: s, key: wire.NewKey(id, seed), id: id.String(), peer: from, probe: measure.New(),
		clock: clock{begin: time.Now()}, beat: harness.NewBeat(time.Duration(s.p.SampleIntervalMS) * time.Millisecond)}
	if ms := s.p.Limits.TransferMS; ms > 0 {
		x.limit = x.clock.begin.Add(time.Duration(ms) * time.Millisecond)
	}
	s.sessions[from] = x
	s.out.Connected(x.id, 0)
	var err error
	if x.log, err = openLog(s.p, x.id, "number,sent_ns,arrived_ns,bytes,first"); err != nil {
		x.end(err)
		return nil
	}
	return x
}

// next is when the server has something to do although nothing arrives; zero: never.
func (s *server) next() (at time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, x := range s.sessions {
		if x.figures != nil {
			earlier(x.expires)
			continue
		}
		earlier(x.settled)
		earlier(x.limit)
		earlier(x.clock.begin.Add(x.beat.Next()))
	}
	return at
}

// work does what is due.
func (s *server) work(now time.Time) {
	for _, x := range s.sessions {
		switch {
		case x.figures != nil:
			if !now.Before(x.expires) {
				x.drop()
			}
			continue
		case x.ended != nil && (!now.Before(x.settled) || x.complete()):
			x.settle()
			continue
		case !x.limit.IsZero() && !now.Before(x.limit):
			x.end(harness.Failf(contract.CodeTransferTimeout, "the client did not end the probe within limits.transfer_ms"))
			continue
		}
		if _, elapsed := x.clock.now(); elapsed >= x.beat.Next() {
			s.out.Sample(x.id, x.sample(elapsed))
			x.beat.Taken(elapsed)
		}
	}
}

// take takes a datagram of the probe's client.
func (x *session) take(b []byte, arrived int64) {
	if n, sent, err := x.key.ParsePacket(b); err == nil {
		if x.figures != nil {
			return
		}
		x.last = time.Since(x.clock.begin)
		first := x.probe.Arrive(n, sent, arrived, len(b))
		flag := int64(0)
		if first {
			flag = 1
		}
		x.log.row(int64(n), sent, arrived, int64(len(b)), flag)
		return
	}
	if sent, ok := x.key.ParseEnd(b); ok {
		switch {
		case x.figures != nil:
			x.server.answer(x.peer, x.figures)
		case x.ended == nil:
			x.ended, x.settled = &sent, time.Now().Add(late)
		}
		return
	}
	if x.key.IsBye(b) {
		x.end(harness.Failf(contract.CodeReset, "the client gave the probe up"))
		return
	}
	x.strays++
}

// complete reports whether all that was sent has arrived.
func (x *session) complete() bool {
	packets, _ := x.probe.Received()
	return packets >= x.ended.Packets
}

// settle makes the figures and answers the client.
func (x *session) settle() {
	_, elapsed := x.clock.now()
	f := x.probe.Figures(x.ended.Packets, x.ended.Bytes)
	f.Unsent, f.Strays, f.ClockStepNS = x.ended.Unsent, x.strays, x.ended.ClockStep+x.clock.stepNS()
	f.ProcessTimes = x.server.gate.ownTimes()
	x.figures, x.expires = x.key.Figures(f), time.Now().Add(keepFigures)
	x.server.answer(x.peer, x.figures)
	final := x.sample(elapsed)
	x.server.out.Sample(x.id, final)
	// As the other end's: until the last packet that arrived.
	x.server.out.Result(x.id, &contract.Result{SizeBytes: f.ReceivedBytes, ElapsedNS: x.last.Nanoseconds(), Final: final, Probe: f})
}

// end ends a probe; one that has its figures ends well.
func (x *session) end(err error) {
	if x.figures == nil {
		x.server.out.Fail(x.id, err)
	}
	x.drop()
}

func (x *session) drop() {
	x.log.close()
	delete(x.server.sessions, x.peer)
	x.server.gate.forget(x.peer)
}

// sample is the state of the probe; the delay is the mean of the packets since the
// sample before.
func (x *session) sample(elapsed time.Duration) *contract.Sample {
	packets, bytes := x.probe.Received()
	now := sums{packets, x.probe.MeanDelay() * packets}
	more := map[string]float64{
		"received_packets": float64(packets), "missing_packets": float64(x.probe.Highest() + 1 - packets), "jitter_us": float64(x.probe.Jitter()) / 1e3,
	}
	if n := now.packets - x.sampled.packets; n > 0 {
		more["delay_us"] = float64(now.delay-x.sampled.delay) / float64(n) / 1e3
	}
	x.sampled = now
	return &contract.Sample{ElapsedNS: elapsed.Nanoseconds(), SentBytes: bytes, More: more}
}
