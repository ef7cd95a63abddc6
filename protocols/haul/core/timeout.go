package core

import "time"

// mostDoublings bounds the pauses of a server that has heard no more than a hello: 16
// times the first one.
const mostDoublings = 4

// Until an acknowledgement has told the rate, a sender takes the way there to be as slow
// as the way back can be: the shortest time between two packets in a row that arrived,
// over the bytes of the second. While what is under way would need longer than the
// silence lasts, less a round trip, nothing counts as lost at a timeout, and one small
// packet goes out. A repair's airtime is then half of what follows from that time, at
// least a tenth of the round trip; probes are then also an eighth of the silence apart,
// at most probeSeldom. What timeouts let the estimate of losses suppose is taken back
// when an acknowledgement tells more.

// deadline is when the sender wants to act next, 0 for not until something happens.
func (s *sender) deadline() (at time.Duration) {
	if s.timeoutsCount() {
		at = s.timeoutAt()
	}
	if s.waiting() {
		at = earliest(at, max(s.nextSend, 1))
	}
	return at
}

// timeoutAt is when the next acknowledgement is overdue, 0 where none is expected.
func (s *sender) timeoutAt() time.Duration {
	if s.amplificationLimited || s.open == 0 && !s.blocked() && !s.closeSent && !s.pinged() {
		return 0
	}
	after := s.rate.timeout()
	switch {
	case s.halfOpen:
		after <<= min(s.ptoCount, mostDoublings)
	case s.ptoCount >= lostAfter && s.lastAckElicitingAt-s.lostSince > outagePatience:
		after = max(after, probeSeldom)
	case s.ptoCount >= lostAfter:
		after = s.probePause()
	case s.open == 0 && s.blocked():
		after = max(after, 200*time.Millisecond)
	}
	return max(s.lastAckElicitingAt, s.timeoutFrom) + after
}

// pinged reports whether an answer to a packet is expected although no symbol is under way.
func (s *sender) pinged() bool { return s.lastAckEliciting > s.largestAcked }

// timeoutsCount reports whether acknowledgements can be overdue.
func (s *sender) timeoutsCount() bool { return !s.peerSuspended || s.seeksPeer }

// timedOut acts on an acknowledgement that is overdue: nothing is known of what
// is under way, so it no longer counts, and something is sent that brings news.
func (s *sender) timedOut(now time.Duration) {
	s.ptoCount++
	s.silence = now - s.lastAckAt
	s.timeoutFrom = now
	s.stats.Timeouts++
	if s.ptoCount == lostAfter && !s.halfOpen {
		s.lostSince = now
		s.events = append(s.events, LinkLost)
	}
	s.nextSend = min(s.nextSend, now)
	if s.halfOpen {
		// Whether the answer to the hello has arrived, the client's next packet tells, and
		// the client repeats its hello until it has: nothing of ours is lost for sure. One
		// packet, each time after twice the pause, does not fill a link that is slow.
		s.useful, s.repairs, s.presumedLost, s.probes, s.ping = 0, 0, s.packets.end(), 1, s.open == 0
		return
	}
	if s.rate.bandwidth == 0 && s.slowWay() {
		// An acknowledgement could not be here yet, so nothing counts as lost. A small
		// packet finds out whether the other end is there.
		s.ping, s.smallProbe, s.probes = true, true, 1
		return
	}
	if s.ptoCount < lostAfter {
		// Something was lost, of one direction or the other.
		s.loss.suppose(2)
	}
	s.useful, s.repairs = 0, 0
	s.presumedLost = s.packets.end()
	s.probes = 1
	if s.ptoCount < lostAfter {
		s.probes = 2
	}
	s.smallProbe = false
	s.ping = s.open == 0
	// One probe is small: the path may have become too narrow for others.
	if s.lostLarge >= largeLost || s.ptoCount == 2 {
		s.smallFirst()
	}
}

// smallFirst makes the next probe a small packet.
func (s *sender) smallFirst() {
	s.ping, s.smallProbe = true, true
	if s.ptoCount < lostAfter {
		s.probes++
	}
}
