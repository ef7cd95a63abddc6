// Package measure makes a probe's metrics of its packets as they arrive: delays,
// jitter, losses and their bursts, reordering, duplication; and of the steps of a search
// what its sending end is to know, and the capacity. Comes in: the number, the
// time of sending and the time of arrival of each packet. Goes out: the metrics.
// Pure.
package measure

import (
	"math"
	"slices"

	"linktrial/protocols/contract"
)

const (
	// MaxPackets is how many packets a probe may have: 1000 a second for 18 hours.
	MaxPackets = 1 << 26
	// keep is how many delays are kept. Of a longer probe they are a uniform sample
	// of all (Vitter's algorithm R), from which its percentiles are estimated.
	keep = 1 << 20
)

// Probe measures one probe.
type Probe struct {
	seen    []uint64 // a bit for each number
	highest int64    // number that has arrived; -1: none

	received, duplicated, reordered, bytes int64

	delays   []int64
	sum      float64
	min, max int64
	drawn    uint64

	transit    int64 // of the packet before, for the jitter
	jitter     float64
	jitterSum  float64
	jitterMax  float64
	jitterSeen int64
}

// New measures a probe of which nothing has arrived.
func New() *Probe { return &Probe{highest: -1} }

// Arrive takes a packet that was sent at one time and arrived at another, both in
// nanoseconds. It reports whether it is the first arrival of this number.
func (p *Probe) Arrive(n uint32, sent, arrived int64, bytes int) (first bool) {
	if n >= MaxPackets {
		return false
	}
	word, bit := int(n/64), uint64(1)<<(n%64)
	for len(p.seen) <= word {
		p.seen = append(p.seen, 0)
	}
	if p.seen[word]&bit != 0 {
		p.duplicated++
		return false
	}
	p.seen[word] |= bit
	p.received++
	p.bytes += int64(bytes)
	// RFC 4737, section 3.3: a packet is reordered where its number is below the
	// next one expected. Duplicates do not count (section 3.1).
	if int64(n) < p.highest {
		p.reordered++
	}
	p.highest = max(p.highest, int64(n))
	delay := arrived - sent
	p.delayed(delay)
	// RFC 3550, section 6.4.1: in the order of arrival, J += (|D| − J)/16.
	if p.received > 1 {
		d := math.Abs(float64(delay - p.transit))
		p.jitter += (d - p.jitter) / 16
		p.jitterSum += p.jitter
		p.jitterSeen++
		p.jitterMax = max(p.jitterMax, p.jitter)
	}
	p.transit = delay
	return true
}

func (p *Probe) delayed(d int64) {
	if p.received == 1 {
		p.min, p.max = d, d
	}
	p.min, p.max = min(p.min, d), max(p.max, d)
	p.sum += float64(d)
	if len(p.delays) < keep {
		p.delays = append(p.delays, d)
		return
	}
	p.drawn++
	z := p.drawn * 0x9E3779B97F4A7C15 // SplitMix64
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	if at := z % uint64(p.received); at < keep {
		p.delays[at] = d
	}
}

// Received is how many packets have arrived, each counted once, and their bytes.
func (p *Probe) Received() (packets, bytes int64) { return p.received, p.bytes }

// Highest is the highest number that has arrived; -1: none has.
func (p *Probe) Highest() int64 { return p.highest }

// MeanDelay is the mean delay so far; 0 where nothing has arrived.
func (p *Probe) MeanDelay() int64 {
	if p.received == 0 {
		return 0
	}
	return int64(math.Round(p.sum / float64(p.received)))
}

// Jitter is RFC 3550's estimate at this moment.
func (p *Probe) Jitter() int64 { return int64(math.Round(p.jitter)) }

// Metrics are those of a probe of which so many packets were sent.
func (p *Probe) Metrics(sent, sentBytes int64) *contract.ProbeMetrics {
	f := &contract.ProbeMetrics{
		Sent: sent, Received: p.received, Lost: sent - p.received, Duplicated: p.duplicated, Reordered: p.reordered,
		SentBytes: sentBytes, ReceivedBytes: p.bytes, JitterMaxNS: int64(math.Round(p.jitterMax)),
	}
	f.LossBursts, f.LongestLossBurst = p.bursts(sent)
	if p.jitterSeen > 0 {
		f.JitterMeanNS = min(f.JitterMaxNS, int64(math.Round(p.jitterSum/float64(p.jitterSeen))))
	}
	if p.received == 0 {
		return f
	}
	sorted := slices.Sorted(slices.Values(p.delays))
	at := func(percent int) int64 { return percentile(sorted, percent) }
	f.Delay = &contract.Delays{MinNS: p.min, MeanNS: min(p.max, max(p.min, p.MeanDelay())), P50NS: at(50), P95NS: at(95), P99NS: at(99), MaxNS: p.max,
		PercentilesNS: make([]int64, contract.DelayPercentiles)}
	for i := range f.Delay.PercentilesNS {
		f.Delay.PercentilesNS[i] = at(i)
	}
	// A sample need not have the extremes.
	f.Delay.PercentilesNS[0], f.Delay.PercentilesNS[contract.DelayPercentiles-1] = p.min, p.max
	return f
}

// bursts counts the runs of numbers below sent that have not arrived.
func (p *Probe) bursts(sent int64) (count, longest int64) {
	length := int64(0)
	for n := range sent {
		word := int(n / 64)
		if word < len(p.seen) && p.seen[word]>>(n%64)&1 != 0 {
			length = 0
			continue
		}
		if length++; length == 1 {
			count++
		}
		longest = max(longest, length)
	}
	return count, longest
}
