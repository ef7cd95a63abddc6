package core

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"linktrial/protocols/haul/wire"
)

// path is one direction of a simulated link: a queue, a rate, a delay, losses.
type path struct {
	rate      float64 // bytes/s; 0: without bound
	delay     time.Duration
	jitter    time.Duration
	queue     int // packets
	lost      func(now time.Duration) bool
	lostSize  func(bytes int) bool
	blocked   func(now time.Duration) bool // an outage
	duplicate float64
	corrupt   float64
	mtu       int // bytes of UDP payload
	rnd       *rand.Rand

	free    time.Duration
	waiting []time.Duration // ends of service
	sent    int
	bytes   int
	dropped int
}

type arrival struct {
	at   time.Duration
	to   int
	data []byte
}

// sim runs two ends over two paths in virtual time.
type sim struct {
	now      time.Duration
	conns    [2]*Conn
	listener *Listener
	paths    [2]*path // from client, from server
	flying   []arrival
	offset   [2]time.Duration // of the ends' clocks
	asleep   [2]time.Duration // until then an end does nothing, and packets to it are lost
	busy     [2]time.Duration // until then an end does nothing, and packets to it wait
	// late is asked when an end's deadline has come: so much later it is woken; nil: never.
	late    func(end int) time.Duration
	address netip.AddrPort // of the client
	astray  int            // packets to the client that went to another address
	// sends is asked for each packet that an end sends: false takes it from the path.
	sends    func(end int, p []byte, to netip.AddrPort) bool
	trace    func(format string, args ...any)
	buf      [9000]byte
	work     func(s *sim)         // applications, after every event
	nextWork func() time.Duration // when applications have something to do
	steps    int
	bytewise bool // stream 0 is read as bytes
	tells    bool // the path tells of packets that are too large
}

var addresses = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2")}

type chacha struct{ r *rand.ChaCha8 }

func (c chacha) Read(b []byte) (int, error) { return c.r.Read(b) }

func random(seed uint64) chacha {
	var s [32]byte
	for i := range 8 {
		s[i] = byte(seed >> (8 * i))
	}
	return chacha{rand.NewChaCha8(s)}
}

func newSim(client, server Config, forward, back *path, seed uint64) *sim {
	client.Random, server.Random = random(seed), random(seed+1)
	c, err := Dial(client, addresses[1], nil)
	if err != nil {
		panic(err)
	}
	l, err := NewListener(server)
	if err != nil {
		panic(err)
	}
	forward.rnd, back.rnd = rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	return &sim{conns: [2]*Conn{c, nil}, listener: l, paths: [2]*path{forward, back}, offset: [2]time.Duration{0, 12345 * time.Second}, address: addresses[0]}
}

// clock is the time at an end.
func (s *sim) clock(end int) time.Duration {
	return s.now + s.offset[end]
}

func (s *sim) put(from int, data []byte) {
	p := s.paths[from]
	p.sent++
	p.bytes += len(data) + headers
	if p.mtu > 0 && len(data) > p.mtu {
		p.dropped++
		if s.tells {
			s.conns[from].TooLarge(len(data))
		}
		return
	}
	for len(p.waiting) > 0 && p.waiting[0] <= s.now {
		p.waiting = p.waiting[1:]
	}
	if p.queue > 0 && len(p.waiting) >= p.queue {
		p.dropped++
		return
	}
	p.free = max(p.free, s.now)
	if p.rate > 0 {
		p.free += time.Duration(float64(len(data)+headers) / p.rate * 1e9)
	}
	p.waiting = append(p.waiting, p.free)
	if p.lost != nil && p.lost(p.free) || p.blocked != nil && p.blocked(p.free) || p.lostSize != nil && p.lostSize(len(data)+headers) {
		p.dropped++
		return
	}
	n := 1
	if p.rnd.Float64() < p.duplicate {
		n = 2
	}
	for range n {
		d := append([]byte(nil), data...)
		if p.rnd.Float64() < p.corrupt {
			damage(p.rnd, d)
		}
		at := p.free + p.delay
		if p.jitter > 0 {
			at += time.Duration(p.rnd.Int64N(int64(p.jitter)))
		}
		s.flying = append(s.flying, arrival{at, 1 - from, d})
	}
}

func (s *sim) flush() {
	for end, c := range s.conns {
		if c == nil || s.now < max(s.asleep[end], s.busy[end]) {
			continue
		}
		for n, to := c.Transmit(s.clock(end), s.buf[:]); n > 0; n, to = c.Transmit(s.clock(end), s.buf[:]) {
			if s.sends != nil && !s.sends(end, s.buf[:n], to) {
				continue
			}
			if end == 1 && to != s.address {
				s.astray++ // nobody is there, or no longer
				continue
			}
			if s.trace != nil {
				s.trace("%v %d sends %d bytes, inflight %d useful %d open %d", s.now, end, n, c.inFlight, c.useful, c.open)
			}
			s.put(end, s.buf[:n])
		}
	}
}

