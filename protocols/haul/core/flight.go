package core

import (
	"math"
	"time"

	"linktrial/protocols/haul/wire"
)

// Figures of sending.
const (
	reordering    = 3                      // packets that may overtake another before it counts as lost
	probeEvery    = 180 * time.Millisecond // longest pause between two probes of a link that is lost
	probeOften    = 20 * time.Millisecond  // shortest
	blindRounds   = 8                      // round trips' worth of data beyond the window while nothing is heard
	probeShare    = 32                     // and so many times as long as the link needs for one
	patient       = 15 * time.Minute       // so long; then less often
	probeSeldom   = 5 * time.Second
	lostAfter     = 3    // timeouts in a row that make a link lost
	tailWeight    = 0.15 // of a packet's airtime against a round trip saved
	largeLost     = 20   // full-size packets lost in a row, while small ones arrive: the path has become narrower
	requestRoom   = 6    // bytes
	requestCopies = 4
	burstQuantum  = time.Millisecond
	maxQuantum    = 64 // packets
)

// flight is what an end knows of the packets that it has sent.
type flight struct {
	packets   ring[sentPacket] // from the oldest that may still be told to be lost
	largest   uint64           // highest number that is known to have arrived, plus one
	received  uint64           // how many are known to have arrived
	bursts    uint64
	bytes     uint64 // IP packets' bytes sent so far
	inFlight  int    // bytes beyond largest
	useful    int    // packets beyond largest that can still help
	repairs   int    // of these, repairs
	asking    uint64 // number of the last packet that will be acknowledged, plus one
	presumed  uint64 // packets below it are presumed to be lost
	nextSend  time.Duration
	ping      bool
	probes    int // packets that may be sent although the window is full
	overdue   int // timeouts in a row
	lostSince time.Duration
	lastAsked time.Duration // when a packet was sent last that will be acknowledged
	lastAck   time.Duration // or timeout
	lastNews  time.Duration // last acknowledgement
	quiet     time.Duration // since then, at the last timeout
	unasked   int           // packets since acknowledgements were asked for last
	asked     time.Duration
	toldDelay time.Duration // what the other end knows of ackPatience
	tells     int

	lostLarge, smallArrived int
	smallProbe              bool // the next probe is small
}

// sentPacket is one packet that was sent.
type sentPacket struct {
	at     time.Duration
	bytes  uint64 // IP packets' bytes sent up to it, with it
	symbol uint64 // number plus one; 0: none
	size   int32
	asks   bool // will be acknowledged
	useful bool // carries a symbol or a repair
	repair bool
	large  bool
}

// content is what a packet shall carry.
type content uint8

const (
	nothing content = iota
	aPing
	aSymbol
	aRepair
	aLoose
)

// Transmit writes the next packet that is to be sent now into buf, which holds
// at least a packet, and returns its length; 0: none now. It is called until
// it returns 0: after Receive, Tick, and whenever the application did something.
func (c *Conn) Transmit(now time.Duration, buf []byte) int {
	now = c.clock.read(now)
	switch {
	case c.state == connecting:
		return c.hello(now, buf)
	case c.shake.owed:
		return c.answer(buf)
	case c.state == closed:
		return c.farewell(now, buf)
	case c.suspended:
		return 0
	case c.notices > 0:
		c.notices--
		if c.notices == 0 {
			c.suspended = true
		}
		return c.seal(now, buf, wire.AppendSuspend(c.begin(buf, false)), sentPacket{})
	case c.closeDue(now):
		return c.seal(now, buf, wire.AppendClose(c.begin(buf, true), c.closeFrame()), sentPacket{asks: true})
	}
	what, id := c.choose(now)
	acknowledge := c.ackDue(now)
	if what == nothing && !acknowledge {
		return 0
	}
	return c.compose(now, buf, what, id, acknowledge)
}

// begin writes the header of the next packet; its body follows.
func (c *Conn) begin(buf []byte, asks bool) []byte {
	return wire.AppendData(buf[:0], c.peer.id, c.packets.end(), asks)
}

