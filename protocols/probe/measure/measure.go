// Package measure makes a probe's metrics of its packets as they arrive: delays,
// jitter, losses and their bursts, reordering, duplication; and of the steps of a search
// what its sending end is to know, and the capacity. Comes in: the number, the
// time of sending and the time of arrival of each packet. Goes out: the metrics.
// Pure.
package measure

import (
	"math"

	"linktrial/protocols/contract"
)

// MaxPackets is how many packets a probe may have: 1000 a second for 18 hours.
const MaxPackets = 1 << 26

// Probe measures one probe.
type Probe struct {
	seen    []uint64 // a bit for each number
	highest int64    // number that has arrived; -1: none

	received, duplicated, reordered, bytes int64

	delays times

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
	p.delays.add(delay)
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

// Received is how many packets have arrived, each counted once, and their bytes.
func (p *Probe) Received() (packets, bytes int64) { return p.received, p.bytes }

// Highest is the highest number that has arrived; -1: none has.
func (p *Probe) Highest() int64 { return p.highest }

// MeanDelay is the mean delay so far; 0 where nothing has arrived.
func (p *Probe) MeanDelay() int64 { return p.delays.mean() }

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
	f.Delay = p.delays.distribution(true)
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
