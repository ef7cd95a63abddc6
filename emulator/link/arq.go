package link

import (
	"time"

	"linktrial/internal/radio"
)

// arq is selective repeat on one direction (dantas-2011, sections IV and VII).
// What both ends know is kept in one place; what an end does not know yet it
// does not use.
//
// The receiver notices a frame that it cannot read when it has arrived: the
// link is synchronous, there is always a frame. NACKTimerFrames frame times
// later it sends a NACK, and as long after each NACK the next until it has the
// frame. NACKs are sent before everything else, but alternate with it, so that
// they cannot block the frames that they ask for. The sender sends the frame
// again for each NACK, unless it is already queued to be sent, so a NACK timer
// shorter than the round trip causes needless retransmissions. A NACK
// after Persistence retransmissions makes the sender give the frame up; it
// announces that in its next frame, idle or not, which is assumed to arrive. Idle
// frames have the lowest priority and are not counted.
type arq struct {
	timer     time.Duration // from noticing to the first NACK
	again     time.Duration // between NACKs
	frameTime time.Duration
	persist   int
	inOrder   bool
	packets   ring[arqPacket] // sent and not yet done with, by number
	frames    ring[arqFrame]
	repeats   ring[uint64] // frames to be sent again
}

type arqPacket struct {
	packet
	missing int32 // frames that have not arrived
	done    bool  // delivered or lost
	whole   bool  // waits for its turn to be delivered
}

type arqFrame struct {
	packet   uint64
	bytes    int32
	refs     int32 // NACKs and copies of it that are on their way
	tries    int32 // retransmissions
	received bool
	noticed  bool
	queued   bool // in repeats
	givenUp  bool
}

func newARQ(a *radio.ARQ, frameTime time.Duration) *arq {
	return &arq{
		timer: time.Duration(a.NACKTimerFrames) * frameTime, again: time.Duration(max(1, a.NACKTimerFrames)) * frameTime,
		frameTime: frameTime, persist: a.Persistence, inOrder: a.InOrder,
	}
}

// trim drops the frames that will not be asked for again.
func (a *arq) trim() {
	for a.frames.n > 0 {
		f := a.frames.front()
		if f.refs > 0 || a.open(f) != nil {
			break
		}
		a.frames.pop()
	}
	for a.packets.n > 0 && a.packets.front().done {
		if a.frames.n > 0 && a.frames.front().packet <= a.packets.base {
			break
		}
		a.packets.pop()
	}
}

// open is the packet of a frame, or nil where it is delivered, lost or forgotten.
func (a *arq) open(f *arqFrame) *arqPacket {
	if p := a.packets.at(f.packet); p != nil && !p.done {
		return p
	}
	return nil
}

// frameArrived is a copy of a frame that reaches the receiver, readable or not.
func (l *Network) frameArrived(di int, frame uint64, lost bool) {
	d := &l.directions[di]
	a := d.arq
	f := a.frames.at(frame)
	f.refs--
	p := a.open(f)
	switch {
	case f.received || p == nil:
	case lost:
		if !f.noticed {
			f.noticed = true
			l.timers.push(timer{at: l.now + a.timer, kind: timerNACK, direction: int32(di), frame: frame})
		}
	default:
		f.received = true
		if p.missing--; p.missing == 0 {
			p.whole = true
			l.releasePackets(di, f.packet)
		}
	}
	a.trim()
}

// releasePackets hands out packets that are whole, in order where that is asked.
func (l *Network) releasePackets(di int, number uint64) {
	a := l.directions[di].arq
	if !a.inOrder {
		l.releaseOne(di, number)
		return
	}
	for n := a.packets.base; n < a.packets.end(); n++ {
		p := a.packets.at(n)
		if !p.done && !p.whole {
			return
		}
		if !p.done {
			l.releaseOne(di, n)
		}
	}
}

func (l *Network) releaseOne(di int, number uint64) {
	d := &l.directions[di]
	p := d.arq.packets.at(number)
	p.done = true
	l.observe(di, p.packet, l.now, Delivered)
	l.delivered(di, p.packet)
}

// nackDue has the receiver ask for a frame.
func (l *Network) nackDue(di int, frame uint64) {
	d := &l.directions[di]
	f := d.arq.frames.at(frame)
	if f == nil || f.received || d.arq.open(f) == nil {
		return
	}
	f.refs++
	b := &l.directions[d.back]
	b.nacks.push(frame)
	if !l.media[b.medium].busy {
		l.turn(b.medium)
	}
}

// nackArrived has the sender send a frame again, or give it up.
func (l *Network) nackArrived(di int, frame uint64) {
	d := &l.directions[di]
	a := d.arq
	f := a.frames.at(frame)
	f.refs--
	switch {
	case f.queued || f.givenUp:
	case int(f.tries) < a.persist:
		f.tries++
		f.queued = true
		f.refs++
		a.repeats.push(frame)
		if !l.media[d.medium].busy {
			l.turn(d.medium)
		}
	default:
		f.givenUp = true
		c, _ := d.line.Conditions(l.now)
		l.timers.push(timer{at: max(d.lastDue, l.now+a.frameTime+c.Delay), kind: timerGivenUp, direction: int32(di), frame: frame})
	}
	a.trim()
}

// gaveUp tells the receiver that a frame will not be sent again.
func (l *Network) gaveUp(di int, frame uint64) {
	d := &l.directions[di]
	a := d.arq
	f := a.frames.at(frame)
	if f == nil || f.received {
		return
	}
	number := f.packet
	p := a.open(f)
	if p == nil {
		return
	}
	p.done = true
	d.hop.LostPackets++
	l.observe(di, p.packet, l.now, Lost)
	l.leave(d.to, p.packet, Lost)
	if a.inOrder {
		l.releasePackets(di, number)
	}
	a.trim()
}

// timer is something that the network does by itself at a moment.
type timer struct {
	at        time.Duration
	order     uint64
	frame     uint64
	direction int32
	kind      timerKind
}

type timerKind uint8

const (
	timerNACK timerKind = iota
	timerGivenUp
	timerHeld
)

// timers is a binary heap, by time and then by order of setting.
type timers struct {
	heap  []timer
	order uint64
}

func (t *timers) before(i, j int) bool {
	a, b := &t.heap[i], &t.heap[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (t *timers) push(x timer) {
	x.order = t.order
	t.order++
	t.heap = append(t.heap, x)
	for i := len(t.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !t.before(i, up) {
			return
		}
		t.heap[i], t.heap[up] = t.heap[up], t.heap[i]
		i = up
	}
}

func (t *timers) pop() timer {
	x := t.heap[0]
	last := len(t.heap) - 1
	t.heap[0] = t.heap[last]
	t.heap = t.heap[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if t.before(c, least) {
				least = c
			}
		}
		if least == i {
			return x
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
}
