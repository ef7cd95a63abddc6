package core

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"linktrial/protocols/haul/wire"
)

var evil = netip.MustParseAddrPort("10.66.6.6:666")

// copier is an attacker who sees the client's packets and sends copies of them
// from an address of its own; they arrive at once, before the packets themselves.
type copier struct {
	limit  int            // copies so many; 0: no limit
	from   netip.AddrPort // where the copies come from
	every  int            // copies one packet in so many
	seen   int
	sent   int            // bytes of copies
	got    int            // bytes that the server sent to the attacker
	most   int            // longest packet of these
	passes func(p []byte) // what it does with what the server sends to it; nil: nothing
}

func (a *copier) attack(s *sim) {
	s.sends = func(end int, p []byte, to netip.AddrPort) bool {
		switch {
		case end == 1 && to == evil:
			a.got, a.most = a.got+len(p), max(a.most, len(p))
			if a.passes != nil {
				a.passes(p)
			}
			return false
		case end == 0 && a.every > 0:
			if a.seen++; a.seen%a.every == 0 && (a.limit == 0 || a.seen <= a.limit*a.every) {
				a.sent += len(p)
				var reply [1500]byte
				_, fresh, r := s.listener.Receive(s.clock(1), slices.Clone(p), a.from, 0, reply[:])
				if fresh || r != nil {
					a.sent -= len(p) // a hello: it makes a connection of its own, or a reply
				}
			}
		}
		return true
	}
}

// both queues data at both ends and returns whether all of it has arrived.
func (s *sim) both(t *testing.T, size int) (done func() bool) {
	t.Helper()
	text := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for end, c := range s.conns {
		if err := c.Send(s.clock(end), Message{Stream: 5, Class: wire.ReliableUnsequenced, Data: text}); err != nil {
			t.Fatal(err)
		}
	}
	var got [2]bool
	s.work = func(s *sim) {
		for end, c := range s.conns {
			for m, ok := c.Next(); ok; m, ok = c.Next() {
				got[end] = got[end] || bytes.Equal(m.Data, text)
			}
		}
	}
	return func() bool { return got[0] && got[1] }
}

func moved(c *Conn) bool { return slices.Contains(c.Events(), AddressChanged) }

func radioPair(t *testing.T, loss float64, seed uint64) *sim {
	t.Helper()
	path := func(n uint64) *path {
		return &path{rate: 250e3, delay: 30 * time.Millisecond, queue: 100, lost: burstLoss(seed*2+n, loss, 1, 0)}
	}
	s := newSim(Config{}, Config{}, path(0), path(1), seed)
	for s.step(time.Minute) && (s.conns[1] == nil || s.conns[1].packetsReceived == 0 || !s.conns[0].Open()) {
	}
	if s.conns[1] == nil || s.conns[1].packetsReceived == 0 {
		t.Fatal("no connection")
	}
	return s
}

// TestCopiedPackets holds that an attacker who copies packets from another
// address does not get the flow, does not slow it more than copies from the
// client's address do (which overtake the packets in between), and is sent at
// most three times what it sends.
func TestCopiedPackets(t *testing.T) {
	const size = 400_000
	run := func(every int, from netip.AddrPort, loss float64) (took time.Duration, a *copier) {
		s := radioPair(t, loss, 3)
		a = &copier{every: every, from: from}
		a.attack(s)
		done := s.both(t, size)
		began := s.now
		for s.step(began+time.Hour) && !done() {
		}
		if !done() {
			t.Fatalf("copies of one packet in %d, loss %v: the transfer did not end", every, loss)
		}
		if v := s.conns[1]; v.Remote() != addresses[0] || moved(v) {
			t.Errorf("copies of one packet in %d, loss %v: the server sends to %v", every, loss, v.Remote())
		}
		if a.got > amplification*a.sent || a.most > challengeBytes || from == evil && a.got == 0 {
			t.Errorf("copies of one packet in %d, loss %v: %d bytes (longest packet %d) went to the attacker for %d", every, loss, a.got, a.most, a.sent)
		}
		return s.now - began, a
	}
	for _, loss := range []float64{0, 0.2} {
		for _, every := range []int{1, 2, 10, 100} {
			alone, _ := run(every, addresses[0], loss)
			if took, a := run(every, evil, loss); took > alone*11/10 {
				t.Errorf("with copies of one packet in %d, loss %v: %v instead of %v (%+v)", every, loss, took, alone, *a)
			}
		}
	}
}

