package secure

import "math"

// replayWindow is how many packet numbers back a late packet is still accepted.
const replayWindow = 4096

// Replay remembers which of the last 4096 packet numbers have been received.
// Its zero value is ready. It is a ring of words, as in RFC 6479: one word more
// than the window, so that the newest is cleared without touching the oldest.
type Replay struct {
	next  uint64 // one more than the highest accepted number
	words [replayWindow/64 + 1]uint64
}

// Check reports whether a packet of this number would be accepted: it is not
// older than the window, and none of this number was accepted before.
func (r *Replay) Check(number uint64) bool {
	switch {
	case number == math.MaxUint64: // reserved, and next could not be more
		return false
	case number >= r.next:
		return true
	case r.next-number > replayWindow:
		return false
	}
	return r.words[number/64%uint64(len(r.words))]&(1<<(number%64)) == 0
}

// Accept notes the number of a packet after the packet was authenticated. One
// that Check refuses changes nothing.
func (r *Replay) Accept(number uint64) {
	if !r.Check(number) {
		return
	}
	size := uint64(len(r.words))
	if number >= r.next {
		// The words that begin after the highest number so far.
		first, last := (r.next+63)/64, number/64
		if last >= first && last-first >= size {
			first = last - size + 1
		}
		for w := first; w <= last; w++ {
			r.words[w%size] = 0
		}
		r.next = number + 1
	}
	r.words[number/64%size] |= 1 << (number % 64)
}
