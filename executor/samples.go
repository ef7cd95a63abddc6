package executor

import (
	"fmt"
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
