package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/wire"
)

const (
	// maxSessions bounds what strangers can make a server keep.
	maxSessions = 1000
	// keepMetrics is how long an end that has its result answers one that asks again.
	keepMetrics = 2 * drain
)

// server takes any number of probes at one gate. One goroutine reads the gate and
// measures; each probe from the server has one more, which sends.
type server struct {
	p        *contract.Parameters
	spec     *pattern.Spec
	gate     gate
	out      *harness.Reporter
	sessions map[netip.AddrPort]*session

	mu      sync.Mutex
	serving map[netip.AddrPort]*serving
	sending sync.WaitGroup
}

// session is one probe at the server that measures it.
type session struct {
	*receiver
	server  *server
	id      string
	peer    netip.AddrPort
	limit   time.Time // of the probe; zero: none
	values  []byte    // the metrics; nil: not yet
	expires time.Time // of the values
}

// listen opens the server's gate.
func listen(ctx context.Context, p *contract.Parameters) (harness.PacketServer, error) {
	spec, err := pattern.Read(p.Options)
	if err != nil {
		return nil, harness.Failf(contract.CodeBadParameters, "%w", err)
	}
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
	return &server{p: p, spec: spec, gate: g, sessions: map[netip.AddrPort]*session{}, serving: map[netip.AddrPort]*serving{}}, nil
}

func (s *server) Close() error { return s.gate.Close() }

// Serve takes probes until ctx ends.
func (s *server) Serve(ctx context.Context, out *harness.Reporter) error {
	s.out = out
	defer s.sending.Wait()
	defer func() {
		for _, x := range s.sessions {
			x.fail(errStopped)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, x := range s.serving {
			x.end(errStopped)
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
			s.clientLeft(from)
		default:
			s.handleDatagram(buf[:n], from, arrived)
		}
		s.expire(time.Now())
	}
}

// errStopped: SIGTERM.
var errStopped = harness.Failf(contract.CodeAborted, "SIGTERM while the probe ran")

// clientLeft ends the probe of a client that has left.
func (s *server) clientLeft(client netip.AddrPort) {
	if x := s.sessions[client]; x != nil {
		x.fail(harness.Failf(contract.CodeReset, "the client closed its connection before the probe's end"))
	}
	if x := s.servingTo(client); x != nil {
		x.end(errClientGone)
	}
}

// handleDatagram takes one datagram.
func (s *server) handleDatagram(b []byte, from netip.AddrPort, arrived int64) {
	if id, seed, ok := wire.ParseHello(b); ok {
		x := s.sessions[from]
		if x == nil || x.key.ID != id {
			if x = s.open(id, seed, from); x == nil {
				return
			}
		}
		s.send(from, x.key.Here())
		return
	}
	if id, seed, lasts, ok := wire.ParseFetch(b); ok {
		x := s.servingTo(from)
		if x == nil || x.key.ID != id {
			s.serve(id, seed, lasts, from)
		} else {
			s.send(from, x.key.Here())
		}
		return
	}
	if x := s.sessions[from]; x != nil {
		x.handleDatagram(b, arrived)
	} else if x := s.servingTo(from); x != nil {
		x.handleDatagram(b)
	} else {
		s.send(from, wire.Unknowing(b))
	}
}

// send sends a datagram that answers; one that cannot be sent is lost like any other.
func (s *server) send(to netip.AddrPort, b []byte) {
	if b != nil {
		_ = s.gate.write(b, to)
	}
}

// leaveBefore ends what the same address had before another probe; it reports whether
// there is room for that.
func (s *server) leaveBefore(from netip.AddrPort) bool {
	another := harness.Failf(contract.CodeReset, "the client began another probe")
	if x := s.sessions[from]; x != nil {
		x.fail(another)
	}
	if x := s.servingTo(from); x != nil && s.drop(x) {
		x.end(another)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)+len(s.serving) < maxSessions
}

// open begins a probe from the client; nil where it cannot be taken.
func (s *server) open(id contract.TransferID, seed uint64, from netip.AddrPort) *session {
	if !s.leaveBefore(from) {
		return nil
	}
	x := &session{receiver: newReceiver(s.p, s.spec, wire.NewKey(id, seed), s.gate.ownTimes()), server: s, id: id.String(), peer: from}
	if ms := s.p.Limits.TransferMS; ms > 0 {
		x.limit = x.clock.begin.Add(time.Duration(ms) * time.Millisecond)
	}
	s.sessions[from] = x
	s.out.Connected(x.id, 0)
	var err error
	if x.log, err = openLog(s.p, x.id, arrivedColumns); err != nil {
		x.fail(err)
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
		if x.values != nil {
			earlier(x.expires)
			continue
		}
		earlier(x.settled)
		earlier(x.limit)
		earlier(x.clock.begin.Add(x.beat.Next()))
	}
	return at
}

// expire does what is due.
func (s *server) expire(now time.Time) {
	for _, x := range s.sessions {
		switch {
		case x.values != nil:
			if !now.Before(x.expires) {
				x.drop()
			}
			continue
		case x.over(now):
			x.settle()
			continue
		case !x.limit.IsZero() && !now.Before(x.limit):
			x.fail(harness.Failf(contract.CodeTransferTimeout, "the client did not end the probe within limits.transfer_ms"))
			continue
		}
		if _, elapsed := x.clock.now(); elapsed >= x.beat.Next() {
			s.out.Sample(x.id, x.sample(elapsed))
			x.beat.Taken(elapsed)
		}
	}
}

// handleDatagram takes a datagram of the probe's client.
func (x *session) handleDatagram(b []byte, arrived int64) {
	taken := x.values == nil && x.packet(b, arrived)
	answer, asked := x.answer(b)
	x.server.send(x.peer, answer)
	switch {
	case taken, asked:
	case x.end(b):
		if x.values != nil {
			x.server.send(x.peer, x.values)
		}
	case x.key.IsBye(b):
		x.fail(harness.Failf(contract.CodeReset, "the client gave the probe up"))
	default:
		x.strays++
	}
}

// settle makes the metrics and answers the client.
func (x *session) settle() {
	_, elapsed := x.clock.now()
	f := x.metrics()
	x.values, x.expires = x.key.Metrics(f), time.Now().Add(keepMetrics)
	x.server.send(x.peer, x.values)
	final := x.sample(elapsed)
	x.server.out.Sample(x.id, final)
	// As the other end's: until the last packet that arrived.
	x.server.out.Result(x.id, &contract.Result{SizeBytes: f.ReceivedBytes, ElapsedNS: x.last.Nanoseconds(), Final: final, Probe: f})
}

// fail ends a probe; one that has its metrics ends well.
func (x *session) fail(err error) {
	if x.values == nil {
		x.server.out.Fail(x.id, err)
	}
	x.drop()
}

func (x *session) drop() {
	x.log.close()
	delete(x.server.sessions, x.peer)
	x.server.gate.forget(x.peer)
}
