package tun

import (
	"math/bits"
	"time"
)

// lateness is a histogram of times with 16 steps for each power of two, so
// that a value read from it is at most 1/16 too small. Fixed size: counting allocates nothing.
type lateness struct {
	counts [(64 - 4 + 1) * 16]uint64
	n      uint64
	max    time.Duration
}

func (h *lateness) add(d time.Duration) {
	d = max(0, d)
	h.counts[lateIndex(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

func lateIndex(v uint64) int {
	if v < 16 {
		return int(v)
	}
	e := bits.Len64(v) - 5 // v>>e is in 16…31
	return (e+1)*16 + int(v>>e) - 16
}

// quantile is the lower edge of the step that holds it.
func (h *lateness) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q * float64(h.n-1))
	var sum uint64
	for i, c := range h.counts {
		if sum += c; sum > rank {
			if i < 16 {
				return time.Duration(i)
			}
			e := i/16 - 1
			return time.Duration(uint64(i%16+16) << e)
		}
	}
	return h.max
}