// compose writes a packet with what has been chosen.
func (c *Conn) compose(now time.Duration, buf []byte, what content, id uint64, acknowledge bool) int {
	asks := what != nothing && c.asksNow(now, what)
	b := c.begin(buf, asks)
	limit := c.packet - c.keys.Overhead()
	p := sentPacket{asks: what != nothing}
	var payload []byte
	var head [64]byte
	h := head[:0]
	switch what {
	case aPing:
		h = wire.AppendPing(h)
	case aSymbol:
		h, payload = wire.AppendSymbol(h, id), c.symbols.at(id).data
		p.symbol, p.useful = id+1, true
	case aRepair:
		r, ok := c.repairOf(c.coded[:0], uint16(c.packets.end()))
		c.coded = r.Data
		if !ok {
			return 0
		}
		h, payload = wire.AppendRepair(h, r.First, r.Count, r.Skip), r.Data
		p.useful, p.repair = true, true
	case aLoose:
		h, payload = wire.AppendLoose(h), c.loose
	}
	room := limit - len(b) - len(h) - len(payload)
	if delay := c.ackPatience(); room >= requestRoom && c.tellsDelay(delay) {
		b = wire.AppendRequest(b, wire.Request{Delay: uint64(delay / time.Microsecond)})
		room = limit - len(b) - len(h) - len(payload)
		if c.tells++; c.tells%requestCopies == 0 { // some may be lost
			c.toldDelay = delay
		}
	}
	if (acknowledge || c.ackPending) && room >= 48 {
		b = c.acknowledgement(now, b, min(room, 400))
	} else if acknowledge && what != nothing {
		// There is no room: a packet of its own, and the content next time.
		return c.seal(now, buf, c.acknowledgement(now, c.begin(buf, false), min(limit-wire.DataHeader, 600)), sentPacket{})
	}
	if asks {
		c.unasked, c.asked = 0, now
	}
	b = append(append(b, h...), payload...)
	n := c.seal(now, buf, b, p)
	c.sentContent(now, what, id, n)
	return n
}

// seal protects a packet whose header and body are in b (of buf) and notes it as sent.
func (c *Conn) seal(now time.Duration, buf, b []byte, p sentPacket) int {
	number := c.packets.end()
	c.plain = append(c.plain[:0], b[wire.DataHeader:]...)
	b = c.keys.Seal(b[:wire.DataHeader], b[:wire.DataHeader], number, c.plain)
	if !c.shake.proven {
		if len(b) > c.shake.budget {
			// Not before the client has proven its address; its next packet does.
			c.starved = true
			return 0
		}
		c.shake.budget -= len(b)
	}
	p.at, p.size = now, int32(len(b)+headers)
	c.bytes += uint64(p.size)
	p.bytes = c.bytes
	p.large = len(b) > c.packet*9/10
	c.packets.push(p)
	for c.packets.len() > 0 && c.settledPacket(c.packets.first) {
		c.packets.pop()
	}
	if p.asks {
		c.inFlight += int(p.size)
		c.asking = number + 1
	}
	if p.useful {
		c.useful++
		if p.repair {
			c.repairs++
		}
	}
	if p.asks {
		c.lastAsked = now
		c.unasked++
	}
	c.lastSaid = now
	c.stats.PacketsSent++
	c.stats.BytesSent += uint64(p.size)
	return len(b)
}

// settledPacket reports whether no acknowledgement will tell more of a packet.
func (c *Conn) settledPacket(number uint64) bool {
	p := c.packets.at(number)
	if !p.asks {
		return true
	}
	if number >= c.largest {
		return false
	}
	if p.symbol == 0 {
		return true
	}
	s := c.symbols.at(p.symbol - 1)
	return s == nil || s.state >= arrived || s.last != number
}

// sentContent notes what went out with the newest packet.
func (c *Conn) sentContent(now time.Duration, what content, id uint64, n int) {
	if n == 0 || what == nothing {
		return
	}
	if c.probes > 0 {
		c.probes--
	}
	c.ping = false
	if what == aPing {
		c.smallProbe = false
	}
	switch what {
	case aSymbol:
		s := c.symbols.at(id)
		if s.sends > 0 {
			c.stats.Retransmits++
		}
		s.sends++
		s.last = c.packets.end() - 1
		if s.state == missed {
			s.state = flying
			c.missing--
		}
	case aRepair:
		c.stats.Repairs++
	case aLoose:
		c.loose = nil
	}
	if rate := c.rate.pacing(); rate > 0 {
		quantum := max(burstQuantum, c.rate.packetTime()/4)
		c.nextSend = max(c.nextSend, now-quantum) + seconds(float64(n+headers)/rate)
	}
}

