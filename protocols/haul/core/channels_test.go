package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"linktrial/protocols/haul/wire"
)

var (
	channelCount = flag.Int("channels", 120, "how many random channels TestChannels runs")
	firstChannel = flag.Uint64("channel", 1, "seed of the first of them")
)

// TestChannels runs two ends with applications over random channels and holds
// what the protocol promises against what happens.
func TestChannels(t *testing.T) {
	for i := range *channelCount {
		seed := *firstChannel + uint64(i)
		if err := runChannel(seed, t.Logf); err != nil {
			t.Fatalf("channel %d: %v\nrun it alone: go test ./protocols/haul/core -run TestChannels -channel %d -channels 1 -v", seed, err, seed)
		}
	}
}

// trial is one random channel with its applications.
type trial struct {
	*sim
	rnd     *rand.Rand
	seed    uint64
	apps    [2]*app
	actions []action // in order of time
	calm    time.Duration
	limit   time.Duration
	ending  func()
	ended   bool
	lossy   float64
	err     error
}

type action struct {
	at time.Duration
	do func()
}

// app is the application at one end.
type app struct {
	name    string
	sent    []*record
	streams map[uint32]*order // what arrived here
	bytes   []byte            // sent on the stream that is read as bytes
	got     int               // of the other end's bytes
	ends    map[uint32]int    // End arrived
	finish  map[uint32]bool   // Finish was called
	pauses  time.Duration     // does not read until then
	aborted bool
}

// record is a message that was sent.
type record struct {
	Message
	index  int
	arrive int
	spared bool // cancelled, or has a deadline: it need not arrive
}

// order is what arrived last of each priority of a class of a stream.
type order [HighestPriority + 1]int

const byteStream = 9

func runChannel(seed uint64, logf func(string, ...any)) error {
	x := newTrial(seed)
	defer func() {
		if x.err != nil {
			logf("channel %d at %v: %d steps", seed, x.now, x.steps)
			for i, c := range x.conns {
				if c != nil {
					logf("end %d: state %d err %v open %d missing %d useful %d overdue %d probes %d items %d count %d again %v sent %d credit %d silent %v suspended %v starved %v\n  %+v", i, c.state, c.err, c.open, c.missing, c.useful, c.ptoCount, c.probes, len(c.out.items), c.out.count, c.blocked(), c.sent, c.peerCredit, c.peerSuspended, c.suspended, c.amplificationLimited, c.Stats())
				}
			}
		}
	}()
	for x.err == nil && x.step(x.limit) {
		x.check()
		if x.ended && x.over() {
			break
		}
	}
	if x.err == nil {
		x.err = x.verdict()
	}
	return x.err
}

