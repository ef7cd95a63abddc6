package core

import (
	"time"

	"linktrial/protocols/haul/wire"
)

// handleAck takes in an acknowledgement.
func (c *Conn) handleAck(now time.Duration, a *wire.Ack) {
	if a.Largest >= c.packets.end() || a.Next > c.symbols.end() {
		c.stats.Dropped.Unexpected++ // of packets that were never sent
		return
	}
	c.stats.AcksReceived++
	c.peer.credit = max(c.peer.credit, a.Credit)
	newest := a.Largest+1 > c.largestAcked
	c.arrivals(a)
	if newest {
		c.advance(now, a)
	}
	c.peerRank = int(min(a.Rank, 1<<20))
	c.timeoutFrom, c.lastAckAt, c.silence = now, now, 0
	if c.ptoCount >= lostAfter {
		c.events = append(c.events, LinkBack)
	}
	c.ptoCount, c.probes, c.smallProbe = 0, 0, false
}

// arrivals settles the symbols that the acknowledgement names.
func (c *Conn) arrivals(a *wire.Ack) {
	for id := c.symbols.first; id < a.Next; id++ {
		c.settleSymbol(id, arrived)
	}
	id := a.Next
	for _, r := range a.Ranges {
		id += r.Missing
		for range r.Arrived {
			if id >= c.symbols.end() {
				return
			}
			c.settleSymbol(id, arrived)
			id++
		}
	}
}

// advance takes in that packets up to a new one have arrived or are lost.
func (c *Conn) advance(now time.Duration, a *wire.Ack) {
	total := a.Largest + 1 - c.largestAcked
	got := min(a.Received-min(a.Received, c.packetsAcked), total)
	c.loss.known()
	c.loss.observe(total, total-got, a.Bursts-min(a.Bursts, c.burstsAcked))
	c.stats.PacketsLost += total - got
	if p := c.packets.at(a.Largest); p != nil {
		if took := now - p.at - time.Duration(min(a.Delay, 1<<40))*time.Microsecond; took > 0 {
			c.rate.roundTrip(took)
		}
		if p.large {
			c.lostLarge, c.smallArrived = 0, 0
			c.stats.LargeArrived++
		} else {
			c.smallArrived++
		}
		c.rate.arrived(now, a.At, point{number: a.Largest, sent: p.at, bytes: p.bytes, got: a.Received}, a.CE)
	}
	for n := max(c.largestAcked, c.packets.first); n <= a.Largest; n++ {
		p := c.packets.at(n)
		if p.ackEliciting {
			c.inFlight -= int(p.size)
		}
		if p.useful && n >= c.presumedLost {
			c.useful--
			if p.repair {
				c.repairs--
			}
		}
	}
	c.largestAcked, c.packetsAcked, c.burstsAcked = a.Largest+1, a.Received, a.Bursts
	c.missedUpTo(a.Largest)
	if c.lostLarge >= largeLost && c.smallArrived >= 2 {
		c.shrink(c.packet * 3 / 4)
	}
}

// missedUpTo declares lost what was sent so long before an arrived packet that
// it would have arrived as well.
func (c *Conn) missedUpTo(largest uint64) {
	for c.packets.len() > 0 && c.packets.first+reordering <= largest {
		p := *c.packets.at(c.packets.first)
		number := c.packets.first
		c.packets.pop()
		if p.symbol == 0 {
			if p.repair {
				c.repairUnheard(&p)
			}
			continue
		}
		s := c.symbols.at(p.symbol - 1)
		if s == nil || s.state != flying || s.last != number {
			if s == nil || s.last == number {
				c.sizeSeen(&p, false)
			}
			continue
		}
		c.sizeSeen(&p, true)
		// It may have been given up, because packets have become smaller; what s
		// points to is then no symbol any more.
		if s = c.symbols.at(p.symbol - 1); s == nil || s.state != flying {
			continue
		}
		s.state = missed
		c.missing++
		c.firstMissed = min(c.firstMissed, p.symbol-1)
		if p.large {
			c.lostLarge++
		}
		if size := int(p.size) - headers; s.sends >= largeLost && size > MinPacket && size <= c.packet {
			// It never gets through although others do: too large for the path,
			// even where it is not as large as packets may be.
			c.shrink(size * 3 / 4)
		}
	}
}
