package channel

import (
	"sort"
	"time"

	"linktrial/internal/radio"
)

// periodsInBlock is after how many mean periods an on-off process is drawn
// anew, for the same reason as blockSlots.
const periodsInBlock = 1 << 16

// onOff alternates between two kinds of period (lttcp-2006, section III).
type onOff struct {
	opportunities
	seed          uint64
	shortest      time.Duration
	spread        uint64 // of a period's length, nanoseconds
	blockLength   time.Duration
	loss          [2]uint64 // thresholds; of the on and the off kind
	block, period int64
	kind          int           // of the current period
	until         time.Duration // its end
}

func newOnOff(c radio.Channel, o opportunities, seed uint64) *onOff {
	p := c.OnOff
	return &onOff{
		opportunities: o, seed: hash(seed, domainState, 0, 0),
		shortest: p.PeriodMin, spread: uint64(p.PeriodMax - p.PeriodMin),
		blockLength: saturated(periodsInBlock, p.PeriodMin/2+p.PeriodMax/2),
		loss:        [2]uint64{threshold(c.Loss * p.OnFactor), threshold(c.Loss * p.OffFactor)},
		block:       -1,
	}
}

// saturated is n times d, or a time beyond every schedule.
func saturated(n int64, d time.Duration) time.Duration {
	if d > maxMoment/time.Duration(n) {
		return maxMoment
	}
	return max(1, time.Duration(n)*d)
}

func (p *onOff) advance(at time.Duration) {
	if b := int64(at / p.blockLength); b != p.block {
		p.block, p.period = b, 0
		p.kind = int(hash(p.seed, domainInitial, uint64(b), 0) >> 63)
		p.until = time.Duration(b)*p.blockLength + p.length()
	}
	for p.until <= at {
		p.kind = 1 - p.kind
		p.period++
		p.until += p.length()
	}
}

// length draws the current period's.
func (p *onOff) length() time.Duration {
	if p.spread == 0 {
		return p.shortest
	}
	return p.shortest + time.Duration(float64(p.spread+1)*probability(draw(hash(p.seed, domainSojourn, uint64(p.block), uint64(p.period)))))
}

func (p *onOff) changes() time.Duration { return min(p.until, time.Duration(p.block+1)*p.blockLength) }

func (p *onOff) Lost(start, _ time.Duration) bool {
	p.advance(start)
	return p.next(start) < p.loss[p.kind]
}

func (p *onOff) Foresee(start, _ time.Duration, nth uint64) (bool, time.Duration) {
	p.advance(start)
	return p.decide(p.loss[p.kind], start, nth, p.changes())
}

func (p *onOff) Clone() Process { c := *p; return &c }

func (p *onOff) State(at time.Duration) (State, time.Duration) {
	p.advance(at)
	return State{Loss: probability(p.loss[p.kind])}, p.changes()
}

// outages loses at stated times.
type outages struct {
	opportunities
	*radio.Outages
	loss uint64
}

// from is the first outage that ends after a moment.
func (o *outages) from(at time.Duration) (start, end time.Duration, ok bool) {
	if o.Period > 0 {
		if o.Length == 0 {
			return 0, 0, false
		}
		n := max(0, at-o.Offset) / o.Period
		if start = o.Offset + n*o.Period; start+o.Length <= at {
			start += o.Period
		}
		return start, start + o.Length, true
	}
	i := sort.Search(len(o.Times), func(i int) bool { return o.Times[i].End > at })
	if i == len(o.Times) {
		return 0, 0, false
	}
	return o.Times[i].Start, o.Times[i].End, true
}

func (o *outages) Lost(start, end time.Duration) bool {
	d := o.next(start) // counted also where it decides nothing, so that the nth of an opportunity is the nth
	from, _, ok := o.from(start)
	return ok && from < end && d < o.loss
}

func (o *outages) Foresee(start, end time.Duration, nth uint64) (bool, time.Duration) {
	from, until, ok := o.from(start)
	if !ok {
		return false, Forever
	}
	if from >= end {
		return false, from - (end - start) + 1
	}
	// A later start still meets the last outage that this one overlaps.
	for {
		next, nextEnd, ok := o.from(until)
		if !ok || next >= end {
			break
		}
		until = nextEnd
	}
	return o.decide(o.loss, start, nth, until)
}

func (o *outages) Clone() Process { c := *o; return &c }

func (o *outages) State(at time.Duration) (State, time.Duration) {
	from, until, ok := o.from(at)
	switch {
	case !ok:
		return State{}, Forever
	case from > at:
		return State{}, from
	}
	return State{Loss: o.Loss}, until
}

// trace loses as recorded.
type trace struct {
	opportunities
	*radio.Trace
	loss []uint64
}

func newTrace(t *radio.Trace, o opportunities) *trace {
	out := &trace{opportunities: o, Trace: t}
	for _, l := range t.Loss {
		out.loss = append(out.loss, threshold(l))
	}
	return out
}

// holds is until when the element of a moment holds.
func holds(t *radio.Trace, at time.Duration) time.Duration {
	k := int64(max(0, at) / t.Step)
	if !t.Repeat && k >= int64(len(t.Loss)-1) {
		return Forever
	}
	return time.Duration(k+1) * t.Step
}

func (t *trace) Lost(start, _ time.Duration) bool { return t.next(start) < t.loss[t.At(start)] }

func (t *trace) Foresee(start, _ time.Duration, nth uint64) (bool, time.Duration) {
	return t.decide(t.loss[t.At(start)], start, nth, holds(t.Trace, start))
}

func (t *trace) Clone() Process { c := *t; return &c }

func (t *trace) State(at time.Duration) (State, time.Duration) {
	return State{Loss: t.Loss[t.At(at)]}, holds(t.Trace, at)
}

// combined is several processes at once.
type combined struct{ parts []Process }

func (c *combined) Lost(start, end time.Duration) bool {
	lost := false
	for _, p := range c.parts {
		if p.Lost(start, end) { // all are asked: each counts what it has seen
			lost = true
		}
	}
	return lost
}

func (c *combined) Foresee(start, end time.Duration, nth uint64) (bool, time.Duration) {
	lost, while, through := false, time.Duration(0), Forever
	for _, p := range c.parts {
		l, until := p.Foresee(start, end, nth)
		if l {
			lost, while = true, max(while, until)
		}
		through = min(through, until)
	}
	if lost {
		return true, while
	}
	return false, through
}

func (c *combined) Clone() Process {
	out := &combined{}
	for _, p := range c.parts {
		out.parts = append(out.parts, p.Clone())
	}
	return out
}

func (c *combined) State(at time.Duration) (State, time.Duration) {
	through, right, changes := 1.0, 1.0, Forever
	for _, p := range c.parts {
		s, until := p.State(at)
		through, right, changes = through*(1-s.Loss), right*(1-s.BitErrorRate), min(changes, until)
	}
	return State{Loss: 1 - through, BitErrorRate: 1 - right}, changes
}
