package link

import (
	"time"

	"linktrial/emulator/channel"
)

// ready reports whether a direction has something to put on the air.
func (d *direction) ready() bool {
	return d.unit.loaded || d.nacks.n > 0 || d.frames > 0 || d.waiting.n > 0 || d.arq != nil && d.arq.repeats.n > 0
}

// order ranks the directions of one radio: what is under way or urgent, then
// packets by their arrival.
func (d *direction) order() uint64 {
	if d.unit.loaded || d.nacks.n > 0 || d.frames > 0 || d.arq != nil && d.arq.repeats.n > 0 {
		return 0
	}
	return d.waiting.front().order + 1
}

// nackNext reports whether it is a NACK's turn: always, but not twice while
// something else waits.
func (d *direction) nackNext() bool {
	return d.nacks.n > 0 && (d.unit.kind != unitNACK || d.frames == 0 && d.waiting.n == 0 && d.arq.repeats.n == 0)
}

// peek is the bytes on the air of the direction's next transmission.
func (d *direction) peek() int {
	switch {
	case d.unit.loaded:
		return d.unit.bytes
	case d.nackNext():
		return d.nackBytes
	case d.arq != nil && d.arq.repeats.n > 0:
		return int(d.arq.frames.at(*d.arq.repeats.front()).bytes)
	case d.frames > 0 && d.sent < d.frames-1:
		return d.frameSize
	case d.frames > 0:
		return d.lastFrame
	}
	count, each, last := d.line.Units(int(d.waiting.front().bytes))
	if count > 1 {
		return each
	}
	return last
}

// turn gives a free medium to whom it belongs to next, or finds out when to
// look again.
func (l *Network) turn(mi int) {
	m := &l.media[mi]
	m.wake = channel.Forever
	switch {
	case l.underWay(mi):
	case l.csma != nil:
		l.contend(mi)
	default:
		l.grant(mi)
	}
}

// rate is the rate at which a direction could start; where there is none now,
// the medium is looked at again when there may be.
func (l *Network) rate(m *medium, d *direction, at time.Duration) float64 {
	c, until := d.line.Conditions(at)
	if c.Rate == 0 {
		m.wake = min(m.wake, until)
	}
	return c.Rate
}

// underWay continues with the frames of the packet that has the turn.
func (l *Network) underWay(mi int) bool {
	m := &l.media[mi]
	if l.tdma != nil || len(m.on) != 1 {
		return false
	}
	d := &l.directions[m.on[0]]
	if d.frames == 0 || l.rate(m, d, l.now) == 0 {
		return false
	}
	l.transmit(mi, l.now)
	return true
}

// grant picks one radio: the owner of the slot, or the next in turn.
func (l *Network) grant(mi int) {
	m := &l.media[mi]
	best, bestRank, bestStart := -1, 0, time.Duration(0)
	for _, i := range m.directions {
		d := &l.directions[i]
		if !d.ready() {
			continue
		}
		start := l.now
		if m.transmitter >= 0 && m.transmitter != d.from {
			start = max(start, m.free+l.turnaround)
		}
		r := l.rate(m, d, start)
		if r == 0 {
			continue
		}
		if l.tdma != nil {
			if at := l.tdma.fit(d.from, start, d.line.Air(d.peek(), r)); at > l.now {
				m.wake = min(m.wake, at) // others may come before
				continue
			}
			start = l.now
		}
		// Radios in cyclic order after the last transmitter; it comes last itself.
		rank := (d.from - m.transmitter - 1 + len(l.nodes)) % len(l.nodes)
		if m.transmitter < 0 {
			rank = d.from
		}
		if best < 0 || rank < bestRank || rank == bestRank && d.order() < l.directions[best].order() {
			best, bestRank, bestStart = i, rank, start
		}
	}
	if best >= 0 {
		m.on = append(m.on[:0], best)
		l.transmit(mi, bestStart)
	}
}

// contend lets radios count down (radio.CSMA).
func (l *Network) contend(mi int) {
	m := &l.media[mi]
	m.on = m.on[:0]
	first := channel.Forever
	for from := range l.nodes {
		i := l.candidate(m, from)
		if i < 0 {
			continue
		}
		first = min(first, l.nodes[from].backoff.count(l.csma, l.seed, uint64(from), m.free+l.gap, l.now))
	}
	if first > l.now {
		m.wake = min(m.wake, first)
		return
	}
	for from := range l.nodes {
		i := l.candidate(m, from)
		if i < 0 {
			continue
		}
		if b := &l.nodes[from].backoff; b.target <= l.now {
			m.on = append(m.on, i)
		} else {
			b.freeze(l.csma, l.now)
		}
	}
	l.transmit(mi, l.now)
}

// candidate is the direction that a radio would use next on the medium, or -1.
func (l *Network) candidate(m *medium, from int) int {
	best := -1
	for _, i := range m.directions {
		d := &l.directions[i]
		if d.from != from || !d.ready() || l.rate(m, d, l.now) == 0 {
			continue
		}
		// A transmission that collided is tried again before anything else.
		if best < 0 || d.unit.loaded || !l.directions[best].unit.loaded && d.order() < l.directions[best].order() {
			best = i
		}
	}
	return best
}