func logUniform(r *rand.Rand, from, to float64) float64 {
	return from * math.Pow(to/from, r.Float64())
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newTrial(seed uint64) *trial {
	r := rand.New(rand.NewPCG(seed, 99))
	var paths [2]*path
	worst := 0.0
	mtu := 0
	if r.IntN(3) == 0 {
		mtu = 300 + r.IntN(1200)
	}
	slow := 1e9
	for i := range paths {
		p := &path{rate: logUniform(r, 1e3, 1e8), delay: time.Duration(logUniform(r, 1e5, 6e8)), queue: 4 + r.IntN(200)}
		if r.IntN(4) == 0 {
			p.queue = 2 + r.IntN(4)
		}
		if r.IntN(3) == 0 {
			p.jitter = time.Duration(logUniform(r, 1e5, 2e8))
		}
		if r.IntN(3) == 0 {
			p.duplicate = r.Float64() * 0.3
		}
		loss := pick(r, 0, 0, 0.01, 0.1, 0.3, 0.6)
		if r.IntN(3) == 0 {
			p.corrupt = r.Float64() * 0.1
		}
		p.lost = burstLoss(seed*2+uint64(i), loss, pick(r, 1.0, 1, 4, 10), 0)
		worst = max(worst, loss+p.corrupt)
		slow = min(slow, p.rate)
		paths[i] = p
	}
	if r.IntN(2) == 0 { // usually the two ways have something to do with each other
		paths[1].rate, paths[1].delay = paths[0].rate, paths[0].delay
		slow = paths[0].rate
	}
	var configs [2]Config
	mode := r.IntN(3)
	for i := range configs {
		c := &configs[i]
		switch mode {
		case 0:
			c.Secure.Plain = true
		case 1:
			c.Secure.PSK = bytes.Repeat([]byte{7}, 32)
		}
		c.Packet = pick(r, 0, MinPacket, 576, 1200, 8972)
		c.Buffer = pick(r, MinBuffer, 100_000, 1<<20, 0)
		c.NoCoding = r.IntN(8) == 0
		c.KeepAlive = pick(r, 0, 0, 500*time.Millisecond, 20*time.Second)
		if i == 0 && r.IntN(3) == 0 {
			c.Link = Link{Rate: paths[0].rate, RTT: paths[0].delay + paths[1].delay, Loss: worst / 2}
		}
	}
	x := &trial{sim: newSim(configs[0], configs[1], paths[0], paths[1], seed), rnd: r, seed: seed, lossy: worst}
	for i := range x.offset {
		x.offset[i] += 200_000 * time.Second // times are positive, also after leaps
	}
	x.conns[0].Bytewise(byteStream)
	x.work = func(*sim) { x.applications() }
	x.nextWork = x.nextAction
	for i := range x.apps {
		x.apps[i] = &app{name: []string{"client", "server"}[i], streams: map[uint32]*order{}, ends: map[uint32]int{}, finish: map[uint32]bool{}}
	}
	x.plan(slow, mtu)
	return x
}

// plan draws what happens when.
func (x *trial) plan(slow float64, mtu int) {
	r := x.rnd
	span := time.Duration(logUniform(r, 5e8, 6e10))
	at := func() time.Duration { return time.Duration(r.Int64N(int64(span))) }
	add := func(t time.Duration, f func()) { x.actions = append(x.actions, action{t, f}) }
	budget := int(min(slow*10, 400_000))
	for end := range 2 {
		for left := budget / (1 + r.IntN(4)); left > 0; {
			n := 8 + int(logUniform(r, 1, 30_000))
			left -= n
			add(at(), func() { x.send(end, n) })
		}
		if r.IntN(3) == 0 {
			for range 1 + r.IntN(20) {
				add(at(), func() { x.sendBytes(end, 1+int(logUniform(r, 1, 5000))) })
			}
		}
		for range r.IntN(4) {
			add(at(), func() { x.apps[end].pauses = x.now + time.Duration(r.Int64N(int64(10*time.Second))) })
		}
		if r.IntN(4) == 0 {
			for range 1 + r.IntN(4) {
				jump := time.Duration(logUniform(r, 1e6, 1e13))
				if r.IntN(2) == 0 {
					jump = -jump
				}
				add(at(), func() { x.offset[end] += jump })
			}
		}
		if r.IntN(6) == 0 {
			sleep := time.Duration(logUniform(r, 1e8, 3e11))
			add(at(), func() {
				x.asleep[end] = x.now + sleep
				if r.IntN(2) == 0 {
					x.offset[end] -= sleep // its clock stood still
				}
			})
		}
		if r.IntN(6) == 0 {
			from := at()
			add(from, func() {
				if c := x.conns[end]; c != nil {
					c.Suspend()
				}
			})
			add(from+time.Duration(r.Int64N(int64(30*time.Second))), func() {
				if c := x.conns[end]; c != nil {
					c.Resume(x.clock(end))
				}
			})
		}
		for s := range uint16(4) {
			for _, class := range []wire.Class{wire.ReliableSequenced, wire.ReliableUnsequenced} {
				if r.IntN(3) == 0 {
					add(at(), func() { x.finish(end, s, class) })
				}
			}
		}
	}
	for range r.IntN(3) {
		from, to := at(), time.Duration(logUniform(r, 1e8, 6e10))
		way := r.IntN(3)
		add(from, func() {
			for i, p := range x.paths {
				if way == 2 || way == i {
					until := x.now + to
					p.blocked = func(now time.Duration) bool { return now < until }
				}
			}
		})
	}
	if mtu > 0 {
		loud := r.IntN(2) == 0
		add(at(), func() {
			x.paths[0].mtu, x.paths[1].mtu = mtu, mtu
			x.tells = loud
		})
	}
	if r.IntN(4) == 0 {
		for i := range 1 + r.IntN(3) {
			add(at(), func() {
				if x.conns[0].Open() { // before, it would be another client
					if c := x.conns[0]; c.peerSuspended || c.config.KeepAlive == 0 {
						c.Moved() // or it might say nothing from there, and nobody would know
					}
					x.address = netip.AddrPortFrom(addresses[0].Addr(), uint16(1000+i))
				}
			})
		}
	}
	slices.SortStableFunc(x.actions, func(a, b action) int { return int(a.at - b.at) })
	x.calm = span
	// A generous bound of the time that all of it may take.
	share := max(1-x.lossy, 0.2)
	x.limit = span + 30*time.Minute + time.Duration(40*float64(4*budget)/slow/share/share*1e9)
	x.ending = x.end
}

func (x *trial) send(end, n int) {
	c, a, r := x.conns[end], x.apps[end], x.rnd
	if c == nil || !c.Open() {
		return
	}
	n = min(n, c.largestMessage())
	m := Message{Stream: uint16(r.IntN(4)), Class: wire.Class(r.IntN(4)), Priority: uint8(r.IntN(8)), Tag: uint32(r.IntN(4)), Data: make([]byte, n)}
	rec := &record{index: len(a.sent)}
	binary.BigEndian.PutUint32(m.Data, uint32(rec.index))
	fillBytes(m.Data[4:], uint64(rec.index))
	if r.IntN(8) == 0 {
		m.SendBy = x.clock(end) + time.Duration(r.Int64N(int64(20*time.Second)))
		rec.spared = true
	}
	if r.IntN(8) == 0 {
		m.DeliverBy = x.clock(end) + time.Duration(r.Int64N(int64(20*time.Second)))
		rec.spared = true
	}
	rec.Message = m
	now := x.clock(end)
	switch r.IntN(8) {
	case 0:
		if m.Tag == 0 {
			break
		}
		err := c.Replace(now, m)
		if err != nil {
			x.refusedSend(end, &m, err)
			return
		}
		x.spare(a, &m)
		a.sent = append(a.sent, rec)
		return
	case 1:
		if m.Tag != 0 {
			c.Cancel(m.Stream, m.Tag)
			x.spare(a, &m)
		}
	}
	if err := c.Send(now, m); err != nil {
		x.refusedSend(end, &m, err)
		return
	}
	a.sent = append(a.sent, rec)
}

// spare notes that the messages of a tag need not arrive any more.
func (x *trial) spare(a *app, m *Message) {
	for _, o := range a.sent {
		if o.Stream == m.Stream && o.Tag == m.Tag {
			o.spared = true
		}
	}
}

func (x *trial) refusedSend(end int, m *Message, err error) {
	if errors.Is(err, ErrFinished) && x.apps[end].finish[classKey(m.Stream, m.Class)] || errors.Is(err, ErrClosed) {
		return
	}
	x.fail("send of %d bytes: %v", len(m.Data), err)
}

func (x *trial) sendBytes(end, n int) {
	c, a := x.conns[end], x.apps[end]
	if c == nil || !c.Open() || c.state == closing {
		return
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((len(a.bytes) + i) * 7 / 3)
	}
	a.bytes = append(a.bytes, b...)
	if err := c.Send(x.clock(end), Message{Stream: byteStream, Priority: 3, Data: b}); err != nil {
		x.fail("send of bytes: %v", err)
	}
}

func (x *trial) finish(end int, stream uint16, class wire.Class) {
	c, a := x.conns[end], x.apps[end]
	if c == nil || !c.Open() || c.state == closing {
		return
	}
	a.finish[classKey(stream, class)] = true
	c.Finish(stream, class, uint8(x.rnd.IntN(8)))
}

func fillBytes(b []byte, seed uint64) {
	v := seed*0x9E3779B97F4A7C15 + 1
	for i := range b {
		v = v*6364136223846793005 + 1442695040888963407
		b[i] = byte(v >> 56)
	}
}

func (x *trial) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// applications is what applications do after every event.
func (x *trial) applications() {
	for len(x.actions) > 0 && x.actions[0].at <= x.now {
		do := x.actions[0].do
		x.actions = x.actions[1:]
		do()
	}
	for end, c := range x.conns {
		if c != nil && x.now >= x.apps[end].pauses {
			x.read(end, c)
		}
	}
	if len(x.actions) == 0 && !x.ended && x.now >= x.calm && x.delivered() {
		x.ended = true
		x.ending()
	}
}

func (x *trial) read(end int, c *Conn) {
	a, from := x.apps[end], x.apps[1-end]
	for m, ok := c.Next(); ok; m, ok = c.Next() {
		key := classKey(m.Stream, m.Class)
		switch {
		case m.End:
			if a.ends[key]++; a.ends[key] > 1 || !from.finish[key] {
				x.fail("%s: end of stream %d class %d came %d times, finished %v", a.name, m.Stream, m.Class, a.ends[key], from.finish[key])
			}
		case m.Stream == byteStream:
			if a.got+len(m.Data) > len(from.bytes) || !bytes.Equal(m.Data, from.bytes[a.got:a.got+len(m.Data)]) {
				x.fail("%s: bytes from %d on are not those that were sent", a.name, a.got)
				return
			}
			a.got += len(m.Data)
		default:
			x.arrivedAt(a, from, &m, key)
		}
	}
}

func (x *trial) arrivedAt(a, from *app, m *Received, key uint32) {
	if len(m.Data) < 8 {
		x.fail("%s: a message of %d bytes arrived", a.name, len(m.Data))
		return
	}
	i := int(binary.BigEndian.Uint32(m.Data))
	if i >= len(from.sent) {
		x.fail("%s: message %d was never sent", a.name, i)
		return
	}
	rec := from.sent[i]
	if rec.Stream != m.Stream || rec.Class != m.Class || rec.Tag != m.Tag || !bytes.Equal(rec.Data, m.Data) {
		x.fail("%s: message %d arrived damaged (%d of %d bytes)", a.name, i, len(m.Data), len(rec.Data))
	}
	if rec.arrive++; rec.arrive > 1 {
		x.fail("%s: message %d (class %d) arrived twice", a.name, i, m.Class)
	}
	if a.ends[key] > 0 {
		x.fail("%s: message %d came after the end of its stream", a.name, i)
	}
	if !m.Class.Sequenced() {
		return
	}
	o := a.streams[key]
	if o == nil {
		o = &order{}
		a.streams[key] = o
	}
	if last := &o[rec.Priority]; i+1 < *last {
		x.fail("%s: message %d of class %d came after message %d", a.name, i, m.Class, *last-1)
	} else {
		*last = i + 1
	}
}

// delivered reports whether all that must arrive has.
func (x *trial) delivered() bool {
	for end, a := range x.apps {
		other := x.apps[1-end]
		c := x.conns[end]
		if c == nil {
			return false
		}
		if closed, _ := c.Closed(); closed {
			return true
		}
		if other.got < len(a.bytes) {
			return false
		}
		for key := range a.finish {
			if other.ends[key] == 0 {
				return false
			}
		}
		for _, r := range a.sent {
			if r.Class.Reliable() && !r.spared && r.arrive == 0 {
				return false
			}
		}
	}
	return true
}

// end ends the connection in one of several ways.
func (x *trial) end() {
	end := x.rnd.IntN(2)
	switch x.rnd.IntN(5) {
	case 0:
		x.conns[end].Abort("enough")
		x.conns[1-end].Ping() // an abort may be lost; whoever asks learns of it
		x.apps[end].aborted = true
	case 1:
		x.conns[0].Abort("enough")
		x.conns[1].Abort("enough, too")
		x.apps[0].aborted, x.apps[1].aborted = true, true
	case 2:
		x.conns[0].Close()
		x.conns[1].Close()
	default:
		x.conns[end].Close()
	}
}

func (x *trial) over() bool {
	for _, c := range x.conns {
		if over, _ := c.Closed(); !over {
			return false
		}
	}
	return len(x.flying) == 0 // nobody goes on sending
}

// check holds what must be true at any moment.
func (x *trial) check() {
	for end, c := range x.conns {
		if c == nil || x.now < x.asleep[end] {
			continue
		}
		x.checkDeadline(end, c)
		st := c.Stats()
		if c.state != connecting {
			if most := 5*c.config.Buffer + 3<<20; st.Held > most {
				x.fail("%s holds %d bytes, expected at most %d", x.apps[end].name, st.Held, most)
			}
			if n := c.packets.len(); n > 200_000 {
				x.fail("%s keeps %d sent packets", x.apps[end].name, n)
			}
		}
		if over, err := c.Closed(); over && err != nil && !x.ended && !errors.Is(err, ErrDead) {
			x.fail("%s ended: %v", x.apps[end].name, err)
		}
	}
	if x.steps > 3_000_000 {
		x.fail("no end after %d steps", x.steps)
	}
}

// checkDeadline holds that an end which has been asked for all that it has to
// do now wants to be asked again later.
func (x *trial) checkDeadline(end int, c *Conn) {
	now := x.clock(end)
	at, ok := c.Deadline()
	if !ok || at > now {
		return
	}
	c.Tick(now)
	x.flush()
	if at, ok = c.Deadline(); ok && at <= now {
		x.fail("%s at %v has a deadline that has passed (%v)", x.apps[end].name, now, at)
	}
}

// verdict is what must be true at the end.
func (x *trial) verdict() error {
	switch {
	case x.conns[1] == nil:
		return fmt.Errorf("no connection after %v", x.now)
	case !x.ended:
		return fmt.Errorf("not everything had arrived after %v", x.now)
	case !x.over():
		return fmt.Errorf("not ended after %v, %d packets under way", x.now, len(x.flying))
	}
	return nil
}

// nextAction is when an application has something to do, 0 for never.
func (x *trial) nextAction() time.Duration {
	next := time.Duration(0)
	for _, a := range x.apps {
		if a.pauses > x.now {
			next = earliest(next, a.pauses)
		}
	}
	if len(x.actions) > 0 {
		next = earliest(next, x.actions[0].at)
	} else if x.calm > x.now {
		next = earliest(next, x.calm)
	}
	return next
}
