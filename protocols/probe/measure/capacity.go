package measure

import (
	"math"
	"slices"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/probe/wire"
)

const (
	// subInterval is the least length of a sub-interval of RFC 9097, its dt, whose default
	// (section 5.3) this is; and subPackets the least packets in one, so that a packet more
	// or less is not much of a slow way.
	subInterval = time.Second
	subPackets  = 50
	// warnAfter is the growth of the delay in a step, and the pause between two warnings of it.
	warnAfter = 2 * time.Second
	// keepArrivals bounds the arrivals of a step that are kept.
	keepArrivals = 1 << 22
)

// Capacity measures the steps of a search for the capacity, of which it keeps the last.
type Capacity struct {
	step     uint32
	arrivals []stepArrival
	least    int64 // delay of all packets of the probe
	any      bool
	warned   int64 // arrival before which no other warning is given
}

type stepArrival struct {
	number        uint32
	sent, arrived int64
}

// Arrive takes the first arrival of a packet of a step. What comes late of a step before
// does not count in any. It reports whether the delay has grown so much in the step that
// the sending end is to know of it at once.
func (c *Capacity) Arrive(step, n uint32, sent, arrived int64) (warn bool) {
	delay := arrived - sent
	if !c.any || delay < c.least {
		c.least, c.any = delay, true
	}
	if step > c.step {
		c.step, c.arrivals, c.warned = step, c.arrivals[:0], math.MinInt64
	}
	if step < c.step || len(c.arrivals) == keepArrivals {
		return false
	}
	c.arrivals = append(c.arrivals, stepArrival{n, sent, arrived})
	first := &c.arrivals[0]
	if delay-(first.arrived-first.sent) < int64(warnAfter) || arrived < c.warned {
		return false
	}
	c.warned = arrived + int64(warnAfter)
	return true
}

// Report tells what has arrived of a step.
func (c *Capacity) Report(step uint32, number uint16) wire.Report {
	r := wire.Report{Step: step, Number: number}
	if step != c.step || len(c.arrivals) == 0 {
		return r
	}
	all := c.arrivals
	first, last := &all[0], &all[len(all)-1]
	r.Received, r.SpanNS, r.Numbers = int64(len(all)), last.arrived-first.arrived, int64(last.number)-int64(first.number)
	for i := range all {
		r.ExcessNS = max(r.ExcessNS, all[i].arrived-all[i].sent-c.least)
		if i > 0 && all[i].number == all[i-1].number+1 && all[i].arrived >= all[i-1].arrived {
			r.Pairs, r.PairNS = r.Pairs+1, r.PairNS+all[i].arrived-all[i-1].arrived
		}
	}
	r.GrowthNS, r.ErrorNS = growth(all)
	return r
}

// growth is by how much the delay grows from the first packet to the last, by the straight
// line of least squares over the times of sending, and its standard error.
func growth(all []stepArrival) (grown, deviation int64) {
	n := float64(len(all))
	first := &all[0]
	x := func(a *stepArrival) float64 { return float64(a.sent - first.sent) }
	y := func(a *stepArrival) float64 { return float64((a.arrived - a.sent) - (first.arrived - first.sent)) }
	meanX, meanY := 0.0, 0.0
	for i := range all {
		meanX, meanY = meanX+x(&all[i])/n, meanY+y(&all[i])/n
	}
	xx, xy := 0.0, 0.0
	for i := range all {
		dx := x(&all[i]) - meanX
		xx, xy = xx+dx*dx, xy+dx*(y(&all[i])-meanY)
	}
	if xx == 0 || n < 3 {
		return 0, 0
	}
	slope, left := xy/xx, 0.0
	for i := range all {
		d := y(&all[i]) - meanY - slope*(x(&all[i])-meanX)
		left += d * d
	}
	span := x(&all[len(all)-1])
	return int64(math.Round(slope * span)), int64(math.Round(math.Sqrt(left/(n-2)/xx) * span))
}

// Result is the capacity by the packets of the step that the sending end held; nil where
// fewer than two have arrived.
func (c *Capacity) Result(s *wire.Search) *contract.Capacity {
	if s == nil || int64(c.step) != s.Step || len(c.arrivals) < 2 || s.HeldNS <= 0 {
		return nil
	}
	out := &contract.Capacity{RateBPS: s.RateBPS, HighBPS: s.HighBPS, BottleneckBPS: s.BottleneckBPS, PacketBytes: s.PacketBytes, PayloadBytes: s.Payload, LargestPayloadBytes: s.Largest,
		HeldNS: s.HeldNS, HeldSent: s.Sent, HeldReceived: int64(len(c.arrivals)), Steps: s.Steps, SearchNS: s.SearchNS, End: s.End}
	bits := float64(8 * s.PacketBytes)
	span := c.arrivals[len(c.arrivals)-1].arrived - c.arrivals[0].arrived
	if span <= 0 {
		return nil
	}
	// Where the way gathers packets, they can arrive in less time than they were sent in.
	mean := float64(len(c.arrivals)-1) / float64(max(span, s.HeldNS))
	interval := max(int64(subInterval), int64(subPackets/mean))
	out.IntervalNS = min(interval, span)
	most := 0.0
	from := 0
	for i := range c.arrivals {
		if d := c.arrivals[i].arrived - c.arrivals[from].arrived; d >= out.IntervalNS {
			most = max(most, float64(i-from)/float64(d))
			from, out.Intervals = i, out.Intervals+1
		}
	}
	out.MeanBPS, out.MaximumBPS = int64(math.Round(mean*bits*1e9)), int64(math.Round(most*bits*1e9))
	out.PayloadBPS = int64(math.Round(most * float64(8*s.Payload) * 1e9))
	out.HeldDelay = c.heldDelay()
	return out
}

func (c *Capacity) heldDelay() *contract.Delays {
	all := make([]int64, len(c.arrivals))
	sum := 0.0
	for i, a := range c.arrivals {
		all[i] = a.arrived - a.sent
		sum += float64(all[i])
	}
	slices.Sort(all)
	return &contract.Delays{MinNS: all[0], MeanNS: int64(math.Round(sum / float64(len(all)))),
		P50NS: percentile(all, 50), P95NS: percentile(all, 95), P99NS: percentile(all, 99), MaxNS: all[len(all)-1]}
}

// percentile is that of RFC 2330, section 11.3, of sorted values.
func percentile(sorted []int64, percent int) int64 {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
