package channel

// Counter-based randomness: every number is a hash of what it is for, so that
// no draw depends on how many were made before it.

const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio

// What a number is drawn for.
const (
	domainLoss uint64 = iota + 1
	domainPacket
	domainState
	domainInitial
	domainSojourn
	domainBit
	domainPart
	domainOther
)

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014, with Stafford's variant 13).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func hash(seed, domain, a, b uint64) uint64 {
	h := mix(seed + domain*golden)
	h = mix(h + (a+1)*golden)
	return mix(h + (b+1)*golden)
}

// one is the threshold of certainty: draws lie below it.
const one = uint64(1) << 53

// draw takes the 53 bits that a float64 holds.
func draw(h uint64) uint64 { return h >> 11 }

// threshold is the number below which a draw falls with probability p.
func threshold(p float64) uint64 { return uint64(p * float64(one)) }

// unit is a number in (0, 1], for logarithms.
func unit(h uint64) float64 { return float64(draw(h)+1) / float64(one) }

// probability is the one that a threshold stands for.
func probability(threshold uint64) float64 { return float64(threshold) / float64(one) }

// Draw is the nth number in [0, 1) of a purpose that is not the channel's, from
// the same kind of counter.
func Draw(seed, purpose, n uint64) float64 {
	return float64(draw(hash(seed, domainOther, purpose, n))) / float64(one)
}
