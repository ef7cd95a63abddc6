package disturbance

import (
	"cmp"
	"context"
	"slices"
	"time"

	"linktrial/agents/packettimes"
	"linktrial/executor/journal"
)

const (
	// portStep is how often packets of listeners' ports are counted.
	portStep = journal.OtherTrafficStep
	// portGap is the longest time without packets of a port within a span.
	portGap = 3 * portStep
	// mostSpans bounds those of one port in a record; of more, neighbours become one.
	mostSpans = 64
)

// Ports has the bytes to and from listeners' ports since some time, see
// [packettimes.Traffic].
type Ports interface {
	Attach() error
	Each(f func(port int, all packettimes.Bytes)) error
}

// portTally is the listeners' traffic of the present record. The lock of its [Watch]
// guards it.
type portTally struct {
	ports   Ports
	looked  time.Duration // by the steady clock
	last    map[int]packettimes.Bytes
	spans   map[int]*portSpans
	unknown string // why some may not have been counted in this record
}

// portSpans are those of one port, by the steady clock.
type portSpans struct {
	gap time.Duration
	all []journal.PortSpan
}

func newPortTally(p Ports, now time.Duration) *portTally {
	t := &portTally{ports: p, looked: now, last: map[int]packettimes.Bytes{}, spans: map[int]*portSpans{}}
	t.look(now)
	clear(t.spans) // of a time before
	if err := p.Attach(); err != nil {
		t.unknown = err.Error()
	}
	return t
}

// look adds what has passed since the look before.
func (t *portTally) look(now time.Duration) {
	err := t.ports.Each(func(port int, all packettimes.Bytes) {
		before := t.last[port]
		if all == before {
			return
		}
		t.last[port] = all
		s := t.spans[port]
		if s == nil {
			s = &portSpans{gap: portGap}
			t.spans[port] = s
		}
		s.add(journal.PortSpan{Port: port, After: t.looked, Length: now - t.looked,
			Sent: int64(all.Sent - before.Sent), Received: int64(all.Received - before.Received),
			SentPayload: int64(all.SentPayload - before.SentPayload), ReceivedPayload: int64(all.ReceivedPayload - before.ReceivedPayload)})
	})
	if err != nil {
		t.unknown = err.Error()
	}
	t.looked = now
}

func (s *portSpans) add(x journal.PortSpan) {
	if n := len(s.all); n > 0 && x.After-s.all[n-1].After-s.all[n-1].Length < s.gap {
		s.all[n-1] = joined(s.all[n-1], x)
		return
	}
	s.all = append(s.all, x)
	if len(s.all) <= mostSpans {
		return
	}
	s.gap *= 2
	kept := s.all[:0]
	for i := 0; i < len(s.all); i += 2 {
		y := s.all[i]
		if i+1 < len(s.all) {
			y = joined(y, s.all[i+1])
		}
		kept = append(kept, y)
	}
	s.all = kept
}

// joined is two spans of a port as one.
func joined(a, b journal.PortSpan) journal.PortSpan {
	a.Length = b.After + b.Length - a.After
	a.Sent += b.Sent
	a.Received += b.Received
	a.SentPayload += b.SentPayload
	a.ReceivedPayload += b.ReceivedPayload
	return a
}

// take is what was counted since from, and empties the tally.
func (t *portTally) take(from time.Duration) *journal.ListenerTraffic {
	out := &journal.ListenerTraffic{Unknown: t.unknown}
	for _, s := range t.spans {
		for _, x := range s.all {
			x.After -= from
			out.Spans = append(out.Spans, x)
		}
	}
	slices.SortFunc(out.Spans, func(a, b journal.PortSpan) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.Port, b.Port))
	})
	clear(t.spans)
	t.unknown = ""
	return out
}

// watchPorts counts until ctx ends.
func (w *Watch) watchPorts(ctx context.Context) {
	step := time.NewTicker(portStep)
	defer step.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-step.C:
		}
		var err error
		if n%int(againAfter/portStep) == 0 {
			err = w.cfg.Ports.Attach()
		}
		w.mu.Lock()
		_, now := w.cfg.Clocks()
		w.ports.look(now)
		if err != nil {
			w.ports.unknown = err.Error()
		}
		w.mu.Unlock()
	}
}
