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
	// lateStep is the longest time between two counts of which the bytes are as good as
	// evenly spread: what passed before an attempt must not seem to pass in it.
	lateStep = portStep * 3 / 2
	// mostSpans bounds those of one port in a record; of more, neighbours become one.
	mostSpans = 64
	// Steps are of one span where they follow one another and their bytes are within this
	// factor of its mean; or where both have few bytes, also with a short gap between, as the
	// packets of a slow radio have.
	evenFactor = 2
	fewBytes   = 1500
	shortGap   = 3 * portStep
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
	steady  func() time.Duration // a clock that never steps
	looked  time.Duration        // by it, before the last look
	last    map[int]packettimes.Bytes
	spans   map[int][]journal.PortSpan // by the steady clock
	unknown string                     // why some may not have been counted in this record
}

func newPortTally(p Ports, steady func() time.Duration) *portTally {
	t := &portTally{ports: p, steady: steady, looked: steady(), last: map[int]packettimes.Bytes{}, spans: map[int][]journal.PortSpan{}}
	t.look()
	clear(t.spans) // of a time before
	if err := p.Attach(); err != nil {
		t.unknown = err.Error()
	}
	return t
}

// look adds what has passed since the look before. A look takes time where the processors
// are busy: what it finds may have passed until its end, and what it does not find since its
// begin.
func (t *portTally) look() {
	now := t.steady()
	found := map[int]packettimes.Bytes{}
	err := t.ports.Each(func(port int, all packettimes.Bytes) {
		if all != t.last[port] {
			found[port] = all
		}
	})
	length := t.steady() - t.looked
	for port, all := range found {
		before := t.last[port]
		t.last[port] = all
		t.spans[port] = added(t.spans[port], journal.PortSpan{Port: port, After: t.looked, Length: length, Coarse: length > lateStep,
			Sent: int64(all.Sent - before.Sent), Received: int64(all.Received - before.Received),
			SentPayload: int64(all.SentPayload - before.SentPayload), ReceivedPayload: int64(all.ReceivedPayload - before.ReceivedPayload)})
	}
	if err != nil {
		t.unknown = err.Error()
	}
	t.looked = now
}

// added is the spans of a port with what one more look has found.
func added(all []journal.PortSpan, x journal.PortSpan) []journal.PortSpan {
	if n := len(all); n > 0 && even(all[n-1], x) {
		all[n-1] = joined(all[n-1], x)
		return all
	}
	all = append(all, x)
	if len(all) <= mostSpans {
		return all
	}
	kept := all[:0]
	for i := 0; i < len(all); i += 2 {
		y := all[i]
		if i+1 < len(all) {
			y = joined(y, all[i+1])
			y.Coarse = true
		}
		kept = append(kept, y)
	}
	return kept
}

// even reports whether a look's packets came soon after those of a span, at about their rate.
func even(s, x journal.PortSpan) bool {
	gap := x.After - s.After - s.Length
	if s.Coarse || x.Coarse {
		return false
	}
	rate := func(y journal.PortSpan) float64 {
		return float64(y.Sent+y.Received) * float64(portStep) / float64(max(y.Length, 1))
	}
	a, b := rate(s), rate(x)
	return max(a, b) <= fewBytes && gap <= shortGap || max(a, b) <= evenFactor*min(a, b) && gap <= 0
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

// drain is what was counted since from, and empties the tally.
func (t *portTally) drain(from time.Duration) *journal.ListenerTraffic {
	out := &journal.ListenerTraffic{Unknown: t.unknown}
	for _, s := range t.spans {
		for _, x := range s {
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
		w.ports.look()
		if err != nil {
			w.ports.unknown = err.Error()
		}
		w.mu.Unlock()
	}
}
