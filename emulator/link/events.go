package link

import (
	"time"

	"linktrial/emulator/channel"
)

// earliest finds the next event: the end of a transmission (medium ≥ 0) or an
// arrival (direction ≥ 0). There are a handful of media and directions, so
// that looking at each beats a heap. At the same moment arrivals come first:
// a packet that arrives when the medium becomes free takes part in the turn.
func (l *Network) earliest() (at time.Duration, mediumIndex, directionIndex int) {
	at, mediumIndex, directionIndex = channel.Forever, -1, -1
	for i := range l.directions {
		if d := &l.directions[i]; d.inFlight.n > 0 {
			if due := d.inFlight.front().due; due < at {
				at, directionIndex = due, i
			}
		}
	}
	for i := range l.media {
		if m := &l.media[i]; m.busy && m.free < at {
			at, mediumIndex, directionIndex = m.free, i, -1
		}
	}
	return at, mediumIndex, directionIndex
}

// run processes every event up to and including now.
func (l *Network) run(now time.Duration) {
	for {
		at, m, d := l.earliest()
		if at > now {
			break
		}
		l.now = at
		if d >= 0 {
			l.arrive(d)
		} else {
			l.transmitted(m)
		}
	}
	l.now = max(l.now, now)
}

// enqueue puts a packet into a radio's queue, or drops it.
func (l *Network) enqueue(at int, p packet) bool {
	i := l.next[at*len(l.nodes)+int(p.dst)]
	d, v := &l.directions[i], &l.nodes[at]
	m := &l.media[d.medium]
	if m.busy { // otherwise it goes on the air at once and needs no room
		if q := l.queue; q.Packets > 0 && v.packets+1 > q.Packets || q.Bytes > 0 && v.bytes+int(p.bytes) > q.Bytes {
			d.hop.DroppedPackets++
			if l.observer != nil {
				l.observer(Event{At: l.now, Hop: i, Handle: p.handle, Bytes: int(p.bytes), Outcome: Dropped})
			}
			return false
		}
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

// turn gives a free medium to the next radio that has a packet for it. The
// packet stays at the front of its queue until its transmission ends.
func (l *Network) turn(mi int) {
	m := &l.media[mi]
	best, bestRank := -1, 0
	for _, i := range m.directions {
		d := &l.directions[i]
		if d.waiting.n == 0 {
			continue
		}
		// Radios in cyclic order after the last transmitter; it comes last itself.
		rank := (d.from - m.transmitter - 1 + len(l.nodes)) % len(l.nodes)
		if m.transmitter < 0 {
			rank = d.from
		}
		if best < 0 || rank < bestRank ||
			rank == bestRank && d.waiting.front().order < l.directions[best].waiting.front().order {
			best, bestRank = i, rank
		}
	}
	if best < 0 {
		return
	}
	d := &l.directions[best]
	p := d.waiting.front()
	start := l.now
	if m.transmitter >= 0 && m.transmitter != d.from {
		start = max(start, m.free+l.turnaround)
	}
	air := airtime(d.nsPerByte, int(p.bytes)+l.overheadBytes)
	m.transmitter, m.busy, m.on, m.start, m.free = d.from, true, best, start, start+air

	p.lost = d.channel.Lost(start, m.free)
	d.waitingBytes -= int(p.bytes)
	l.nodes[d.from].packets--
	l.nodes[d.from].bytes -= int(p.bytes)
	d.hop.SentPackets++
	d.hop.SentBytes += int64(p.bytes)
	d.hop.Airtime += air
	d.hop.QueueDelayMax = max(d.hop.QueueDelayMax, start-p.enqueued)
	if l.observer != nil {
		e := Event{At: start, Hop: best, Handle: p.handle, Bytes: int(p.bytes)}
		if p.lost {
			e.Outcome = Lost
		}
		l.observer(e)
	}
}

// transmitted ends the transmission of a medium.
func (l *Network) transmitted(mi int) {
	m := &l.media[mi]
	d := &l.directions[m.on]
	p := *d.waiting.front()
	d.waiting.pop()
	m.busy = false
	if p.lost {
		d.hop.LostPackets++
		l.leave(d.to, p, Lost)
	} else {
		p.due = l.now + d.delay
		d.inFlight.push(p)
	}
	l.turn(mi)
}

// arrive takes a packet off the air: out of the network, or on to the next hop.
func (l *Network) arrive(i int) {
	d := &l.directions[i]
	p := *d.inFlight.front()
	d.inFlight.pop()
	d.hop.DeliveredPackets++
	d.hop.DeliveredBytes += int64(p.bytes)
	if int(p.dst) == d.to {
		l.leave(d.to, p, Delivered)
		return
	}
	if !l.enqueue(d.to, p) {
		l.leave(d.to, p, Dropped)
	}
}

func (l *Network) leave(at int, p packet, o Outcome) {
	l.inside--
	l.exits = append(l.exits, Exit{At: l.now, Node: at, Handle: p.handle, Bytes: int(p.bytes), Outcome: o})
}
