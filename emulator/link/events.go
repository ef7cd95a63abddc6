package link

import (
	"time"

	"linktrial/emulator/channel"
)

// what happens next
type eventKind uint8

const (
	eventArrival eventKind = iota // of a direction
	eventTimer
	eventMedium // a transmission ends, or a radio may send now
)

// earliest finds the next event. There are a handful of media and directions,
// so that looking at each beats a heap. At the same moment arrivals come
// first: a packet that arrives when the medium becomes free takes part in the
// turn.
func (l *Network) earliest() (at time.Duration, kind eventKind, index int) {
	at = channel.Forever
	for i := range l.directions {
		if d := &l.directions[i]; d.inFlight.n > 0 {
			if due := d.inFlight.front().due; due < at {
				at, kind, index = due, eventArrival, i
			}
		}
	}
	if h := l.timers.heap; len(h) > 0 && h[0].at < at {
		at, kind = h[0].at, eventTimer
	}
	for i := range l.media {
		m := &l.media[i]
		due := m.wake
		if m.busy {
			due = m.free
		}
		if due < at {
			at, kind, index = due, eventMedium, i
		}
	}
	return at, kind, index
}

// run processes every event up to and including now.
func (l *Network) run(now time.Duration) {
	for {
		at, kind, i := l.earliest()
		if at > now {
			break
		}
		l.now = at
		switch {
		case kind == eventArrival:
			l.arrive(i)
		case kind == eventTimer:
			l.expire(l.timers.pop())
		case l.media[i].busy:
			l.transmitted(i)
		default:
			l.turn(i)
		}
	}
	l.now = max(l.now, now)
}

func (l *Network) expire(t timer) {
	switch t.kind {
	case timerNACK:
		l.nackDue(int(t.direction), t.frame)
	case timerGivenUp:
		l.gaveUp(int(t.direction), t.frame)
	case timerHeld:
		l.letGo(int(t.direction), t.frame)
	}
}

// enqueue puts a packet into a radio's queue, or drops it.
func (l *Network) enqueue(at int, p packet) bool {
	i := l.next[at*len(l.nodes)+int(p.dst)]
	d, v := &l.directions[i], &l.nodes[at]
	m := &l.media[d.medium]
	if !l.admit(at, d, m, &p) {
		d.hop.DroppedPackets++
		l.observe(i, p, l.now, Dropped)
		return false
	}
	p.enqueued, p.order = l.now, l.order
	l.order++
	d.waiting.push(p)
	d.waitingBytes += int(p.bytes)
	v.packets++
	v.bytes += int(p.bytes)
	if !m.busy {
		l.turn(d.medium)
	}
	d.hop.MaxQueueBytes = max(d.hop.MaxQueueBytes, int64(d.waitingBytes))
	return true
}

// admit decides whether a radio's queue takes a packet, and marks it.
func (l *Network) admit(at int, d *direction, m *medium, p *packet) bool {
	v, q := &l.nodes[at], &l.queue
	// A packet that is sent at once needs no room in the queue.
	waits := m.busy || l.tdma != nil || l.csma != nil || d.waiting.n > 0
	if !waits {
		c, _ := d.line.Conditions(l.now)
		waits = c.Rate == 0
	}
	full := waits && (q.Packets > 0 && v.packets+1 > q.Packets || q.Bytes > 0 && v.bytes+int(p.bytes) > q.Bytes)
	if q.RED == nil {
		return !full
	}
	verdict := v.red.arrival(q.RED, l.seed, uint64(at), l.now, v.bytes, v.packet, p.capable)
	switch {
	case full:
		return false
	case verdict == discard:
		d.hop.EarlyDroppedPackets++
		return false
	case verdict == mark:
		d.hop.MarkedPackets++
		p.marked = true
	}
	return true
}

// arrive takes a transmission off the air.
func (l *Network) arrive(i int) {
	f := *l.directions[i].inFlight.front()
	l.directions[i].inFlight.pop()
	switch f.kind {
	case unitPacket:
		l.delivered(i, f.p)
	case unitFrame:
		l.frameArrived(i, f.frame, f.lost)
	default:
		l.nackArrived(l.directions[i].back, f.frame)
	}
}

// delivered hands a packet that has come over a hop out of the network, or on to the next.
func (l *Network) delivered(i int, p packet) {
	d := &l.directions[i]
	d.hop.DeliveredPackets++
	d.hop.DeliveredBytes += int64(p.bytes)
	if int(p.dst) == d.to {
		l.arrived(i, p)
		return
	}
	to := d.to
	if !l.enqueue(to, p) {
		l.leave(to, p, Dropped)
	}
}

func (l *Network) leave(at int, p packet, o Outcome) {
	l.inside--
	l.exits = append(l.exits, Exit{At: l.now, Node: at, Handle: p.handle, Bytes: int(p.bytes), Outcome: o, Marked: p.marked})
}

func (l *Network) observe(hop int, p packet, at time.Duration, o Outcome) {
	if l.observer != nil {
		l.observer(Event{At: at, Hop: hop, Handle: p.handle, Bytes: int(p.bytes), Outcome: o, Marked: p.marked})
	}
}
