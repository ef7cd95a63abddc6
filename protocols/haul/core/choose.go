package core

import (
	"math"
	"time"
)

// asksNow reports whether the next packet asks for an acknowledgement at once.
func (c *Conn) asksNow(what content) bool {
	if c.unasked+1 >= c.askEvery() || c.packets.end() < 3 || what == aPing || c.overdue > 0 {
		return true
	}
	return what == aRepair || c.tail()
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

// tellsDelay reports whether the other end is to be told how long
// acknowledgements may wait.
func (c *Conn) tellsDelay(delay time.Duration) bool {
	return !c.rate.startup && (delay > c.toldDelay*5/4 || delay < c.toldDelay*4/5)
}

// tail reports whether nothing waits that has not been sent.
func (c *Conn) tail() bool {
	return !c.writerWaits && c.out.bytes == 0 && c.loose == nil && len(c.out.items) == 0 && !c.fills()
}

// fills reports whether there is anything new to send now.
func (c *Conn) fills() bool {
	return len(c.out.items) > 0 || c.out.head(c.sendable) != nil
}

// waiting reports whether content waits only for the time to send it.
func (c *Conn) waiting() bool {
	if c.starved {
		return false
	}
	if c.full() && c.probes == 0 {
		return false
	}
	return c.ping || c.probes > 0 && c.open > 0 || c.missing > 0 && !c.tail() || c.loose != nil || c.fills() || c.wantsRepair()
}

// full reports whether as much is under way as may be. While acknowledgements
// stay out, some more may: they may be lost where the data is not, and a radio
// that carries nothing now wastes nothing by it. It is the less the longer the
// silence lasts.
func (c *Conn) full() bool {
	if c.overdue > 8*blindRounds {
		return true // probes alone
	}
	if c.rate.bandwidth == 0 && c.overdue > 0 && c.slowWay() {
		return true // nothing says that the link carries more, and it may be slow
	}
	allowed := c.rate.window()
	if c.overdue > 0 {
		span := blindRounds * c.rate.srtt.Seconds()
		silence := c.quiet.Seconds()
		allowed += c.rate.bandwidth * span * (1 - math.Exp(-silence/span))
	}
	return float64(c.inFlight) >= allowed
}

// choose decides what the next packet carries.
func (c *Conn) choose(now time.Duration) (content, uint64) {
	if c.starved {
		return nothing, 0
	}
	if now < c.nextSend {
		c.held = c.held || c.waiting()
		return nothing, 0
	}
	c.woken(now)
	switch {
	case c.full() && c.probes == 0:
		return nothing, 0
	case c.overdue >= lostAfter && c.full() && (c.rate.packetTime() > c.probePause()/8 || c.stats.LargeArrived == 0 || c.overdue%2 == 0), c.smallProbe && c.probes > 0:
		return aPing, 0 // small, in case that it is the size that does not get through
	}
	fills := c.fills()
	if c.missing > 0 && (!c.tail() || c.config.NoCoding) {
		if id, ok := c.missedSymbol(); ok {
			return aSymbol, id
		}
	}
	if c.loose != nil {
		return aLoose, 0
	}
	if fills {
		if what, id := c.newContent(); what != nothing {
			return what, id
		}
	}
	if c.wantsRepair() {
		if c.missing > 0 && (c.repairs == 0 || c.missing == c.open) {
			if id, ok := c.missedSymbol(); ok {
				return aSymbol, id
			}
		}
		return aRepair, 0
	}
	if c.ping || c.probes > 0 && c.open > 0 {
		return aPing, 0
	}
	return nothing, 0
}

// newContent makes a symbol, or a loose body, of what is first in the queue.
func (c *Conn) newContent() (content, uint64) {
	m := c.out.head(c.sendable)
	if m != nil && !m.Class.Reliable() && len(c.out.items) == 0 {
		data, parts, _ := c.fill(c.symbolSize(c.packet), false)
		if data != nil {
			c.loose = data
			for _, p := range parts {
				if p.of.whole {
					c.finished(p.of, Sent)
				}
			}
			return aLoose, 0
		}
	}
	if c.fresh() {
		c.open++
		c.missing++
		return aSymbol, c.symbols.end() - 1
	}
	return nothing, 0
}

// missedSymbol finds the first symbol that is known to be lost.
func (c *Conn) missedSymbol() (uint64, bool) {
	for id := max(c.lookFrom, c.symbols.first); id < c.symbols.end(); id++ {
		if c.symbols.at(id).state == missed {
			c.lookFrom = id
			return id, true
		}
	}
	return 0, false
}

// wantsRepair decides whether one more packet ahead of any news is worth its
// airtime: it is while what it saves, a round trip times the probability that
// what is under way does not suffice, is more.
func (c *Conn) wantsRepair() bool {
	if c.open == 0 || !c.tail() && (!c.blocked() || c.probes == 0) {
		return false
	}
	need := c.open - c.heldRank
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
	if c.half() && c.overdue > 0 {
		return false
	}
	fail := shortfall(c.useful, need, share, c.loss.burst())
	wait := max(c.rate.srtt, time.Millisecond)
	cost := c.rate.packetTime()
	if cost == 0 {
		cost = max(wait/10, seconds(c.perByte*c.rate.size)/2)
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
	return c.out.count > 0 && !c.fills()
}
