package executor

import (
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
}

// add takes a sample that was a line of size bytes.
func (b *sampleBatch) add(s contract.Sample, size int) {
	now := b.clock.Now()
	if len(b.head.Samples) == 0 {
		b.since = now
	}
	b.head.Samples = append(b.head.Samples, s)
	b.size += size
	b.last = &s
	if b.size >= samplesBytes || now.Sub(b.since) >= samplesEvery {
		b.flush()
	}
}

func (b *sampleBatch) flush() {
	if len(b.head.Samples) == 0 {
		return
	}
	b.record.append(journal.TypeSamples, b.head)
	b.head.Samples, b.size = nil, 0
}
