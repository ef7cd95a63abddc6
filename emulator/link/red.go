package link

import (
	"math"
	"time"

	"linktrial/emulator/channel"
	"linktrial/internal/radio"
)

// redState is what random early detection knows of a radio's queue (Floyd,
// Jacobson: Random early detection gateways for congestion avoidance, IEEE/ACM
// ToN 1(4), 1993), with the queue measured in bytes.
type redState struct {
	average float64 // bytes
	count   int     // packets since the last marked one while above the lower threshold
	empty   time.Duration
	draws   uint64
}

type verdict uint8

const (
	accept verdict = iota
	mark
	discard
)

// purposes of random numbers that are the link's own
const (
	purposeRED uint64 = iota << 32
	purposeBackoff
)

// arrival judges an arriving packet. waiting is what the queue holds, packet
// the airtime of a full-sized one.
func (s *redState) arrival(r *radio.RED, seed, node uint64, now time.Duration, waiting int, packet time.Duration, capable bool) verdict {
	if waiting > 0 {
		s.average += r.Weight * (float64(waiting) - s.average)
	} else { // as if full-sized packets had found it empty meanwhile
		s.average *= math.Pow(1-r.Weight, float64(now-s.empty)/float64(packet))
	}
	low, high := float64(r.MinBytes), float64(r.MaxBytes)
	p := 0.0
	switch {
	case s.average < low:
		s.count = -1
		return accept
	case s.average < high:
		p = r.MaxProbability * (s.average - low) / (high - low)
	case r.Gentle && s.average < 2*high:
		p = r.MaxProbability + (1-r.MaxProbability)*(s.average-high)/high
	default:
		s.count = 0
		return discard
	}
	// Spread evenly: the gap between two is uniform up to about 1/p.
	s.count++
	if q := 1 - float64(s.count)*p; q > 0 {
		s.draws++
		if channel.Draw(seed, purposeRED|node, s.draws) >= p/q {
			return accept
		}
	}
	s.count = 0
	if r.ECN && capable {
		return mark
	}
	return discard
}
