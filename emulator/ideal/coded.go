package ideal

import (
	"errors"
	"time"

	"linktrial/emulator/channel"
)

// sendCoded sends a packet again and again from ready on, without knowing the
// channel's future, until it gets through. One packet repeated until it gets
// through stands for packets of an ideal code: any of them counts as much.
func (h *hop) sendCoded(bytes int, ready, horizon time.Duration) (placement, error) {
	p := placement{start: -1}
	for {
		at, through, err := h.attempt(bytes, ready, horizon, true)
		if err != nil {
			return placement{}, err
		}
		if p.start < 0 {
			p.start = at.start
		}
		if through {
			at.start = p.start
			return at, nil
		}
		ready = at.end + h.gap
	}
}

// attempt sends what one turn holds of a packet: all of it or, with ARQ, frames
// until one is lost, which the next attempt begins with. It reports whether the
// whole packet is through. With skip it counts attempts that are certain to be
// lost in one step, where nothing else is to be sent meanwhile.
func (h *hop) attempt(bytes int, ready, horizon time.Duration, skip bool) (p placement, through bool, err error) {
	units, each, last := h.line.Units(bytes)
	p, lostUntil := placement{start: -1, end: ready}, time.Duration(0)
	lost := false
	for ; h.unit < units; h.unit++ {
		size := each
		if h.unit == units-1 {
			size = last
		}
		one, missed, same, err := h.transmit(size, p.end, horizon)
		if err != nil {
			return placement{}, false, err
		}
		if p.start < 0 {
			p.start = one.start
			if missed {
				lostUntil = same
			}
		}
		p.end, p.arrives = one.end, one.arrives
		lost = lost || missed
		if missed && h.s.n.ARQ != nil {
			break
		}
	}
	if h.unit == units {
		h.unit = 0
	}
	if lost && skip {
		p.end = h.skip(p, lostUntil)
	}
	p.done = h.done
	return p, !lost, nil
}

// transmit puts one transmission on the air as soon as it can; same is until
// when a later start would meet the same fate.
func (h *hop) transmit(bytes int, ready, horizon time.Duration) (p placement, lost bool, same time.Duration, err error) {
	if h.steps++; h.steps%4096 == 0 && h.s.cancelled() {
		return placement{}, false, 0, ErrCancelled
	}
	start, air, delay, _ := h.earliestStart(bytes, ready)
	if start > horizon {
		return placement{}, false, 0, errTooLong
	}
	o := int64(start / h.line.Opportunity)
	nth := h.done.nth(o)
	h.done = count{opportunity: o, started: nth + 1}
	lost, same = h.line.Process.Foresee(start, start+air, nth)
	h.lastDue = max(h.lastDue, start+air+delay) // nothing overtakes
	return placement{start: start, end: start + air, arrives: h.lastDue, done: h.done}, lost, same, nil
}

// earliestStart is when a transmission can start at the earliest, and its
// airtime and delay then, which hold for starts before until.
func (h *hop) earliestStart(bytes int, ready time.Duration) (start, air, delay, until time.Duration) {
	for start = ready; start != channel.Forever; {
		c, until := h.line.Conditions(start)
		if c.Rate == 0 {
			start = until
			continue
		}
		air := h.line.Air(bytes, c.Rate)
		fit := h.slots.Fit(start, air)
		if fit == start {
			return start, air, c.Delay, until
		}
		start = fit
	}
	return channel.Forever, 0, 0, 0
}

// skip is when the last of the attempts ends that follow one, each as long, and
// are lost for certain because every start before lostUntil is.
func (h *hop) skip(p placement, lostUntil time.Duration) time.Duration {
	_, until := h.line.Conditions(p.start)
	limit := min(lostUntil, until, h.s.horizon)
	// An answer that holds beyond its opportunity is the same for every
	// transmission in it. The last opportunity is left to be counted.
	step := p.end - p.start + h.gap
	if n := (limit - 2*h.line.Opportunity - step - p.start) / step; h.slots == nil && n > 0 {
		h.done = count{opportunity: -1}
		return p.end + n*step
	}
	return p.end
}

// sharedCoded is the schedule without knowledge of the future over a relay on
// one shared medium: the better of two rules.
func (s *search) sharedCoded() (time.Duration, error) {
	best, err := s.inTurn(false, s.horizon)
	if err != nil {
		return 0, err
	}
	switch t, err := s.inTurn(true, best); {
	case errors.Is(err, errTooLong):
	case err != nil:
		return 0, err
	default:
		best = min(best, t)
	}
	return best, nil
}

// inTurn gives the medium to the hop that can start first, of several to the
// one nearest to the source. With yield a hop whose channel at the moment loses
// more than half waits while another, whose does not, would be delayed by it.
func (s *search) inTurn(yield bool, bound time.Duration) (time.Duration, error) {
	hops := make([]*hop, len(s.links))
	state := make([]waiting, len(s.links))
	for i := range hops {
		var err error
		if hops[i], err = s.hop(i, false); err != nil {
			return 0, err
		}
	}
	free, transmitter, last := time.Duration(0), -1, len(hops)-1
	for state[last].sent < s.packets {
		for i := range hops {
			s.couldStart(i, hops[i], &state[i], free, transmitter)
		}
		pick := s.pickCoded(hops, state, yield)
		h, w := hops[pick], &state[pick]
		at, through, err := h.attempt(s.bytes(w.sent), w.at.start, bound, !yield)
		if err != nil {
			return 0, err
		}
		free, transmitter = at.end, pick
		if !through {
			continue
		}
		w.sent++
		w.at = at
		if pick < last {
			state[pick+1].arrivals = append(state[pick+1].arrivals, at.arrives)
		}
	}
	ends := make([]time.Duration, len(s.links))
	ends[last] = free
	return s.acknowledge(state[last].at.arrives, ends)
}

// couldStart finds when a hop's next transmission could start.
func (s *search) couldStart(i int, h *hop, w *waiting, free time.Duration, transmitter int) {
	w.possible = w.sent < s.packets && (i == 0 || w.sent < len(w.arrivals))
	if !w.possible {
		return
	}
	ready := free + h.gap
	if transmitter >= 0 && transmitter != i {
		ready = max(ready, free+s.n.Turnaround)
	}
	if i > 0 {
		ready = max(ready, w.arrivals[w.sent])
	}
	units, size, last := h.line.Units(s.bytes(w.sent))
	if h.unit == units-1 {
		size = last
	}
	start, air, _, _ := h.earliestStart(size, ready)
	w.at = placement{start: start, end: start + air}
}

// pickCoded chooses the hop that sends next; there is always one with a packet.
func (s *search) pickCoded(hops []*hop, state []waiting, yield bool) int {
	first := -1
	for i := range state {
		if state[i].possible && (first < 0 || state[i].at.start < state[first].at.start) {
			first = i
		}
	}
	if !yield || !hops[first].poor(state[first].at.start) {
		return first
	}
	other := -1
	for i := range state {
		w := &state[i]
		if i != first && w.possible && w.at.start < state[first].at.end+s.n.Turnaround && !hops[i].poor(w.at.start) &&
			(other < 0 || w.at.start < state[other].at.start) {
			other = i
		}
	}
	if other >= 0 {
		return other
	}
	return first
}

// poor reports whether the channel at a moment loses more than half, and will
// not always.
func (h *hop) poor(at time.Duration) bool {
	if at == channel.Forever {
		return false
	}
	state, until := h.line.Process.State(at)
	return state.Loss > 0.5 && until != channel.Forever
}