// TestCopiedHandshake holds that copies of the first packets from another
// address do not get the connection either.
func TestCopiedHandshake(t *testing.T) {
	s := newSim(Config{}, Config{}, &path{delay: time.Millisecond}, &path{delay: time.Millisecond}, 5)
	a := &copier{every: 1, from: evil, limit: 3}
	a.attack(s)
	for s.step(time.Minute) && (s.conns[1] == nil || s.conns[1].packetsReceived == 0 || !s.conns[0].Open()) {
	}
	done := s.both(t, 100_000)
	for s.step(10*time.Minute) && !done() {
	}
	if !done() || s.conns[1].Remote() != addresses[0] || a.got == 0 || a.most > challengeBytes {
		t.Errorf("done %v, the server sends to %v; to the attacker went %d bytes, at most %d a packet", done(), s.conns[1].Remote(), a.got, a.most)
	}
}

// TestPassedOnPackets holds that an attacker who passes everything on in both
// directions, which makes it a part of the path, loses the flow when it stops.
func TestPassedOnPackets(t *testing.T) {
	s := radioPair(t, 0, 3)
	a := &copier{every: 1, from: evil}
	a.passes = func(p []byte) {
		if a.every > 0 {
			s.conns[0].Receive(s.clock(0), slices.Clone(p), addresses[1], 0)
		}
	}
	a.attack(s)
	done := s.both(t, 400_000)
	for s.step(s.now+10*time.Second) && s.conns[1].Remote() != evil && !done() {
	}
	if s.conns[1].Remote() != evil {
		t.Fatal("the attacker, which is on the path, did not get the flow: this test tests nothing")
	}
	a.every = 0
	from := s.now
	for s.step(from+10*time.Second) && s.conns[1].Remote() == evil {
	}
	if took := s.now - from; took > time.Second {
		t.Errorf("the flow came back after %v", took)
	}
	for s.step(from+10*time.Minute) && !done() {
	}
	if !done() {
		t.Error("the transfer did not end")
	}
}

// TestMoves holds how soon the server sends to the client's new address, and
// that the transfer goes on.
func TestMoves(t *testing.T) {
	for _, loss := range []float64{0, 0.3} {
		for seed := uint64(1); seed <= 20; seed++ {
			s := radioPair(t, loss, seed)
			done := s.both(t, 300_000)
			for i := range 3 {
				until := s.now + time.Duration(100+50*i)*time.Millisecond
				for s.now < until {
					s.step(until)
				}
				s.address = netip.AddrPortFrom(addresses[0].Addr(), uint16(2000+i))
				if i == 0 {
					s.conns[0].Moved() // it knows that it has moved; otherwise a router has moved it
				}
				from := s.now
				for s.step(from+time.Minute) && s.conns[1].Remote() != s.address {
				}
				// The packet from there, the challenge, the answer: one round trip and a half,
				// and the queue.
				if took, most := s.now-from, 120*time.Millisecond; loss == 0 && took > most || took > 3*time.Second {
					t.Errorf("loss %v, seed %d, move %d: took %v", loss, seed, i, took)
				}
			}
			for s.step(s.now+time.Minute) && !done() {
			}
			if !done() {
				t.Errorf("loss %v, seed %d: the transfer did not end", loss, seed)
			}
		}
	}
}

// TestMovesInHandshake holds that a client may move between hello and first data packet.
func TestMovesInHandshake(t *testing.T) {
	s := newSim(Config{}, Config{}, &path{delay: 10 * time.Millisecond}, &path{delay: 10 * time.Millisecond}, 5)
	for s.step(time.Minute) && !s.conns[0].Open() {
	}
	s.address = netip.MustParseAddrPort("10.0.0.3:3")
	for s.step(s.now+time.Minute) && s.conns[1].packetsReceived == 0 {
	}
	if v := s.conns[1]; v.handshake.proven || v.Remote() != addresses[0] {
		t.Fatalf("the address counts as proven (%v) although the client has moved", v.Remote())
	}
	done := s.both(t, 100_000)
	for s.step(s.now+time.Minute) && !done() {
	}
	if !done() || s.conns[1].Remote() != s.address {
		t.Errorf("done %v, the server sends to %v", done(), s.conns[1].Remote())
	}
}

