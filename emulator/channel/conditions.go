package channel

import (
	"time"

	"linktrial/internal/radio"
)

// Conditions is the rate and the delay that a channel gives its link over time.
type Conditions struct {
	Rate  float64       // bit/s; 0: nothing is sent
	Delay time.Duration // one way
}

// Course is how a link's conditions change.
type Course struct {
	own    Conditions // of the link, where no trace says otherwise
	traces []*radio.Trace
}

// NewCourse is the course of a checked channel on a link of the given
// conditions; nil where they never change.
func NewCourse(c radio.Channel, own Conditions) *Course {
	out := &Course{own: own}
	for _, p := range append([]radio.Channel{c}, c.Parts...) {
		if p.Model == radio.ChannelTrace && len(p.Trace.RateBitsPerSecond)+len(p.Trace.Delay) > 0 {
			out.traces = append(out.traces, p.Trace)
		}
	}
	if len(out.traces) == 0 {
		return nil
	}
	return out
}

// At is the conditions at a moment, and until when they hold.
func (c *Course) At(at time.Duration) (now Conditions, until time.Duration) {
	now, until = c.own, Forever
	rated, delayed := false, false
	for _, t := range c.traces {
		i := t.At(at)
		if len(t.RateBitsPerSecond) > 0 {
			if r := t.RateBitsPerSecond[i]; !rated || r < now.Rate {
				now.Rate, rated = r, true
			}
		}
		if len(t.Delay) > 0 {
			if !delayed {
				now.Delay, delayed = 0, true
			}
			now.Delay += t.Delay[i]
		}
		until = min(until, holds(t, at))
	}
	return now, until
}

// Extremes are the lowest rate but 0, the highest rate and the shortest delay
// that ever hold.
func (c *Course) Extremes() (slowest, fastest float64, nearest time.Duration) {
	// Of traces that repeat with different lengths not every coincidence is
	// within one length, so each trace counts by itself.
	slowest, nearest = c.own.Rate, c.own.Delay
	rated, delayed := false, false
	for _, t := range c.traces {
		if len(t.Delay) > 0 {
			low := t.Delay[0]
			for _, d := range t.Delay {
				low = min(low, d)
			}
			if !delayed {
				nearest, delayed = 0, true
			}
			nearest += low
		}
		if len(t.RateBitsPerSecond) == 0 {
			continue
		}
		high, low := 0.0, 0.0
		for _, r := range t.RateBitsPerSecond {
			high = max(high, r)
			if r > 0 && (low == 0 || r < low) {
				low = r
			}
		}
		if !rated {
			slowest, fastest, rated = low, high, true
			continue
		}
		fastest = min(fastest, high)
		if low > 0 && (slowest == 0 || low < slowest) {
			slowest = low
		}
	}
	if !rated {
		fastest = c.own.Rate
	}
	return slowest, fastest, nearest
}