// step goes to the next event; false: there is none before limit.
func (s *sim) step(limit time.Duration) bool {
	s.steps++
	if s.work != nil {
		s.work(s)
	}
	s.flush()
	next := limit
	if s.nextWork != nil {
		if at := s.nextWork(); at > s.now {
			next = min(next, at)
		}
	}
	if at := s.listener.Sweep(s.clock(1)); at > 0 {
		next = min(next, max(at-s.offset[1], s.now+1))
	}
	stop := next
	which := -1
	for i, a := range s.flying {
		if at := max(a.at, s.busy[a.to]); at < next {
			next, which = at, i
		}
	}
	due := false
	for end, c := range s.conns {
		if c == nil {
			continue
		}
		if s.now < s.asleep[end] {
			if s.asleep[end] < next {
				next, which, due = s.asleep[end], -1, true
			}
			continue
		}
		if at, ok := c.Deadline(); ok {
			if at = max(at-s.offset[end], s.busy[end]); at < next {
				next, which, due = max(at, s.now), -1, true
			}
		}
	}
	if next >= limit {
		s.now = limit
		return false
	}
	if which < 0 && !due && next == stop {
		s.now = next
		return true
	}
	s.now = max(s.now, next)
	if which >= 0 {
		a := s.flying[which]
		s.flying = append(s.flying[:which], s.flying[which+1:]...)
		s.arrive(a)
		return true
	}
	if due {
		for end, c := range s.conns {
			if c == nil || s.now < max(s.asleep[end], s.busy[end]) {
				continue
			}
			if at, ok := c.Deadline(); s.late != nil && ok && at-s.offset[end] == s.now {
				if s.busy[end] = s.now + s.late(end); s.busy[end] > s.now {
					continue
				}
			}
			c.Tick(s.clock(end))
		}
	}
	return true
}

func (s *sim) arrive(a arrival) {
	if s.now < s.asleep[a.to] {
		return
	}
	if a.to == 0 {
		s.conns[0].Receive(s.clock(0), a.data, addresses[1], 0)
		return
	}
	var reply [1500]byte
	conn, fresh, r := s.listener.Receive(s.clock(1), a.data, s.address, 0, reply[:])
	if r != nil {
		s.put(1, r)
	}
	if fresh && s.conns[1] == nil {
		s.conns[1] = conn
		conn.Bytewise(byteStream)
		if s.bytewise {
			conn.Bytewise(0)
		}
	}
}

// damage flips bits of a packet, or makes noise of it.
func damage(rnd *rand.Rand, d []byte) {
	for range 1 + rnd.IntN(4) {
		d[rnd.IntN(len(d))] ^= 1 << rnd.IntN(8)
	}
	if rnd.IntN(8) == 0 {
		for i := range d {
			d[i] = byte(rnd.Uint32())
		}
	}
}

// transfer sends size bytes and waits for the answer of one byte. It returns
// the time of the handshake (until the server's first byte) and that of the transfer.
func (s *sim) transfer(size int, limit time.Duration) (connected, took time.Duration, ok bool) {
	const chunk = 16 << 10
	left, got := size, 0
	began := time.Duration(-1)
	greeted, answered := false, false
	s.bytewise = true
	s.conns[0].Bytewise(0)
	s.work = func(s *sim) {
		c, v := s.conns[0], s.conns[1]
		if v != nil && !greeted {
			greeted = true
			_ = v.Send(s.clock(1), Message{Class: wire.ReliableSequenced, Data: []byte("R")})
		}
		if v != nil {
			for m, ok := v.Next(); ok; m, ok = v.Next() {
				got += len(m.Data)
			}
			if got == size && !answered {
				answered = true
				_ = v.Send(s.clock(1), Message{Class: wire.ReliableSequenced, Data: []byte(".")})
			}
		}
		for m, ok := c.Next(); ok; m, ok = c.Next() {
			if string(m.Data) == "R" {
				began = s.now
			} else if string(m.Data) == "." {
				took = s.now - began
			}
		}
		for began >= 0 && left > 0 && c.Queued() < 64<<10 {
			n := min(left, chunk)
			if err := c.Send(s.now, Message{Class: wire.ReliableSequenced, Data: make([]byte, n)}); err != nil {
				panic(err)
			}
			left -= n
		}
		c.WriterWaits(left > 0)
	}
	for s.step(limit) {
		if took > 0 {
			return began, took, true
		}
		if ok, _ := s.conns[0].Closed(); ok {
			break
		}
	}
	return began, took, false
}

// burstLoss loses a share of packets in bursts of a mean length (Gilbert's
// model with a step for each packet; 1: independent).
func burstLoss(seed uint64, share, burst, _ float64) func(time.Duration) bool {
	r := rand.New(rand.NewPCG(seed, 77))
	if burst <= 1 {
		return func(time.Duration) bool { return r.Float64() < share }
	}
	bad := false
	leave := 1 / burst
	enter := share * leave / (1 - share)
	return func(time.Duration) bool {
		if bad {
			bad = r.Float64() >= leave
		} else {
			bad = r.Float64() < enter
		}
		return bad
	}
}
