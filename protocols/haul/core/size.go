package core

// Figures of the search for the best packet size, where bits are lost and not packets.
const (
	smallestPacket = 192  // bytes of UDP payload, whatever the errors
	sizeMemory     = 48   // packets over which the estimates forget
	enoughSeen     = 24   // packets of either size before they are compared
	lossyEnough    = 0.55 // share of lost packets from which on a smaller size is tried
	cleanEnough    = 0.1  // and below which a larger one is
	betterBy       = 1.25
	trialEvery     = 4   // one packet in so many is of the size on trial
	trialPause     = 500 // packets from a trial that failed to the next
)

// sizes compares the losses of packets of the usual size with those of a size
// that is on trial: half of it, or twice. Where a radio's errors hit bits, a
// smaller packet is lost less often (cf. the adaptive segment size of
// lttcp-2006, section II); where they hit packets, it is not, and stays large.
type sizes struct {
	usual, trial outcome
	trying       int // UDP payload of the size on trial; 0: none
	turn         int // counts symbols
	pause        int // packets until the next trial
	most         int // UDP payload that the path is known to carry
	never        int // usual packets lost in a row, from the first on
}

// outcome counts packets of one size, with decay.
type outcome struct{ sent, lost float64 }

func (o *outcome) add(lost bool) {
	const keep = 1 - 1.0/sizeMemory
	o.sent, o.lost = o.sent*keep+1, o.lost*keep
	if lost {
		o.lost++
	}
}

func (o *outcome) share() float64 { return o.lost / max(o.sent, 1) }

// worth is the payload that arrives for each byte sent, of packets of a size.
func (c *Conn) worth(o outcome, packet int) float64 {
	payload := float64(packet - 40) // heads and tag
	return payload / float64(packet+headers) * (1 - o.share())
}

// sizeNow is the UDP payload that the next new symbol is made for.
func (c *Conn) sizeNow() int {
	if c.sizes.trying > 0 && c.sizes.turn%trialEvery == 0 {
		return c.sizes.trying
	}
	return c.packet
}

// sizeSeen notes what became of a packet with a symbol.
func (c *Conn) sizeSeen(p *sentPacket, lost bool) {
	s := &c.sizes
	payload := int(p.size) - headers
	switch {
	case payload > c.packet*3/4 && payload <= c.packet:
		s.usual.add(lost)
		s.pause--
		if lost && s.never >= 0 {
			s.never++
		} else if !lost {
			s.never = -1
		}
	case s.trying > 0 && payload > s.trying*3/4 && payload <= s.trying:
		s.trial.add(lost)
	default:
		return
	}
	c.compareSizes()
}

// repairUnheard notes a repair of which nobody knows what became; while nothing
// of its size has ever arrived, it has not either.
func (c *Conn) repairUnheard(p *sentPacket) {
	if s := &c.sizes; s.never >= 0 && int(p.size)-headers > c.packet*3/4 {
		s.never++
		c.compareSizes()
	}
}

// compareSizes begins and ends trials.
func (c *Conn) compareSizes() {
	s := &c.sizes
	switch {
	case s.never >= 4 && c.packet > smallestPacket && c.smallArrived > 0:
		// Nothing of this size has ever arrived, but something small has.
		c.resize(c.packet / 2)
	case s.trying == 0 && s.pause <= 0 && s.usual.sent >= enoughSeen && s.usual.share() > lossyEnough && c.packet/2 >= smallestPacket:
		s.trying, s.trial = c.packet/2, outcome{}
	case s.trying == 0 && s.pause <= 0 && s.usual.sent >= enoughSeen && s.usual.share() < cleanEnough && c.packet < s.most:
		s.trying, s.trial = min(c.packet*2, s.most), outcome{}
	case s.trying > 0 && s.trial.sent >= enoughSeen && s.usual.sent >= enoughSeen:
		if c.worth(s.trial, s.trying) > betterBy*c.worth(s.usual, c.packet) {
			c.resize(s.trying)
			return
		}
		s.trying, s.pause = 0, trialPause
	}
}

// resize makes another size the usual one.
func (c *Conn) resize(to int) {
	s := &c.sizes
	was := c.packet
	s.usual, s.trial, s.trying, s.never, s.pause = outcome{}, outcome{}, 0, 0, 0
	c.packet = max(to, smallestPacket)
	c.lostLarge, c.smallArrived = 0, 0
	c.stats.Resized++
	c.rate.size = float64(c.packet + headers)
	if c.packet < was {
		c.resplit()
	}
}
