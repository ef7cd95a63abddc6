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
	offset   time.Duration // of the server's clock
	trace    func(format string, args ...any)
	buf      [9000]byte
	work     func(s *sim) // applications, after every event
	steps    int
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
	return &sim{conns: [2]*Conn{c, nil}, listener: l, paths: [2]*path{forward, back}, offset: 12345 * time.Second}
}

// clock is the time at an end.
func (s *sim) clock(end int) time.Duration {
	if end == 1 {
		return s.now + s.offset
	}
	return s.now
}

func (s *sim) put(from int, data []byte) {
	p := s.paths[from]
	p.sent++
	p.bytes += len(data) + headers
	if p.mtu > 0 && len(data) > p.mtu {
		p.dropped++
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
	if p.lost != nil && p.lost(p.free) || p.lostSize != nil && p.lostSize(len(data)+headers) {
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
			d[p.rnd.IntN(len(d))] ^= 1 << p.rnd.IntN(8)
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
		if c == nil {
			continue
		}
		for n := c.Transmit(s.clock(end), s.buf[:]); n > 0; n = c.Transmit(s.clock(end), s.buf[:]) {
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
	which := -1
	for i, a := range s.flying {
		if a.at < next {
			next, which = a.at, i
		}
	}
	due := false
	for end, c := range s.conns {
		if c == nil {
			continue
		}
		if at, ok := c.Deadline(); ok {
			if end == 1 {
				at -= s.offset
			}
			if at < next {
				next, which, due = max(at, s.now), -1, true
			}
		}
	}
	if next >= limit {
		s.now = limit
		return false
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
			if c != nil {
				c.Tick(s.clock(end))
			}
		}
	}
	return true
}

func (s *sim) arrive(a arrival) {
	if a.to == 0 {
		s.conns[0].Receive(s.now, a.data, addresses[1], 0)
		return
	}
	var reply [1500]byte
	conn, fresh, r := s.listener.Receive(s.clock(1), a.data, addresses[0], 0, reply[:])
	if r != nil {
		s.put(1, r)
	}
	if fresh && s.conns[1] == nil {
		s.conns[1] = conn
		conn.Bytewise(0)
	}
}

// transfer sends size bytes and waits for the answer of one byte. It returns
// the time of the handshake (until the server's first byte) and that of the transfer.
func (s *sim) transfer(size int, limit time.Duration) (connected, took time.Duration, ok bool) {
	const chunk = 16 << 10
	left, got := size, 0
	began := time.Duration(-1)
	greeted, answered := false, false
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
