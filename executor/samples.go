package executor

import (
	"fmt"
	"math"
	"time"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// A record of samples is written when it holds samples of so long or so much.
const (
	samplesEvery = time.Second
	samplesBytes = 128 << 10 // of the driver's lines
)

// sampleBatch gathers the samples of one side of a flow into records of about a
// second each.
type sampleBatch struct {
	record *recorder
	clock  Clock
	head   journal.Samples // the next record
	since  time.Time       // its first sample's
	size   int             // of its lines, bytes
	last   *contract.Sample
	told   bool // that a metric went back
	rtt    roundTrips
}

// roundTrips is the mean of a flow's round-trip times over its time, each smoothed one for
// the time since the sample before (RFC 6349, section 4.3.1, has one a second), and the least.
type roundTrips struct {
	until    int64 // ns: elapsed_ns of the newest sample
	weighted float64
	weight   float64 // ns
	least    *int64  // µs
}

func (r *roundTrips) add(s *contract.Sample) {
	since := s.ElapsedNS - r.until
	r.until = max(r.until, s.ElapsedNS)
	if s.SRTTUS != nil && since > 0 {
		r.weighted += float64(*s.SRTTUS) * float64(since)
		r.weight += float64(since)
	}
	if m := s.MinRTTUS; m != nil && (r.least == nil || *m < *r.least) {
		r.least = m
	}
}

// result is nil where the protocol tells no round-trip times.
func (r *roundTrips) result() *journal.RoundTrips {
	if r.weight == 0 {
		return nil
	}
	return &journal.RoundTrips{MeanUS: math.Round(r.weighted/r.weight*1e3) / 1e3, LeastUS: r.least}
}

// add takes a sample that was a line of size bytes. It says once where a metric went back
// that only grows ([contract.Cumulative]): nothing of such a curve can be believed.
func (b *sampleBatch) add(s contract.Sample, size int) (breach string) {
	now := b.clock.Now()
	if len(b.head.Samples) == 0 {
		b.since = now
	}
	b.head.Samples = append(b.head.Samples, s)
	b.size += size
	if !b.told && b.last != nil {
		breach = wentBack(b.last, &s)
		b.told = breach != ""
	}
	b.last = &s
	b.rtt.add(&s)
	if b.size >= samplesBytes || now.Sub(b.since) >= samplesEvery {
		b.flush()
	}
	return breach
}

// wentBack says which cumulative metric of a sample is less than in the one before; empty: none.
func wentBack(before, now *contract.Sample) string {
	for i := range contract.Metrics {
		f := &contract.Metrics[i]
		// One that is absent is not a number, which is not less.
		if was, is := f.Value(before), f.Value(now); f.Kind == contract.Cumulative && is < was {
			return fmt.Sprintf("%s went back from %.0f to %.0f in a sample", f.Name, was, is)
		}
	}
	return ""
}

func (b *sampleBatch) flush() {
	if len(b.head.Samples) == 0 {
		return
	}
	b.record.append(journal.TypeSamples, b.head)
	b.head.Samples, b.size = nil, 0
}
