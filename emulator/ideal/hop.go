package ideal

import (
	"time"

	"linktrial/emulator/channel"
	"linktrial/emulator/link"
)

// hop finds, on one direction of a link, when packets get through.
type hop struct {
	s     *search
	line  *link.Line
	slots *link.Slots
	gap   time.Duration // idle time that the medium must have before a transmission
	burst bool          // the frames of a packet follow each other
	moves bool          // the conditions change over time
	done  count
	steps int

	coded   bool          // without knowledge of the future
	unit    int           // coded: the next transmission of the packet under way
	lastDue time.Duration // coded: arrival of the last transmission
}

// count is how many transmissions have started in the opportunity of the last.
type count struct {
	opportunity int64
	started     uint64
}

func (c count) nth(o int64) uint64 {
	if o != c.opportunity {
		return 0
	}
	return c.started
}

// placement is where a packet goes.
type placement struct {
	start, end time.Duration // on the air
	arrives    time.Duration
	done       count
}

func (s *search) hop(i int, back bool) (*hop, error) {
	from, to := s.route[i], s.route[i+1]
	if back {
		from, to = to, from
	}
	line, err := link.NewLine(s.n, s.links[i], from, to, s.seed)
	if err != nil {
		return nil, err
	}
	h := &hop{s: s, line: line, slots: link.NewSlots(s.n, from), gap: link.Gap(s.n), done: count{opportunity: -1}, coded: s.coded && !back}
	_, until := line.Conditions(0)
	h.moves = until != channel.Forever
	h.burst = s.n.Framing != nil && s.n.ARQ == nil && h.slots == nil && !h.moves
	return h, nil
}

// commit makes a placement the hop's last.
func (h *hop) commit(p placement) { h.done = p.done }

// send places a packet that may start from ready on so that it ends first, or
// finds when it gets through without knowledge of the future.
// Ready must not decrease from call to call below an earlier placement's start.
func (h *hop) send(bytes int, ready, horizon time.Duration) (placement, error) {
	if h.coded {
		return h.sendCoded(bytes, ready, horizon)
	}
	units, each, last := h.line.Units(bytes)
	if units > 1 && h.burst {
		return h.sendBurst(units, each, last, ready, horizon)
	}
	// Placing several, or looking beyond the first good moment, moves the cursor
	// past where the next packet may have to be placed.
	process := h.line.Process
	if units > 1 || h.moves {
		process.State(ready)
		process = process.Clone()
	}
	p := placement{start: -1, done: h.done, end: ready}
	for i := range units {
		size := each
		if i == units-1 {
			size = last
		}
		one, err := h.place(process, size, p.end, horizon, p.done)
		if err != nil {
			return placement{}, err
		}
		if p.start < 0 {
			p.start = one.start
		}
		p.end, p.arrives, p.done = one.end, one.arrives, one.done
	}
	return p, nil
}

// place places a single transmission so that it ends first.
func (h *hop) place(process channel.Process, bytes int, ready, horizon time.Duration, done count) (placement, error) {
	best := placement{end: channel.Forever}
	for at := ready; at <= horizon && at < best.end; {
		c, until := h.line.Conditions(at)
		if c.Rate == 0 {
			at = until
			continue
		}
		air := h.line.Air(bytes, c.Rate)
		if fit := h.slots.Fit(at, air); fit != at {
			at = fit
			continue
		}
		o := int64(at / h.line.Opportunity)
		nth := done.nth(o)
		lost, same := process.Foresee(at, at+air, nth)
		start := at
		// Of short packets several can start in one opportunity, each with a
		// fate of its own, so repeating can be faster than waiting.
		for again := at + air + h.gap; lost && again < min(same, until, time.Duration(o+1)*h.line.Opportunity) && h.slots.Fit(again, air) == again; again += air + h.gap {
			nth++
			if lost, _ = process.Foresee(again, again+air, nth); !lost {
				start = again
			}
		}
		if !lost {
			if start+air < best.end {
				best = placement{start: start, end: start + air, arrives: start + air + c.Delay, done: count{opportunity: int64(start / h.line.Opportunity), started: nth + 1}}
			}
			at = until // the next conditions may be better
			continue
		}
		at = same
		if h.steps++; h.steps%4096 == 0 && h.s.cancelled() {
			return placement{}, ErrCancelled
		}
	}
	if best.end == channel.Forever {
		return placement{}, errTooLong
	}
	if h.moves {
		best.arrives = h.earliestArrival(bytes, best)
	}
	return best, nil
}

// earliestArrival is when a transmission placed at p or later could arrive at
// the earliest, with the delays of later times.
func (h *hop) earliestArrival(bytes int, p placement) time.Duration {
	at := p.arrives
	for t := p.start; t < at; {
		c, until := h.line.Conditions(t)
		if c.Rate > 0 {
			at = min(at, t+h.line.Air(bytes, c.Rate)+c.Delay)
		}
		t = until
	}
	return at
}

// sendBurst places a packet whose frames follow each other at the first moment
// at which all of them get through.
func (h *hop) sendBurst(frames, each, last int, ready, horizon time.Duration) (placement, error) {
	c, _ := h.line.Conditions(ready)
	if c.Rate == 0 {
		return placement{}, errTooLong
	}
	full, end := h.line.Air(each, c.Rate), h.line.Air(last, c.Rate)
retry:
	for at := ready; at <= horizon; {
		h.line.Process.State(at) // the cursor that stays behind the frames
		process, done, t := h.line.Process.Clone(), h.done, at
		for i := range frames {
			air := full
			if i == frames-1 {
				air = end
			}
			o := int64(t / h.line.Opportunity)
			nth := done.nth(o)
			done = count{opportunity: o, started: nth + 1}
			if lost, same := process.Foresee(t, t+air, nth); lost {
				if same == channel.Forever {
					return placement{}, errTooLong
				}
				at += same - t
				if h.steps++; h.steps%256 == 0 && h.s.cancelled() {
					return placement{}, ErrCancelled
				}
				continue retry
			}
			t += air
		}
		return placement{start: at, end: t, arrives: t + c.Delay, done: done}, nil
	}
	return placement{}, errTooLong
}