// transmit puts the next transmissions of the directions in m.on on the air;
// several collide.
func (l *Network) transmit(mi int, start time.Duration) {
	m := &l.media[mi]
	m.busy, m.start, m.free = true, start, start
	for _, i := range m.on {
		d := &l.directions[i]
		if !d.unit.loaded {
			l.load(i, start)
		}
		c, _ := d.line.Conditions(start)
		d.onAir, d.start, d.delay = true, start, c.Delay
		d.end = start + d.line.Air(d.unit.bytes, c.Rate)
		m.free = max(m.free, d.end)
		m.transmitter = d.from
		if len(m.on) > 1 {
			d.unit.lost = true
			d.hop.Collisions++
			continue
		}
		d.unit.lost = d.line.Process.Lost(start, d.end)
		if d.unit.kind == unitPacket && d.frames == 1 && d.arq == nil {
			l.fateKnown(i)
		}
	}
}

// fateKnown tells the observer of a packet that is a single transmission.
func (l *Network) fateKnown(i int) {
	d := &l.directions[i]
	o := Delivered
	if d.unit.lost {
		o = Lost
	}
	l.observe(i, *d.waiting.front(), d.start, o)
}

// load takes a direction's next transmission from its queues.
func (l *Network) load(i int, start time.Duration) {
	d := &l.directions[i]
	u := unit{loaded: true, bytes: d.peek()}
	switch {
	case d.nackNext():
		u.kind, u.frame = unitNACK, *d.nacks.front()
		d.nacks.pop()
		d.hop.NACKs++
	case d.arq != nil && d.arq.repeats.n > 0:
		u.kind, u.frame = unitFrame, *d.arq.repeats.front()
		d.arq.repeats.pop()
		d.arq.frames.at(u.frame).queued = false
		d.hop.FramesSent++
		d.hop.FramesRetransmitted++
	default:
		if d.frames == 0 {
			l.beginPacket(i, start)
		}
		if d.frameSize > 0 {
			d.hop.FramesSent++
		}
		if d.arq != nil {
			u.kind, u.frame = unitFrame, d.arq.frames.end()
			d.arq.frames.push(arqFrame{packet: d.arq.packets.end() - 1, bytes: int32(u.bytes), refs: 1})
			if d.sent++; d.sent == d.frames {
				d.sent, d.frames = 0, 0
			}
		}
	}
	d.unit = u
}

// beginPacket takes a direction's next packet out of its radio's queue. Without
// ARQ it stays at the front until it is on its way.
func (l *Network) beginPacket(i int, start time.Duration) {
	d := &l.directions[i]
	p := d.waiting.front()
	p.started = start
	d.sent = 0
	d.frames, _, d.lastFrame = d.line.Units(int(p.bytes))
	d.waitingBytes -= int(p.bytes)
	v := &l.nodes[d.from]
	v.bytes -= int(p.bytes)
	if v.packets--; v.packets == 0 {
		v.red.empty = start
	}
	d.hop.SentPackets++
	d.hop.SentBytes += int64(p.bytes)
	d.hop.QueueDelayMax = max(d.hop.QueueDelayMax, start-p.enqueued)
	if d.arq != nil {
		d.arq.packets.push(arqPacket{packet: *p, missing: int32(d.frames)})
		d.waiting.pop()
	}
}

// transmitted ends the transmissions of a medium.
func (l *Network) transmitted(mi int) {
	m := &l.media[mi]
	m.carried += m.free - m.start
	m.busy = false
	collided := len(m.on) > 1
	for _, i := range m.on {
		d := &l.directions[i]
		d.onAir = false
		d.hop.Airtime += d.end - d.start
		if l.csma != nil && l.nodes[d.from].backoff.sent(l.csma, collided) && collided {
			continue // it is tried again
		}
		if collided && d.unit.kind == unitPacket && d.frames == 1 {
			l.fateKnown(i)
		}
		l.unload(i)
	}
	if collided {
		m.on = m.on[:0]
	}
	l.turn(mi)
}

// unload sends what was transmitted on its way.
func (l *Network) unload(i int) {
	d := &l.directions[i]
	u := d.unit
	d.unit.loaded = false
	d.lastDue = max(d.lastDue, d.end+d.delay)
	switch u.kind {
	case unitNACK:
		back := &l.directions[d.back]
		l.timers.push(timer{at: l.now + back.arq.again, kind: timerNACK, direction: int32(d.back), frame: u.frame})
		if u.lost {
			back.arq.frames.at(u.frame).refs--
			back.arq.trim()
			return
		}
		d.inFlight.push(flight{due: d.lastDue, kind: unitNACK, frame: u.frame})
	case unitFrame:
		if u.lost {
			d.hop.FramesLost++
		}
		d.inFlight.push(flight{due: d.lastDue, kind: unitFrame, frame: u.frame, lost: u.lost})
	default:
		l.unloadPacket(i, u)
	}
}

// unloadPacket counts a packet, or a frame of one, that will not be sent again.
func (l *Network) unloadPacket(i int, u unit) {
	d := &l.directions[i]
	p := d.waiting.front()
	if u.lost {
		p.lost = true
		if d.frameSize > 0 {
			d.hop.FramesLost++
		}
	}
	if d.sent++; d.sent < d.frames {
		return
	}
	done, single := *p, d.frames == 1
	d.sent, d.frames = 0, 0
	d.waiting.pop()
	o := Delivered
	if done.lost {
		o = Lost
		d.hop.LostPackets++
		l.leave(d.to, done, Lost)
	} else {
		d.inFlight.push(flight{due: d.lastDue, kind: unitPacket, p: done})
	}
	if !single {
		l.observe(i, done, done.started, o)
	}
}