// TestUnansweredChallenges holds what goes to an address from which one packet
// came and then nothing: at most three times its bytes, and never anything else.
func TestUnansweredChallenges(t *testing.T) {
	s := pair(t, Config{}, Config{})
	a := &copier{}
	a.attack(s)
	_ = s.conns[1].Send(s.clock(1), Message{Data: make([]byte, 100_000)})
	p := s.sealed(0, wire.AppendPing(nil))
	s.conns[1].Receive(s.clock(1), p, evil, 0)
	// The genuine client says nothing for a while.
	s.asleep[0] = s.now + time.Minute
	for s.step(s.now + 2*time.Minute) {
		if s.now > 70*time.Second {
			break
		}
	}
	if a.got == 0 || a.got > amplification*len(p) {
		t.Errorf("%d bytes went to the attacker for %d", a.got, len(p))
	}
	s.works(t, true)
}

// TestResponses holds which answers to challenges prove an address.
func TestResponses(t *testing.T) {
	elsewhere := netip.MustParseAddrPort("10.0.0.9:9")
	challenged := func(t *testing.T) (s *sim, token []byte) {
		s = pair(t, Config{}, Config{})
		v := s.conns[1]
		v.Receive(s.clock(1), s.sealed(0, wire.AppendPing(nil)), elsewhere, 0)
		for n, to := v.Transmit(s.clock(1), s.buf[:]); n > 0; n, to = v.Transmit(s.clock(1), s.buf[:]) {
			if to == elsewhere {
				s.conns[0].Receive(s.clock(0), s.buf[:n], addresses[1], 0)
			}
		}
		if !s.conns[0].move.responseOwed {
			t.Fatal("no challenge arrived")
		}
		return s, slices.Clone(s.conns[0].move.answer[:])
	}
	response := func(s *sim, token []byte) []byte {
		return s.sealed(0, wire.AppendToken(nil, wire.FrameResponse, token))
	}
	for _, c := range []struct {
		name string
		do   func(s *sim, v *Conn, token []byte)
		want netip.AddrPort
	}{
		{"right", func(s *sim, v *Conn, token []byte) { v.Receive(s.clock(1), response(s, token), elsewhere, 0) }, elsewhere},
		{"wrong token", func(s *sim, v *Conn, token []byte) {
			token[0] ^= 1
			v.Receive(s.clock(1), response(s, token), elsewhere, 0)
		}, addresses[0]},
		{"from the old address", func(s *sim, v *Conn, token []byte) { v.Receive(s.clock(1), response(s, token), addresses[0], 0) }, addresses[0]},
		{"from a third address", func(s *sim, v *Conn, token []byte) { v.Receive(s.clock(1), response(s, token), evil, 0) }, addresses[0]},
		{"late", func(s *sim, v *Conn, token []byte) {
			p := response(s, token)
			v.Receive(s.clock(1), s.sealed(0, wire.AppendPing(nil)), addresses[0], 0)
			v.Receive(s.clock(1), p, elsewhere, 0)
		}, addresses[0]},
		{"given before a move", func(s *sim, v *Conn, token []byte) {
			v.Receive(s.clock(1), response(s, token), elsewhere, 0)
			v.Receive(s.clock(1), response(s, v.move.tokens.Make(addresses[0], []byte{0, 0, 0, 0, 0, 0, 0, 0}, s.clock(1))), addresses[0], 0)
		}, elsewhere},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, token := challenged(t)
			v := s.conns[1]
			c.do(s, v, token)
			if v.Remote() != c.want {
				t.Errorf("the server sends to %v, expected %v", v.Remote(), c.want)
			}
		})
	}
}

// TestClientStays holds that a client goes on with the address that it dialled.
func TestClientStays(t *testing.T) {
	s := pair(t, Config{}, Config{})
	c := s.conns[0]
	c.Receive(s.clock(0), s.sealed(1, wire.AppendPing(nil)), evil, 0)
	s.conns[1].Receive(s.clock(1), s.sealed(0, wire.AppendToken(nil, wire.FrameChallenge, make([]byte, wire.TokenSize))), addresses[0], 0)
	if c.Remote() != addresses[1] || s.conns[1].move.responseOwed {
		t.Errorf("the client sends to %v; the server owes an answer: %v", c.Remote(), s.conns[1].move.responseOwed)
	}
	s.works(t, true)
}
