package core

import (
	"math/bits"

	"linktrial/protocols/haul/wire"
)

// arrivedSymbols is the set of symbols that have arrived: all below next, and a bitmap beyond.
type symbolSet struct {
	next  uint64
	words []uint64 // bit i of words[0]: symbol (next &^ 63) + i
}

func (a *symbolSet) has(id uint64) bool {
	if id < a.next {
		return true
	}
	w := (id - a.next&^63) / 64
	return w < uint64(len(a.words)) && a.words[w]>>(id%64)&1 != 0
}

func (a *symbolSet) add(id uint64) {
	if id < a.next {
		return
	}
	w := int((id - a.next&^63) / 64)
	for len(a.words) <= w {
		a.words = append(a.words, 0)
	}
	a.words[w] |= 1 << (id % 64)
	for len(a.words) > 0 && a.words[0]>>(a.next%64)&1 != 0 {
		base := a.next &^ 63
		ones := bits.TrailingZeros64(^(a.words[0] >> (a.next % 64)))
		a.next += uint64(ones)
		if a.next >= base+64 {
			a.next = base + 64
			a.words = a.words[1:]
		}
	}
	if len(a.words) == 0 {
		a.words = nil
	}
}

// list lists the holes and what has arrived behind them, at most limit.
func (a *symbolSet) list(to []wire.Range, limit int) []wire.Range {
	to = to[:0]
	id, end := a.next, a.next&^63+uint64(len(a.words))*64
	var r wire.Range
	for id < end && len(to) < limit {
		word := a.words[(id-a.next&^63)/64] >> (id % 64)
		left := 64 - id%64
		if r.Arrived == 0 {
			n := min(uint64(bits.TrailingZeros64(word)), left)
			r.Missing += n
			id += n
			if n == left {
				continue
			}
			word >>= n
			left -= n
		}
		n := min(uint64(bits.TrailingZeros64(^word)), left)
		r.Arrived += n
		id += n
		if n < left {
			to = append(to, r)
			r = wire.Range{}
		}
	}
	if r.Arrived > 0 && len(to) < limit {
		to = append(to, r)
	}
	return to
}