// asksNow reports whether the next packet asks for an acknowledgement at once.
func (c *Conn) asksNow(now time.Duration, what content) bool {
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
	if c.starved || now < c.nextSend {
		return nothing, 0
	}
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
	fail := shortfall(c.useful, need, share, c.loss.burst())
	wait := max(c.rate.srtt, time.Millisecond)
	cost := c.rate.packetTime()
	if cost == 0 {
		cost = wait / 10
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

// timeoutAt is when the next acknowledgement is overdue, 0 where none is expected.
func (c *Conn) timeoutAt() time.Duration {
	if c.starved || c.open == 0 && !c.blocked() && c.closeSent == 0 && !c.pinged() {
		return 0
	}
	after := c.rate.timeout()
	switch {
	case c.overdue >= lostAfter && c.lastAsked-c.lostSince > patient:
		after = max(after, probeSeldom)
	case c.overdue >= lostAfter:
		after = c.probePause()
	case c.open == 0 && c.blocked():
		after = max(after, 200*time.Millisecond)
	}
	return max(c.lastAsked, c.asked, c.lastAck) + after
}

// probePause is the time between two probes of a link that is lost: short, so
// that its return is noticed soon, but not so short that probes fill it.
func (c *Conn) probePause() time.Duration {
	const probe = 60 // bytes
	pause := probeEvery
	if c.rate.bandwidth > 0 {
		pause = seconds(probeShare * probe / c.rate.bandwidth)
	}
	return min(max(pause, c.rate.srtt/8, probeOften), max(probeEvery, c.rate.srtt/8))
}

// pinged reports whether an answer to a packet is expected although no symbol is under way.
func (c *Conn) pinged() bool { return c.asking > c.largest }

// timedOut acts on an acknowledgement that is overdue: nothing is known of what
// is under way, so it no longer counts, and something is sent that brings news.
func (c *Conn) timedOut(now time.Duration) {
	c.overdue++
	c.quiet = now - c.lastNews
	c.stats.Timeouts++
	if c.overdue < lostAfter {
		// Something was lost, of one direction or the other.
		c.loss.observe(2, 2, 1)
	}
	c.useful, c.repairs = 0, 0
	c.presumed = c.packets.end()
	c.lastAck = now
	if c.overdue == lostAfter {
		c.lostSince = now
		c.events = append(c.events, LinkLost)
	}
	c.probes = 1
	if c.overdue < lostAfter {
		c.probes = 2
	}
	c.smallProbe = false
	c.ping = c.open == 0
	c.nextSend = min(c.nextSend, now)
	// One probe is small: the path may have become too narrow for others.
	if c.lostLarge >= largeLost || c.overdue == 2 && c.neverLarge() || c.overdue == 2 {
		c.smallFirst()
	}
}

// neverLarge reports whether no full-size packet has ever arrived.
func (c *Conn) neverLarge() bool { return c.stats.LargeArrived == 0 && c.lostLarge > 0 }

// smallFirst makes the next probe a small packet.
func (c *Conn) smallFirst() {
	c.ping, c.smallProbe = true, true
	if c.overdue < lostAfter {
		c.probes++
	}
}

// acked takes in an acknowledgement.
func (c *Conn) acked(now time.Duration, a *wire.Ack) {
	if a.Largest >= c.packets.end() || a.Next > c.symbols.end() {
		c.stats.Dropped.Unexpected++ // of packets that were never sent
		return
	}
	c.stats.AcksReceived++
	c.peer.credit = max(c.peer.credit, a.Credit)
	newest := a.Largest+1 > c.largest
	c.arrivals(a)
	if newest {
		c.advance(now, a)
	}
	c.heldRank = int(min(a.Rank, 1<<20))
	c.lastAck, c.lastNews, c.quiet = now, now, 0
	if c.overdue >= lostAfter {
		c.events = append(c.events, LinkBack)
	}
	c.overdue, c.probes, c.smallProbe = 0, 0, false
}

// arrivals settles the symbols that the acknowledgement names.
func (c *Conn) arrivals(a *wire.Ack) {
	for id := c.symbols.first; id < a.Next; id++ {
		c.settled(id, arrived)
	}
	id := a.Next
	for _, r := range a.Ranges {
		id += r.Missing
		for range r.Arrived {
			if id >= c.symbols.end() {
				return
			}
			c.settled(id, arrived)
			id++
		}
	}
}

// advance takes in that packets up to a new one have arrived or are lost.
func (c *Conn) advance(now time.Duration, a *wire.Ack) {
	total := a.Largest + 1 - c.largest
	got := min(a.Received-min(a.Received, c.received), total)
	c.loss.observe(total, total-got, a.Bursts-min(a.Bursts, c.bursts))
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
	for n := max(c.largest, c.packets.first); n <= a.Largest; n++ {
		p := c.packets.at(n)
		if p.asks {
			c.inFlight -= int(p.size)
		}
		if p.useful && n >= c.presumed {
			c.useful--
			if p.repair {
				c.repairs--
			}
		}
	}
	c.largest, c.received, c.bursts = a.Largest+1, a.Received, a.Bursts
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
		c.lookFrom = min(c.lookFrom, p.symbol-1)
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

// Ping asks the other end for a sign of life.
func (c *Conn) Ping() { c.ping = true }
