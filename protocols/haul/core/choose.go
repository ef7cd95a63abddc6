package core

import (
	"math"
	"time"
)

// asksNow reports whether the next packet asks for an acknowledgement at once.
func (c *Conn) asksNow(what content) bool {
	if c.sinceAckRequest+1 >= c.askEvery() || c.packets.end() < 3 || what == contentPing || c.ptoCount > 0 {
		return true
	}
	return what == contentRepair || c.nothingQueued()
}

// askEvery is the number of packets that one acknowledgement stands for: so
// many as go out in most of a round trip, but not so few that acknowledgements
// need much of the airtime, each of which a radio may send in a frame of its
// own. Where acknowledgements are lost, they are asked for more often.
func (c *Conn) askEvery() int {
	t := c.rate.packetTime()
	if t == 0 || c.rate.startup {
		return 2
	}
	arrive := 1 - min(c.loss.share(), 0.5)
	return int(arrive * min(max(0.75*float64(c.rate.srtt)/float64(t), 8), 256))
}

// ackPatience is after how long the other end acknowledges what nobody asked for.
func (c *Conn) ackPatience() time.Duration {
	return max(c.rate.srtt/2, 2*time.Duration(c.askEvery())*c.rate.packetTime(), time.Millisecond)
}

// requestsDelay reports whether the other end is to be told how long
// acknowledgements may wait.
func (c *Conn) requestsDelay(delay time.Duration) bool {
	return !c.rate.startup && (delay > c.requestedDelay*5/4 || delay < c.requestedDelay*4/5)
}

// nothingQueued reports whether nothing waits that has not been sent.
func (c *Conn) nothingQueued() bool {
	return !c.writerWaits && c.out.bytes == 0 && c.unreliable == nil && len(c.out.items) == 0 && !c.canFill()
}

// canFill reports whether there is anything new to send now.
func (c *Conn) canFill() bool {
	return len(c.out.items) > 0 || c.out.head(c.sendable) != nil
}

// waiting reports whether content waits only for the time to send it.
func (c *Conn) waiting() bool {
	if c.amplificationLimited {
		return false
	}
	if c.windowFull() && c.probes == 0 {
		return false
	}
	return c.ping || c.probes > 0 && c.open > 0 || c.missing > 0 && !c.nothingQueued() || c.unreliable != nil || c.canFill() || c.wantsRepair()
}

// windowFull reports whether as much is under way as may be. While acknowledgements
// stay out, some more may: they may be lost where the data is not, and a radio
// that carries nothing now wastes nothing by it. It is the less the longer the
// silence lasts.
func (c *Conn) windowFull() bool {
	if c.ptoCount > 8*blindRounds {
		return true // probes alone
	}
	if c.rate.bandwidth == 0 && c.ptoCount > 0 && c.slowWay() {
		return true // nothing says that the link carries more, and it may be slow
	}
	allowed := c.rate.window()
	if c.ptoCount > 0 {
		span := blindRounds * c.rate.srtt.Seconds()
		silence := c.silence.Seconds()
		allowed += c.rate.bandwidth * span * (1 - math.Exp(-silence/span))
	}
	return float64(c.inFlight) >= allowed
}

// choose decides what the next packet carries.
func (c *Conn) choose(now time.Duration) (content, uint64) {
	if c.amplificationLimited {
		return contentNone, 0
	}
	if now < c.nextSend {
		c.pacingHeld = c.pacingHeld || c.waiting()
		return contentNone, 0
	}
	c.observeWakeUp(now)
	switch {
	case c.windowFull() && c.probes == 0:
		return contentNone, 0
	case c.ptoCount >= lostAfter && c.windowFull() && (c.rate.packetTime() > c.probePause()/8 || c.stats.LargeArrived == 0 || c.ptoCount%2 == 0), c.smallProbe && c.probes > 0:
		return contentPing, 0 // small, in case that it is the size that does not get through
	}
	fills := c.canFill()
	if c.missing > 0 && (!c.nothingQueued() || c.config.NoCoding) {
		if id, ok := c.missedSymbol(); ok {
			return contentSymbol, id
		}
	}
	if c.unreliable != nil {
		return contentUnreliable, 0
	}
	if fills {
		if what, id := c.newContent(); what != contentNone {
			return what, id
		}
	}
	if c.wantsRepair() {
		if c.missing > 0 && (c.repairs == 0 || c.missing == c.open) {
			if id, ok := c.missedSymbol(); ok {
				return contentSymbol, id
			}
		}
		return contentRepair, 0
	}
	if c.ping || c.probes > 0 && c.open > 0 {
		return contentPing, 0
	}
	return contentNone, 0
}

// newContent makes a symbol, or an unreliable body, of what is first in the queue.
func (c *Conn) newContent() (content, uint64) {
	m := c.out.head(c.sendable)
	if m != nil && !m.Class.Reliable() && len(c.out.items) == 0 {
		data, parts, _ := c.fill(c.symbolSize(c.packet), false)
		if data != nil {
			c.unreliable = data
			for _, p := range parts {
				if p.of.whole {
					c.finishMessage(p.of, Sent)
				}
			}
			return contentUnreliable, 0
		}
	}
	if c.newSymbol() {
		c.open++
		c.missing++
		return contentSymbol, c.symbols.end() - 1
	}
	return contentNone, 0
}

// missedSymbol finds the first symbol that is known to be lost.
func (c *Conn) missedSymbol() (uint64, bool) {
	for id := max(c.firstMissed, c.symbols.first); id < c.symbols.end(); id++ {
		if c.symbols.at(id).state == missed {
			c.firstMissed = id
			return id, true
		}
	}
	return 0, false
}

// wantsRepair decides whether one more packet ahead of any news is worth its
// airtime: it is while what it saves, a round trip times the probability that
// what is under way does not suffice, is more.
func (c *Conn) wantsRepair() bool {
	if c.open == 0 || !c.nothingQueued() && (!c.blocked() || c.probes == 0) {
		return false
	}
	need := c.open - c.peerRank
	if need <= 0 {
		need = 1
	}
	share := c.loss.share()
	if c.config.NoCoding {
		return c.missing > 0
	}
	if c.useful >= need && c.useful > 3*need+12 {
		return false
	}
	if c.useful < need {
		return true
	}
	if c.halfOpen() && c.ptoCount > 0 {
		return false
	}
	fail := shortfall(c.useful, need, share, c.loss.burst())
	wait := max(c.rate.srtt, time.Millisecond)
	cost := c.rate.packetTime()
	if cost == 0 {
		cost = max(wait/10, seconds(c.peerByteTime*c.rate.size)/2)
	}
	if last := c.symbols.at(c.symbols.end() - 1); last != nil && c.symbols.len() == 1 {
		cost = time.Duration(float64(cost) * float64(len(last.data)+64) / c.rate.size)
	}
	// What goes beyond the number that arrives on average is the less worth it the more it is.
	beyond := max(float64(c.useful)-float64(need)/(1-share), 0)
	weight := tailWeight + 2*beyond*float64(cost)/float64(wait)
	return fail*float64(wait) > weight*float64(cost)
}

// blocked reports whether the other end's buffer keeps new data back.
func (c *Conn) blocked() bool {
	return c.out.count > 0 && !c.canFill()
}
