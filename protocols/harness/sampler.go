package harness

import (
	"sync"
	"sync/atomic"
	"time"

	"linktrial/protocols/contract"
)

// The interval doubles after the first samplesFull samples and after every
// samplesMore that follow: ten hours at 100 ms then yield about 3000 samples
// and not 360 000. Nobody plots more, and in virtual time each sample costs
// more than the idle time around it.
const (
	samplesFull = 500
	samplesMore = 250
)

// schedule says when the next sample is due.
type schedule struct {
	next     time.Duration // since the transfer's clock started
	interval time.Duration
	count    int
}

// taken notes a sample at the moment t. Beats that were missed are left out.
func (s *schedule) taken(t time.Duration) {
	s.count++
	if s.count == samplesFull || s.count > samplesFull && (s.count-samplesFull)%samplesMore == 0 {
		s.interval *= 2
	}
	s.next += s.interval
	if s.next <= t {
		s.next += (t - s.next) / s.interval * s.interval
		s.next += s.interval
	}
}

// sampler writes one transfer's samples, from a goroutine of its own that stop ends.
type sampler struct {
	ev       *events
	conn     Conn
	transfer string
	sender   bool
	payload  func(stream int64) int64 // of so many bytes after the header; nil: all of them
	start    time.Time
	in       *incoming     // of a server
	bytes    atomic.Int64  // payload sent, or received and handed over
	acked    int64         // the highest seen
	last     time.Duration // the moment of the last sample

	once sync.Once
	quit chan struct{}
	done chan struct{}
}

// sample begins the samples of a transfer: of what is received where in is set, else of
// what is sent.
func (r *run) sample(c Conn, transfer string, in *incoming, start time.Time) *sampler {
	s := &sampler{ev: r.ev, conn: c, transfer: transfer, sender: in == nil, start: start, in: in,
		quit: make(chan struct{}), done: make(chan struct{})}
	if in != nil {
		in.handed = &s.bytes
	}
	if r.p.Transfer.DurationMS > 0 {
		s.payload = openPayload
	}
	go s.loop(time.Duration(r.p.SampleIntervalMS) * time.Millisecond)
	return s
}

func (s *sampler) loop(interval time.Duration) {
	defer close(s.done)
	sch := schedule{next: interval, interval: interval}
	t := time.NewTimer(time.Until(s.start.Add(sch.next)))
	defer t.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-t.C:
		}
		now := time.Since(s.start)
		x := s.take(now)
		s.ev.write(&contract.Event{Event: contract.KindSample, Transfer: s.transfer, Sample: &x})
		sch.taken(now)
		t.Reset(time.Until(s.start.Add(sch.next)))
	}
}

func (s *sampler) take(elapsed time.Duration) contract.Sample {
	s.last = max(s.last, elapsed)
	if s.in != nil {
		s.in.flush() // what a sample counts is there before it
	}
	x := contract.Sample{ElapsedNS: s.last.Nanoseconds(), SentBytes: s.bytes.Load()}
	s.conn.Sample(&x, s.sender)
	if x.AckedBytes != nil {
		// The protocol's count and ours are not read in one instant. What was
		// acknowledged once stays so, and no more can be than was sent.
		acked := *x.AckedBytes - contract.HeaderSize
		if s.payload != nil {
			acked = s.payload(acked)
		}
		s.acked = max(s.acked, min(acked, x.SentBytes))
		acked = s.acked
		x.AckedBytes = &acked
	}
	return x
}

// end stops the samples and waits for the goroutine.
func (s *sampler) end() {
	s.once.Do(func() { close(s.quit) })
	<-s.done
}

// finish ends the samples of a transfer that went well with a last one, taken
// at the given moment of its clock (or just after it, where a sample came in
// between), which it writes and returns.
func (s *sampler) finish(elapsed time.Duration) *contract.Sample {
	s.end()
	x := s.take(elapsed)
	if x.AckedBytes != nil {
		// The server's byte acknowledges everything.
		*x.AckedBytes = x.SentBytes
	}
	s.ev.write(&contract.Event{Event: contract.KindSample, Transfer: s.transfer, Sample: &x})
	return &x
}
