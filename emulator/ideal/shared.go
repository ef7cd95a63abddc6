package ideal

import (
	"errors"
	"time"
)

// Flows of more than gridAbove packets have too many switching points to try
// all: gridPoints of them are tried, and then more around the best one.
const (
	gridAbove  = 256
	gridPoints = 32
)

// shared finds the best schedule over a relay on one shared medium.
func (s *search) shared() (time.Duration, error) {
	if err := s.checkHops(); err != nil {
		return 0, err
	}
	b := bestSwitch{s: s, at: s.packets}
	if err := b.try(s.packets); err != nil { // whole flow to the relay first: best on a perfect channel
		return 0, err
	}
	step := 1
	if s.packets > gridAbove {
		step = s.packets / gridPoints
	}
	for k := 0; k < s.packets; k += step {
		if err := b.try(k); err != nil {
			return 0, err
		}
	}
	for step > 1 {
		from := b.at
		step = (step + 1) / 2
		if step == 1 {
			break
		}
		for _, k := range []int{from - step, from + step} {
			if k >= 0 && k <= s.packets {
				if err := b.try(k); err != nil {
					return 0, err
				}
			}
		}
	}
	if b.time == 0 {
		return 0, errTooLong
	}
	return b.time, nil
}

// checkHops returns an error where a hop could not carry the flow in time even
// if it had the medium to itself. That bounds every schedule, and on a channel
// that never recovers it saves trying them.
func (s *search) checkHops() error {
	for i := range s.links {
		h, err := s.hop(i, false)
		if err != nil {
			return err
		}
		var free time.Duration
		for p := range s.packets {
			at, err := h.send(s.bytes(p), free+h.gap, s.horizon)
			if err != nil {
				return err
			}
			h.commit(at)
			free = at.end
		}
	}
	return nil
}

// bestSwitch is the best schedule that was tried so far.
type bestSwitch struct {
	s    *search
	time time.Duration // 0: none is within the horizon
	at   int           // its switching point
}

// try computes the schedules with a switching point, and keeps the better one.
func (b *bestSwitch) try(switchAt int) error {
	for _, eager := range []bool{false, true} {
		bound := b.s.horizon
		if b.time > 0 {
			bound = min(bound, b.time)
		}
		t, err := b.s.schedule(switchAt, eager, bound)
		switch {
		case errors.Is(err, errTooLong):
		case err != nil:
			return err
		case b.time == 0 || t < b.time:
			b.time, b.at = t, switchAt
		}
	}
	return nil
}

// waiting is a hop's next transmission, as far as it can be foreseen.
type waiting struct {
	possible bool
	at       placement
	foreseen bool // at is the best from some earlier ready time on
	sent     int
	arrivals []time.Duration // when packet i can leave on this hop; nil: all at 0
}

// schedule returns the time of one schedule: until switchAt packets have left the
// source, the first hop has precedence, then the last. A hop without precedence
// sends while it delays no other; with eager also whenever it can start earlier.
func (s *search) schedule(switchAt int, eager bool, bound time.Duration) (time.Duration, error) {
	hops := make([]*hop, len(s.links))
	state := make([]waiting, len(s.links))
	for i := range hops {
		var err error
		if hops[i], err = s.hop(i, false); err != nil {
			return 0, err
		}
		if i > 0 {
			state[i].arrivals = make([]time.Duration, 0, s.packets)
		}
	}
	free, transmitter := time.Duration(0), -1
	for state[len(state)-1].sent < s.packets {
		for i := range state {
			// A hop that cannot send in time makes the whole schedule late.
			if err := s.foresee(i, hops[i], &state[i], free, transmitter, bound); err != nil {
				return 0, err
			}
		}
		pick := s.pick(hops, state, state[0].sent < switchAt, eager)
		w, h := &state[pick], hops[pick]
		h.commit(w.at)
		free, transmitter = w.at.end, pick
		if free > bound {
			return 0, errTooLong
		}
		w.sent++
		w.foreseen = false
		if pick+1 < len(state) {
			next := &state[pick+1]
			next.arrivals = append(next.arrivals, w.at.arrives)
		}
	}
	ends := make([]time.Duration, len(s.links))
	ends[len(ends)-1] = free
	return s.acknowledge(state[len(state)-1].at.arrives, ends)
}

// foresee finds when a hop could next send.
func (s *search) foresee(i int, h *hop, w *waiting, free time.Duration, transmitter int, bound time.Duration) error {
	w.possible = w.sent < s.packets && (i == 0 || w.sent < len(w.arrivals))
	if !w.possible {
		return nil
	}
	ready := free + h.gap
	if transmitter >= 0 && transmitter != i {
		ready = max(ready, free+s.n.Turnaround)
	}
	if i > 0 {
		ready = max(ready, w.arrivals[w.sent])
	}
	if w.foreseen && ready <= w.at.start {
		return nil // nothing gets through before, as seen earlier
	}
	at, err := h.send(s.bytes(w.sent), ready, bound)
	if err != nil {
		return err
	}
	w.at, w.foreseen = at, true
	return nil
}

// pick chooses the hop that sends next; there is always one with a packet.
func (s *search) pick(hops []*hop, state []waiting, firstHop, eager bool) int {
	first := -1
	for n := range state {
		i := n
		if !firstHop {
			i = len(state) - 1 - n
		}
		if !state[i].possible {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		if eager && state[i].at.start < state[first].at.start {
			return i
		}
		if state[i].at.end+max(s.n.Turnaround, hops[i].gap) <= state[first].at.start {
			return i
		}
	}
	return first
}
