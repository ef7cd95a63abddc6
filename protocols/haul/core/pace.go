package core

import (
	"math"
	"time"
)

// askEvery is the number of packets that one acknowledgement stands for: so
// many as go out in most of a round trip, but not so few that acknowledgements
// need much of the airtime, each of which a radio may send in a frame of its
// own. Where acknowledgements are lost, they are asked for more often.
func (s *sender) askEvery() int {
	t := s.rate.packetTime()
	if t == 0 || s.rate.startup {
		return 2
	}
	arrive := 1 - min(s.loss.share(), 0.5)
	return int(arrive * min(max(0.75*float64(s.rate.srtt)/float64(t), 8), 256))
}

// ackPatience is after how long the other end acknowledges what nobody asked for.
func (s *sender) ackPatience() time.Duration {
	return max(s.rate.srtt/2, 2*time.Duration(s.askEvery())*s.rate.packetTime(), time.Millisecond)
}

// requestsDelay reports whether the other end is to be told how long
// acknowledgements may wait.
func (s *sender) requestsDelay(delay time.Duration) bool {
	return !s.rate.startup && (delay > s.requestedDelay*5/4 || delay < s.requestedDelay*4/5)
}

// windowFull reports whether as much is under way as may be. While acknowledgements
// stay out, some more may: they may be lost where the data is not, and a radio
// that carries nothing now wastes nothing by it. It is the less the longer the
// silence lasts.
func (s *sender) windowFull() bool {
	if s.ptoCount > 8*blindRounds {
		return true // probes alone
	}
	if s.rate.bandwidth == 0 && s.ptoCount > 0 && s.slowWay() {
		return true // nothing says that the link carries more, and it may be slow
	}
	allowed := s.rate.window()
	if s.ptoCount > 0 {
		span := blindRounds * s.rate.srtt.Seconds()
		silence := s.silence.Seconds()
		allowed += s.rate.bandwidth * span * (1 - math.Exp(-silence/span))
	}
	return float64(s.inFlight) >= allowed
}

// probePause is the time between two probes of a link that is lost: short, so
// that its return is noticed soon, but not so short that probes fill it.
func (s *sender) probePause() time.Duration {
	const probe = 60           // bytes
	if s.rate.bandwidth == 0 { // as slow as the way back can be, where that is known
		return min(max(probeEvery, seconds(probeShare*probe*s.peerByteTime), s.silence/8), probeSeldom)
	}
	pause := seconds(probeShare * probe / s.rate.bandwidth)
	return min(max(pause, s.rate.srtt/8, probeOften), max(probeEvery, s.rate.srtt/8))
}

// slowWay reports whether what is under way may have needed longer than the silence up
// to the last timeout, as far as the way back tells.
func (s *sender) slowWay() bool {
	return seconds(s.peerByteTime*float64(s.inFlight))+s.rate.srtt > s.silence
}

// observeWakeUp notes that a packet which waited for nextSend may go out. A busy node wakes its
// programs late, and the radio's queue has shrunk meanwhile by what they did not send.
func (s *sender) observeWakeUp(now time.Duration) {
	if s.pacingHeld {
		s.pacingHeld = false
		s.wakeLateness = max(now-s.nextSend, s.wakeLateness-s.wakeLateness/16)
	}
}

// burst is the time that the pacing may be behind and make up for at once: the depth of
// a bucket of tokens that follows from how late the node wakes this program. After a
// longer time the queue has run empty, and what it did not carry then is lost.
func (s *sender) burst() time.Duration {
	return max(burstQuantum, s.rate.packetTime()/4, min(s.wakeLateness, mostLate))
}
