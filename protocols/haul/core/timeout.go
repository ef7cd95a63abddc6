package core

import "time"

// mostDoublings bounds the pauses of a server that has heard no more than a hello: 16
// times the first one.
const mostDoublings = 4

// timeoutAt is when the next acknowledgement is overdue, 0 where none is expected.
func (c *Conn) timeoutAt() time.Duration {
	if c.amplificationLimited || c.open == 0 && !c.blocked() && c.closeSent == 0 && !c.pinged() {
		return 0
	}
	after := c.rate.timeout()
	switch {
	case c.halfOpen():
		after <<= min(c.ptoCount, mostDoublings)
	case c.ptoCount >= lostAfter && c.lastAckElicitingAt-c.lostSince > patient:
		after = max(after, probeSeldom)
	case c.ptoCount >= lostAfter:
		after = c.probePause()
	case c.open == 0 && c.blocked():
		after = max(after, 200*time.Millisecond)
	}
	return max(c.lastAckElicitingAt, c.timeoutFrom) + after
}

// probePause is the time between two probes of a link that is lost: short, so
// that its return is noticed soon, but not so short that probes fill it.
func (c *Conn) probePause() time.Duration {
	const probe = 60           // bytes
	if c.rate.bandwidth == 0 { // as slow as the way back can be, where that is known
		return min(max(probeEvery, seconds(probeShare*probe*c.peerByteTime), c.silence/8), probeSeldom)
	}
	pause := seconds(probeShare * probe / c.rate.bandwidth)
	return min(max(pause, c.rate.srtt/8, probeOften), max(probeEvery, c.rate.srtt/8))
}

// Ping asks the other end for a sign of life.
func (c *Conn) Ping() { c.ping = true }

// timeoutsCount reports whether acknowledgements can be overdue.
func (c *Conn) timeoutsCount() bool { return !c.peerSuspended || c.move.seeks }

// pinged reports whether an answer to a packet is expected although no symbol is under way.
func (c *Conn) pinged() bool { return c.lastAckEliciting > c.largestAcked }

// timedOut acts on an acknowledgement that is overdue: nothing is known of what
// is under way, so it no longer counts, and something is sent that brings news.
func (c *Conn) timedOut(now time.Duration) {
	c.ptoCount++
	c.silence = now - c.lastAckAt
	c.timeoutFrom = now
	c.stats.Timeouts++
	if c.ptoCount == lostAfter && !c.halfOpen() {
		c.lostSince = now
		c.events = append(c.events, LinkLost)
	}
	c.nextSend = min(c.nextSend, now)
	if c.halfOpen() {
		// Whether the answer to the hello has arrived, the client's next packet tells, and
		// the client repeats its hello until it has: nothing of ours is lost for sure. One
		// packet, each time after twice the pause, does not fill a link that is slow.
		c.useful, c.repairs, c.presumedLost, c.probes, c.ping = 0, 0, c.packets.end(), 1, c.open == 0
		return
	}
	if c.rate.bandwidth == 0 && c.slowWay() {
		// An acknowledgement could not be here yet, so nothing counts as lost. A small
		// packet finds out whether the other end is there.
		c.ping, c.smallProbe, c.probes = true, true, 1
		return
	}
	if c.ptoCount < lostAfter {
		// Something was lost, of one direction or the other.
		c.loss.suppose(2)
	}
	c.useful, c.repairs = 0, 0
	c.presumedLost = c.packets.end()
	c.probes = 1
	if c.ptoCount < lostAfter {
		c.probes = 2
	}
	c.smallProbe = false
	c.ping = c.open == 0
	// One probe is small: the path may have become too narrow for others.
	if c.lostLarge >= largeLost || c.ptoCount == 2 {
		c.smallFirst()
	}
}

// slowWay reports whether what is under way may have needed longer than the silence up
// to the last timeout, as far as the way back tells.
func (c *Conn) slowWay() bool {
	return seconds(c.peerByteTime*float64(c.inFlight))+c.rate.srtt > c.silence
}

// smallFirst makes the next probe a small packet.
func (c *Conn) smallFirst() {
	c.ping, c.smallProbe = true, true
	if c.ptoCount < lostAfter {
		c.probes++
	}
}
