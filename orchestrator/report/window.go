package report

import (
	"fmt"
	"time"
)

// CommonWindow is what the flows of an attempt, all of which times bound, delivered
// within one time: from the beginning of the first transfer at the server, for as
// long as the sheet has them send. Everything is by the server's clock.
type CommonWindow struct {
	Length time.Duration `json:"length_ns"`
	// Bytes is the payload that the server had of each flow at the end.
	Bytes []int64 `json:"bytes,omitempty"`
	// Unknown is why there is no value; empty: there is one.
	Unknown string `json:"unknown,omitempty"`
}

// rate is what all flows delivered, in B/s; 0 where that is not known.
func (w *CommonWindow) rate() float64 {
	if w.Unknown != "" {
		return 0
	}
	var bytes int64
	for _, n := range w.Bytes {
		bytes += n
	}
	return float64(bytes) / w.Length.Seconds()
}

// Arrival is one flow as the server saw it.
type Arrival struct {
	Begin  time.Time // when its transfer began, by the server's clock
	Counts []Count   // in the order of time; the last is of its end
}

// Count is how much of the payload the server had after a time.
type Count struct {
	After time.Duration // since the beginning
	Bytes int64
}

// windowTolerance is which share of the window may lie between the samples before
// and after its end, where the rate is taken for constant; samples that a driver
// takes as the contract has it are closer. Where they are not, so much of the bytes
// may have come between the two.
const windowTolerance = 0.02

// MeasureWindow is what flows delivered within a common window of a length; interval
// is that of the samples as the plan has it, and delivered bounds the bytes that emulated
// radios delivered to the server in any time as long, 0: not known.
func MeasureWindow(length, interval time.Duration, flows []Arrival, delivered int64) *CommonWindow {
	gap := max(2*interval, time.Duration(windowTolerance*float64(length)))
	begin := flows[0].Begin
	for i := range flows {
		if flows[i].Begin.Before(begin) {
			begin = flows[i].Begin
		}
	}
	end := begin.Add(length)
	w := &CommonWindow{Length: length, Bytes: make([]int64, len(flows))}
	var sum, between, widest, certain int64
	worst := -1
	for i := range flows {
		bytes, unsure := flows[i].until(end, gap)
		w.Bytes[i] = bytes
		certain += flows[i].last(end)
		sum, between = sum+bytes, between+unsure
		if unsure > widest {
			worst, widest = i, unsure
		}
	}
	if delivered > 0 && certain > delivered {
		w.Bytes = nil
		w.Unknown = fmt.Sprintf("the server's samples have %d bytes of payload within %s, the emulated radio delivered at most %d with all headers to it in any such time", certain, length, delivered)
		return w
	}
	if float64(between) > windowTolerance*float64(sum) {
		w.Bytes = nil
		w.Unknown = fmt.Sprintf("the server has too few samples around the end of the flows' time: %d bytes lie between those before and after, most of flow %d, of %d bytes in all", between, worst, sum)
	}
	return w
}

// last is what the last count until a moment has.
func (a *Arrival) last(moment time.Time) (bytes int64) {
	for _, c := range a.Counts {
		if c.After <= moment.Sub(a.Begin) {
			bytes = c.Bytes
		}
	}
	return bytes
}

// until is how much had arrived at a moment, and how much did between the counts
// before and after it where these are further apart than gap.
func (a *Arrival) until(moment time.Time, gap time.Duration) (bytes, between int64) {
	at := moment.Sub(a.Begin)
	if at <= 0 {
		return 0, 0
	}
	var before Count
	for _, c := range a.Counts {
		if c.After <= at {
			before = c
			continue
		}
		between = max(0, c.Bytes-before.Bytes)
		share := (at - before.After).Seconds() / (c.After - before.After).Seconds()
		bytes = before.Bytes + int64(share*float64(between))
		if c.After-before.After <= gap {
			return bytes, 0
		}
		return bytes, between
	}
	return before.Bytes, 0 // it had ended
}
