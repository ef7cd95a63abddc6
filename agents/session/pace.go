package session

import "time"

// pace sizes the batches of a journal by what the link has carried before: a batch that
// a window or a limit cuts short has to be sent again. It is no clock: times come in.
type pace struct {
	size, most int // bytes: of the next batch where time does not bound it, and of any
	// Of the batches that were stored, the quickest and the largest: one tells of the
	// round trip, the other of the rate.
	quickest, largest batch
}

// batch is how long one took, from the request to the answer.
type batch struct {
	bytes int
	took  time.Duration
}

// The bounds of a batch.
const (
	firstBatch = 4 << 10 // bytes, with in-band control; compressed less than a thousand
	leastBatch = 256     // bytes: less is hardly a record
	growth     = 4       // the next one is at most so many times as large
)

// margin is what a batch may take of the time that is left: round trips vary.
const margin = 0.6

// next is the size of a batch that is to be answered within left; false: none is that
// small, as far as is known.
func (p *pace) next(left time.Duration) (bytes int, fits bool) {
	most := time.Duration(margin * float64(left))
	quick, large := p.quickest, p.largest
	switch {
	case large.bytes == 0:
		return p.size, left > 0
	case large.took <= most:
		// Some of its time was the round trip, which a larger one takes once as well.
		return int(min(float64(p.size), float64(large.bytes)*float64(most)/float64(max(large.took, 1)))), true
	case quick == large && large.bytes > 2*leastBatch: // a smaller one may be quicker
		return max(leastBatch, int(float64(large.bytes)*float64(most)/float64(large.took)/2)), most > 0
	case quick.took <= most:
		more := float64(large.bytes-quick.bytes) * float64(most-quick.took) / float64(large.took-quick.took)
		return min(p.size, quick.bytes+int(more)), true
	}
	return 0, false
}

// stored takes note that a batch was stored after so long.
func (p *pace) stored(bytes int, took time.Duration) {
	b := batch{bytes, took}
	if p.largest.bytes == 0 || bytes >= p.largest.bytes || took > p.largest.took {
		p.largest = b
	}
	if p.quickest.bytes == 0 || took <= p.quickest.took || bytes <= p.quickest.bytes {
		p.quickest = b
	}
	if p.quickest.bytes > p.largest.bytes {
		p.quickest = p.largest
	}
	p.size = min(p.most, max(p.size, growth*bytes))
}

// cut takes note that a batch had no answer in time: how fast the link is now is not known.
func (p *pace) cut(bytes int) {
	*p = pace{size: max(leastBatch, min(p.size, bytes)/2), most: p.most}
}
