package core

import "math"

// Constants of the estimate of losses.
const (
	lossMemory  = 200  // packets over which the estimate forgets
	priorLoss   = 0.02 // before anything is known ...
	priorWeight = 8    // ... with the weight of so many packets
	mostInRow   = 24   // losses at once that count: more is an outage, not a loss rate
)

// loss estimates the share of lost packets and the length of bursts.
type loss struct {
	lost, total   float64 // decaying sums
	bursts, inRow float64
	supposed      float64 // of lost and total: what no acknowledgement has said yet
}

func (l *loss) init(known float64) {
	l.total = priorWeight
	l.lost = priorLoss * priorWeight
	if known > 0 {
		l.total = lossMemory / 2
		l.lost = known * l.total
	}
	l.bursts, l.inRow = 4, 4
}

// observe takes in that of total packets lost did not arrive, in so many bursts.
func (l *loss) observe(total, lost, bursts uint64) {
	lost = min(lost, total)
	counted := float64(min(lost, mostInRow*max(bursts, 1)))
	n := float64(total-lost) + counted
	keep := math.Exp(-n / lossMemory)
	l.total = l.total*keep + n
	l.lost = l.lost*keep + counted
	l.inRow = l.inRow*keep + counted
	l.bursts = l.bursts*keep + float64(bursts)
}

// suppose takes packets as lost, one after the other, until an acknowledgement says more.
func (l *loss) suppose(packets uint64) {
	l.observe(packets, packets, 1)
	l.supposed += float64(packets)
}

// known takes back what was supposed: an acknowledgement says what became of the same packets.
func (l *loss) known() {
	if l.supposed > 0 {
		l.lost, l.total = max(l.lost-l.supposed, 0), max(l.total-l.supposed, 1)
		l.supposed = 0
	}
}

// share is the estimated share of lost packets.
func (l *loss) share() float64 { return min(max(l.lost/l.total, 0.001), 0.95) }

// burst is the mean length of a burst of losses, in packets.
func (l *loss) burst() float64 {
	if l.bursts < 1 {
		return 1
	}
	return min(max(l.inRow/l.bursts, 1), 16)
}

// shortfall is the probability that fewer than need of flying packets arrive.
// Bursts count as fewer packets that share their fate. (For independent losses
// the binomial distribution, exactly.)
func shortfall(flying, need int, share, burst float64) float64 {
	switch {
	case need <= 0:
		return 0
	case flying < need:
		return 1
	}
	// The mean burst of independent losses is 1/(1−p): no correlation.
	if b := burst * (1 - share); b > 1.2 {
		flying = max(int(float64(flying)/b), 1)
		need = min(max(int(math.Ceil(float64(need)/b)), 1), flying)
	}
	n, q := float64(flying), 1-share
	if flying > 400 {
		sd := math.Sqrt(n * q * share)
		return 0.5 * math.Erfc((n*q-float64(need)+0.5)/(sd*math.Sqrt2))
	}
	// The sum of the terms of 0 to need−1 arrivals, each from the one before.
	logTerm := n * math.Log(share)
	sum := 0.0
	for k := range need {
		sum += math.Exp(logTerm)
		logTerm += math.Log((n-float64(k))/float64(k+1)) + math.Log(q/share)
	}
	return min(sum, 1)
}
