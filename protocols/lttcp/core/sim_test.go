package core

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"linktrial/protocols/lttcp/wire"
)

// headers are IP's and UDP's.
const headers = 28

// path is one direction of a simulated link: a queue that marks, a rate, a delay, losses.
type path struct {
	rate      float64 // bytes/s
	delay     time.Duration
	jitter    time.Duration
	queue     int // packets; more are dropped
	marks     int // packets; from then on they are marked
	loss      float64
	burst     float64 // mean length in packets
	duplicate float64
	corrupt   float64
	blocked   func(now time.Duration) bool
	rnd       *rand.Rand

	bad     bool
	free    time.Duration
	waiting []time.Duration
	sent    int
}

type arrival struct {
	at   time.Duration
	to   int
	data []byte
	ecn  uint8
}

// sim runs two ends over two paths in virtual time.
type sim struct {
	now      time.Duration
	conns    [2]*Conn
	listener *Listener
	paths    [2]*path // from client, from server
	flying   []arrival
	seen     [][]byte // of both ends' packets, some: to be replayed
	work     func()   // applications, after every event
	nextWork func() time.Duration
	hostile  *rand.Rand // sends what is not of the connection
	steps    int
	buf      [10000]byte
}

var clientAddress = netip.MustParseAddrPort("10.0.0.1:1")

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
	c, err := Dial(client)
	if err != nil {
		panic(err)
	}
	l, err := NewListener(server)
	if err != nil {
		panic(err)
	}
	forward.rnd, back.rnd = rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	return &sim{now: time.Second, conns: [2]*Conn{c, nil}, listener: l, paths: [2]*path{forward, back}}
}

// erased draws whether the next packet is lost.
func (p *path) erased() bool {
	if p.burst <= 1 {
		return p.rnd.Float64() < p.loss
	}
	leave := 1 / p.burst
	if p.bad {
		p.bad = p.rnd.Float64() >= leave
	} else {
		p.bad = p.rnd.Float64() < p.loss*leave/(1-p.loss)
	}
	return p.bad
}

func (s *sim) put(from int, data []byte, ecn uint8) {
	p := s.paths[from]
	p.sent++
	for len(p.waiting) > 0 && p.waiting[0] <= s.now {
		p.waiting = p.waiting[1:]
	}
	if len(p.waiting) >= p.queue {
		return
	}
	if p.marks > 0 && len(p.waiting) >= p.marks && ecn == 2 {
		ecn = 3
	}
	p.free = max(p.free, s.now) + time.Duration(float64(len(data)+headers)/p.rate*1e9)
	p.waiting = append(p.waiting, p.free)
	if p.erased() || p.blocked != nil && p.blocked(p.free) {
		return
	}
	n := 1
	if p.rnd.Float64() < p.duplicate {
		n = 2
	}
	for range n {
		d := slices.Clone(data)
		if p.rnd.Float64() < p.corrupt {
			damage(p.rnd, d)
		}
		at := p.free + p.delay
		if p.jitter > 0 {
			at += time.Duration(p.rnd.Int64N(int64(p.jitter)))
		}
		s.flying = append(s.flying, arrival{at, 1 - from, d, ecn})
	}
	if s.hostile != nil {
		s.disturb(data)
	}
}

// disturb sends what somebody else might: noise, packets of other connections,
// resets and acknowledgements without the tokens, and old packets again.
func (s *sim) disturb(data []byte) {
	r := s.hostile
	if r.IntN(16) != 0 {
		return
	}
	at := arrival{at: s.now + time.Duration(r.Int64N(int64(time.Second))), to: r.IntN(2), ecn: uint8(r.IntN(4))}
	key := wire.Tokens(r.Uint64(), r.Uint64())
	switch r.IntN(4) {
	case 0:
		at.data = make([]byte, r.IntN(100))
		for i := range at.data {
			at.data[i] = byte(r.Uint32())
		}
	case 1:
		at.data = wire.Append(nil, &wire.Packet{Kind: wire.Kind(3 + r.IntN(6)), Number: uint32(r.IntN(1000)), Seq: uint32(r.IntN(1000)), Size: 5, Count: 1, Last: 1, Index: 1, Next: uint32(r.IntN(1 << 20))}, []byte("bytes"), &key)
	case 2:
		at.data = slices.Clone(data)
		damage(r, at.data)
	default: // replayed, to the end that it was meant for or to the other one
		if len(s.seen) == 0 {
			return
		}
		at.data = s.seen[r.IntN(len(s.seen))]
	}
	if len(s.seen) < 50 {
		s.seen = append(s.seen, slices.Clone(data))
	}
	s.flying = append(s.flying, at)
}

// damage flips bits of a packet, or makes noise of it.
func damage(r *rand.Rand, d []byte) {
	for range 1 + r.IntN(4) {
		d[r.IntN(len(d))] ^= 1 << r.IntN(8)
	}
	if r.IntN(8) == 0 {
		for i := range d {
			d[i] = byte(r.Uint32())
		}
	}
}

func (s *sim) flush() {
	for end, c := range s.conns {
		if c == nil {
			continue
		}
		for {
			p, ecn := c.Transmit(s.now, s.buf[:])
			if p == nil {
				break
			}
			s.put(end, p, ecn)
		}
	}
}

// step goes to the next event; false: there is none before limit.
func (s *sim) step(limit time.Duration) bool {
	s.steps++
	if s.work != nil {
		s.work()
	}
	s.flush()
	next, which, due := limit, -1, false
	if s.nextWork != nil {
		if at := s.nextWork(); at > s.now {
			next = min(next, at)
		}
	}
	if at := s.listener.Sweep(s.now); at > 0 {
		next = min(next, max(at, s.now+1))
	}
	for i, a := range s.flying {
		if a.at < next {
			next, which = a.at, i
		}
	}
	for _, c := range s.conns {
		if c == nil {
			continue
		}
		if at, ok := c.Deadline(); ok && at < next {
			next, which, due = max(at, s.now), -1, true
		}
	}
	s.now = max(s.now, next)
	if next >= limit {
		return false
	}
	if which >= 0 {
		a := s.flying[which]
		s.flying = slices.Delete(s.flying, which, which+1)
		s.arrive(a)
	}
	if due {
		for _, c := range s.conns {
			if c != nil {
				c.Tick(s.now)
			}
		}
	}
	return true
}

func (s *sim) arrive(a arrival) {
	if a.to == 0 {
		s.conns[0].Receive(s.now, a.data, a.ecn)
		return
	}
	c, fresh := s.listener.Receive(s.now, a.data, clientAddress, a.ecn)
	switch {
	case c == nil:
	case s.conns[1] == nil:
		s.conns[1] = c
	case fresh && s.conns[1] != c:
		panic("two connections of one client")
	}
}
