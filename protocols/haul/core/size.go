package core

// Constants of the search for the best packet size, where bits are lost and not packets.
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
	packet       int // largest UDP payload now
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
func (o *outcome) worth(packet int) float64 {
	payload := float64(packet - 40) // heads and tag
	return payload / float64(packet+headers) * (1 - o.share())
}

// next is the UDP payload that the next new symbol is made for.
func (z *sizes) next() int {
	if z.trying > 0 && z.turn%trialEvery == 0 {
		return z.trying
	}
	return z.packet
}

// observe notes what became of a packet with a symbol, and reports whether sizes
// are to be compared.
func (z *sizes) observe(payload int, lost bool) bool {
	switch {
	case payload > z.packet*3/4 && payload <= z.packet:
		z.usual.add(lost)
		z.pause--
		if lost && z.never >= 0 {
			z.never++
		} else if !lost {
			z.never = -1
		}
	case z.trying > 0 && payload > z.trying*3/4 && payload <= z.trying:
		z.trial.add(lost)
	default:
		return false
	}
	return true
}

// compare begins and ends trials. It returns the size that is to be the usual one
// from now on, 0 where that does not change. smallArrived says that packets of
// less than the usual size have arrived lately.
func (z *sizes) compare(smallArrived bool) (to int) {
	switch {
	case z.never >= 4 && z.packet > smallestPacket && smallArrived:
		// Nothing of this size has ever arrived, but something small has.
		return z.packet / 2
	case z.trying == 0 && z.pause <= 0 && z.usual.sent >= enoughSeen && z.usual.share() > lossyEnough && z.packet/2 >= smallestPacket:
		z.trying, z.trial = z.packet/2, outcome{}
	case z.trying == 0 && z.pause <= 0 && z.usual.sent >= enoughSeen && z.usual.share() < cleanEnough && z.packet < z.most:
		z.trying, z.trial = min(z.packet*2, z.most), outcome{}
	case z.trying > 0 && z.trial.sent >= enoughSeen && z.usual.sent >= enoughSeen:
		if z.trial.worth(z.trying) > betterBy*z.usual.worth(z.packet) {
			return z.trying
		}
		z.trying, z.pause = 0, trialPause
	}
	return 0
}
