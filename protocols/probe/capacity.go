package main

import (
	"errors"
	"syscall"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/measure"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/search"
	"linktrial/protocols/probe/wire"
)

const (
	// searchTime is that of a search that no time bounds.
	searchTime = time.Minute
	// lookUp is how long at most the sender does not look whether it is to stop, nor, where
	// packets follow each other sooner, for reports.
	lookUp = 20 * time.Millisecond
	// reportMargin is what an answer may take beyond the shortest so far.
	reportMargin = 250 * time.Millisecond
	reportAgain  = 8 * time.Second // most
)

// searching is a search for the capacity at its sending end.
type searching struct {
	*sender
	search *search.Search
	stop   <-chan struct{}
	beat   *harness.Beat
	lasts  time.Duration
	buf    []byte
	in     []byte

	step    uint32
	asks    []time.Time // of the step, or of a size; the number of one is its index and base
	base    uint16
	round   time.Duration // the shortest from an ask to its answer
	stopped bool
	rate    float64 // of the present step
}

// capacity sends the packets of a search for the capacity. Where it is stopped before the
// capacity is found, what it has found is not reported.
func (s *sender) capacity(stop <-chan struct{}, spec *pattern.Spec) error {
	lasts := s.lasts
	if lasts == 0 {
		if lasts = searchTime; s.limit > 0 { // the metrics must still come within it
			lasts = min(lasts, max(0, s.limit-drain))
		}
	}
	x := &searching{sender: s, stop: stop, lasts: lasts, beat: harness.NewBeat(s.interval), buf: make([]byte, pattern.MaxBytes), in: make([]byte, 2048), base: 1,
		search: search.New(search.Bounds{HeaderBytes: s.header, Largest: burstPayload, Highest: spec.Highest, Time: lasts, Hold: spec.Hold})}
	largest := 0
	for {
		began := time.Since(s.begin)
		step := x.search.Next(began)
		x.rate = step.Rate
		sent, over, err := x.send(step)
		switch {
		case err != nil:
			return err
		case x.stopped && (!step.Hold || sent < 2), sent == 0:
			return nil
		case step.Hold:
			found := x.search.Found(step)
			found.Step, found.Sent, found.HeldNS, found.Largest, found.SearchNS = int64(x.step), int64(sent), over.Nanoseconds(), int64(largest), began.Nanoseconds()
			s.sent.Search = &found
			return nil
		}
		report, waited, err := x.report()
		if err != nil || report == nil {
			return err
		}
		x.search.Take(step, sent, rateOf(sent, step.Payload+s.header, over), report, waited)
		x.tell(step, sent, report)
		if largest == 0 && x.search.Estimate() > 0 {
			if largest, err = x.largestPayload(); err != nil || x.stopped {
				return err
			}
			x.search.SetLargest(max(largest, burstPayload))
		}
	}
}

// burstPayload is that of packets before more is known to pass.
const burstPayload = 100

// rateOf is that of packets of a size, whose first and last were sent so long apart, in
// bit/s.
func rateOf(packets, bytes int, over time.Duration) float64 {
	return float64(8*bytes*(packets-1)) / max(over.Seconds(), 1e-9)
}

// tell reports a step as a sample.
func (x *searching) tell(step search.Step, sent int, r *wire.Report) {
	out := x.sample(time.Since(x.begin))
	out.PacingBPS = &x.rate
	if e := x.search.Estimate(); e > 0 {
		out.BandwidthBPS = &e
	}
	out.More["search_step"] = float64(x.step)
	out.More["search_payload_bytes"] = float64(step.Payload)
	out.More["search_sent_packets"] = float64(sent)
	out.More["search_received_packets"] = float64(r.Received)
	out.More["search_delay_growth_us"] = float64(r.GrowthNS) / 1e3
	out.More["search_queue_delay_us"] = float64(r.ExcessNS) / 1e3
	x.out.Sample(x.id, out)
}

// send sends the packets of a step, until the receiving end warns that the delay grows,
// or the sender is stopped. over is the time from the first packet to the last.
func (x *searching) send(step search.Step) (sent int, over time.Duration, err error) {
	x.step++
	x.base += uint16(len(x.asks))
	x.asks = x.asks[:0]
	pause := time.Duration(0)
	if step.Rate > 0 {
		pause = time.Duration(float64(8*(step.Payload+x.header)) / step.Rate * 1e9)
	}
	begin := time.Now()
	looked := begin
	for sent < step.Packets && x.sent.Packets < measure.MaxPackets {
		due := begin.Add(time.Duration(sent) * pause)
		for now := time.Now(); now.Before(due) || now.Sub(looked) > lookUp; now = time.Now() {
			looked = now
			r, err := x.next(due)
			switch {
			case err != nil:
				return 0, 0, err
			case x.stopped, r != nil && r.Number == 0 && r.Step == x.step && !step.Hold:
				return sent, over, nil
			}
		}
		over = time.Since(begin)
		if err := x.one(step.Payload); err != nil {
			return 0, 0, err
		}
		sent++
	}
	return sent, over, nil
}

// one sends a packet. What a router has said of the size of an earlier one is told here.
func (x *searching) one(payload int) error {
	at, _ := x.clock.now()
	n := x.sent.Packets
	b := x.buf[:payload]
	x.key.Packet(b, x.step, uint32(n), at)
	_, err := x.conn.Write(b)
	if errors.Is(err, syscall.EMSGSIZE) {
		_, err = x.conn.Write(b)
	}
	x.sent.Packets++
	x.sent.Bytes += int64(payload)
	x.log.row(n, at, int64(payload))
	if errors.Is(err, syscall.ECONNREFUSED) {
		return x.errRefused
	}
	return nil
}

// next takes the next report, until a time and for [lookUp] at most; nil: none came.
func (x *searching) next(until time.Time) (*wire.Report, error) {
	select {
	case <-x.stop:
		x.stopped = true
		return nil, nil
	default:
	}
	now := time.Now()
	if elapsed := now.Sub(x.begin); elapsed >= x.beat.Next() {
		out := x.sample(elapsed)
		out.PacingBPS = &x.rate
		x.out.Sample(x.id, out)
		x.beat.Taken(elapsed)
	}
	if soon := now.Add(lookUp); soon.Before(until) {
		until = soon
	}
	if err := x.conn.SetReadDeadline(until); err != nil {
		return nil, err
	}
	n, _, err := x.conn.receive(x.in)
	switch {
	case isTimeout(err), errors.Is(err, syscall.EMSGSIZE): // the latter of an earlier packet
		return nil, nil
	case isRefusal(err):
		return nil, x.errRefused
	case err != nil:
		return nil, err
	case x.key.IsUnknown(x.in[:n]):
		return nil, errUnknown
	}
	if r, ok := x.key.ParseReport(x.in[:n]); ok {
		return &r, nil
	}
	return nil, nil
}

// report asks for the report of the step until it comes: what waits in a queue before
// the question has left it then. waited is the time from the question to its answer.
// nil: the sender is stopped.
func (x *searching) report() (r *wire.Report, waited time.Duration, err error) {
	limit := x.begin.Add(x.lasts + drain/2)
	pause := max(askAgain, x.round*3/2+reportMargin)
	for {
		now := time.Now()
		if !now.Before(limit) {
			return nil, 0, harness.Failf(contract.CodeTransferTimeout, "no report of the receiving end on step %d of the search within %s of the probe's time", x.step, drain/2)
		}
		if r, waited, err = x.ask(0, 1, 0, now.Add(pause)); r != nil || err != nil || x.stopped {
			return r, waited, err
		}
		pause = min(2*pause, reportAgain)
	}
}

// ask asks for a report in some datagrams of a size, and waits for it until a time. The
// answers to all questions of the step count from the one with the index first on.
func (x *searching) ask(size, times, first int, until time.Time) (r *wire.Report, waited time.Duration, err error) {
	for range times {
		x.asks = append(x.asks, time.Now())
		_, err := x.conn.Write(x.key.Ask(x.step, x.base+uint16(len(x.asks)-1), size))
		if errors.Is(err, syscall.EMSGSIZE) && size > 0 {
			return nil, 0, errTooLarge
		}
	}
	for time.Now().Before(until) {
		r, err := x.next(until)
		if err != nil || x.stopped {
			return nil, 0, err
		}
		if r == nil || r.Step != x.step {
			continue
		}
		at := int(r.Number - x.base)
		if r.Number == 0 || at < first || at >= len(x.asks) {
			continue
		}
		waited := time.Since(x.asks[at])
		if x.round == 0 || waited < x.round {
			x.round = waited
		}
		return r, waited, nil
	}
	return nil, 0, nil
}

// errTooLarge: the node itself does not send a datagram of a size.
var errTooLarge = errors.New("the datagram is too large for the node")
