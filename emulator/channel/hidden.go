package channel

import (
	"math"
	"time"

	"linktrial/internal/radio"
)

// hidden is bit errors from a hidden Markov model (dantas-2011, section VI.B).
// Bit b is on the air around b·bit; a transmission has the bits that start
// within it, to the nearest bit, so that two that follow each other share none.
//
// The chain is kept as its sojourns, as the two-state chain is, and the wrong
// bits of a sojourn as the gaps between them, so that neither right bits nor
// states without errors cost draws.
type hidden struct {
	bit     float64 // nanoseconds
	seed    uint64
	block   int64      // bits after which the state is drawn afresh
	stay    []float64  // by state
	next    [][]uint64 // by state: cumulative thresholds of the next one, given that it is another
	rates   []float64  // bit error rates
	leaves  []float64  // by state: fails of leaving it, and of a wrong bit
	errs    []float64
	initial []uint64    // cumulative thresholds of the long run
	code    reedSolomon // BlockSymbols 0: none
	at      bitCursor
}

// bitCursor is a place in the realisation; a copy looks ahead.
type bitCursor struct {
	block   int64
	sojourn uint64 // counted within the block
	state   int
	from    int64 // first bit of the sojourn
	until   int64 // first bit after it
	wrong   int64 // the present wrong bit of the sojourn; ≥ until: it has none left
	nth     uint64
}

const never = math.MaxInt64

func newHidden(h *radio.HiddenMarkov, p Params, seed uint64) *hidden {
	out := &hidden{bit: p.Bit, seed: hash(seed, domainState, 0, 0), rates: h.BitErrorRates, at: bitCursor{block: -1}}
	pi, _ := h.Stationary() // checked before
	out.initial = cumulative(pi, -1)
	longest := 1.0
	for i, row := range h.Transition {
		out.stay = append(out.stay, row[i])
		out.leaves, out.errs = append(out.leaves, fails(1-row[i])), append(out.errs, fails(h.BitErrorRates[i]))
		out.next = append(out.next, cumulative(row, i))
		if row[i] < 1 {
			longest = max(longest, 1/(1-row[i]))
		}
	}
	// Long against the longest state, so that the edge of a block is rare.
	out.block = blockSlots
	for out.block < 1<<50 && float64(out.block) < 1024*longest {
		out.block *= 2
	}
	if p.Code != nil {
		out.code = reedSolomon{block: p.Code.BlockSymbols, parity: p.Code.BlockSymbols - p.Code.DataSymbols, counts: make([]int, max(1, p.Code.InterleavingDepth))}
	}
	return out
}

// cumulative is the thresholds of a choice by the given weights, but for one of them.
func cumulative(weights []float64, but int) []uint64 {
	sum := 0.0
	for i, w := range weights {
		if i != but {
			sum += w
		}
	}
	out := make([]uint64, len(weights))
	part, last := 0.0, -1
	for i, w := range weights {
		if i != but && w > 0 {
			part += w
			last = i
		}
		if sum > 0 {
			out[i] = threshold(min(1, part/sum))
		}
	}
	for i := max(0, last); i < len(out); i++ {
		out[i] = one // whatever the rounding
	}
	return out
}

func choose(thresholds []uint64, d uint64) int {
	for i, t := range thresholds {
		if d < t {
			return i
		}
	}
	return len(thresholds) - 1
}

// geometric draws how many trials pass up to and with the first success; fail
// is 1/log(1 − p) with p its probability, 0 where it is certain. At most limit.
func geometric(h uint64, fail float64, limit int64) int64 {
	return 1 + int64(min(math.Log(unit(h))*fail, float64(limit)))
}

// fails returns the argument of geometric for a probability of more than 0.
func fails(p float64) float64 {
	if p >= 1 {
		return 0
	}
	return 1 / math.Log1p(-p)
}

// advance moves a cursor to the sojourn that holds a bit.
func (h *hidden) advance(c *bitCursor, bit int64) {
	if b := bit / h.block; b != c.block {
		c.block, c.sojourn, c.from = b, 0, b*h.block
		c.state = choose(h.initial, draw(hash(h.seed, domainInitial, uint64(b), 0)))
		h.enter(c)
	}
	for c.until <= bit && c.until < (c.block+1)*h.block {
		c.from = c.until
		c.sojourn++
		if h.stay[c.state] < 1 {
			c.state = choose(h.next[c.state], draw(hash(h.seed, domainInitial, uint64(c.block), c.sojourn)))
		}
		h.enter(c)
	}
}

// enter draws a sojourn's length and its first wrong bit.
func (h *hidden) enter(c *bitCursor) {
	c.until = (c.block + 1) * h.block
	if p := h.stay[c.state]; p < 1 {
		c.until = min(c.until, c.from+geometric(hash(h.seed, domainSojourn, uint64(c.block), c.sojourn), h.leaves[c.state], h.block))
	}
	c.nth, c.wrong = 0, c.from-1
	h.err(c)
}

// err moves to the next wrong bit of the sojourn.
func (h *hidden) err(c *bitCursor) {
	if h.rates[c.state] <= 0 {
		c.wrong = never
		return
	}
	sojourn := hash(h.seed, domainBit, uint64(c.block), c.sojourn)
	c.wrong += geometric(mix(sojourn+c.nth*golden), h.errs[c.state], h.block)
	c.nth++
}

// seek finds the first wrong bit from one bit to before another.
func (h *hidden) seek(c *bitCursor, from, to int64) (int64, bool) {
	for from < to {
		h.advance(c, from)
		for c.wrong < from {
			h.err(c)
		}
		if c.wrong < c.until {
			return c.wrong, c.wrong < to
		}
		from = c.until
	}
	return 0, false
}

// span is the bits of a transmission.
func (h *hidden) span(start, end time.Duration) (first, count int64) {
	return int64(math.Round(float64(start) / h.bit)), int64(math.Round(float64(end-start) / h.bit))
}

// place moves the process to a bit, past the wrong ones before it.
func (h *hidden) place(bit int64) {
	h.advance(&h.at, bit)
	for h.at.wrong < min(bit, h.at.until) {
		h.err(&h.at)
	}
}

// moment is the first start whose first bit is at least the given one.
func (h *hidden) moment(bit int64) time.Duration {
	t := math.Ceil((float64(bit) - 0.5) * h.bit)
	if t >= float64(Forever)/2 {
		return Forever
	}
	return time.Duration(max(0, t))
}

func (h *hidden) Lost(start, end time.Duration) bool {
	first, n := h.span(start, end)
	h.place(first)
	c := h.at
	if h.code.block > 0 {
		return !h.code.readable(h, &c, first, n)
	}
	_, wrong := h.seek(&c, first, first+n)
	return wrong
}

func (h *hidden) Foresee(start, end time.Duration, _ uint64) (bool, time.Duration) {
	first, n := h.span(start, end)
	h.place(first)
	c := h.at
	next := max(start+1, h.moment(first+1))
	if h.code.block > 0 {
		return !h.code.readable(h, &c, first, n), next
	}
	last, lost := int64(0), false
	for from := first; ; from = last + 1 {
		b, wrong := h.seek(&c, from, first+n)
		if !wrong {
			break
		}
		last, lost = b, true
	}
	if lost { // every start up to the last wrong bit meets it
		next = max(next, h.moment(last+1))
	}
	return lost, next
}

func (h *hidden) Clone() Process {
	c := *h
	c.code.counts = make([]int, len(h.code.counts))
	return &c
}

func (h *hidden) State(at time.Duration) (State, time.Duration) {
	first, _ := h.span(at, at)
	h.advance(&h.at, first)
	return State{BitErrorRate: h.rates[h.at.state]}, max(at+1, h.moment(h.at.until))
}

// reedSolomon is a code of 8-bit symbols. A transmission is as many blocks as
// its symbols need; as many at a time as the interleaver is deep are sent
// symbol by symbol in turn. A block that is shorter than the others is a
// shortened one of the same rate, so its correcting power is in proportion.
type reedSolomon struct {
	block, parity int   // symbols
	counts        []int // wrong symbols by block of the group; its length is the interleaver's depth
}

// readable reports whether every block of a transmission of n bits is.
func (r *reedSolomon) readable(h *hidden, c *bitCursor, first, n int64) bool {
	symbols := int(n+7) / 8
	for at := 0; at < symbols; {
		group := min(len(r.counts)*r.block, symbols-at)
		depth := (group + r.block - 1) / r.block
		clear(r.counts)
		begin, end := first+int64(at)*8, min(first+int64(at+group)*8, first+n)
		for from := begin; from < end; {
			b, wrong := h.seek(c, from, end)
			if !wrong {
				break
			}
			symbol := int(b-begin) / 8
			k := symbol % depth
			size := (group - k + depth - 1) / depth
			if r.counts[k]++; r.counts[k] > size*r.parity/(2*r.block) {
				return false
			}
			from = begin + int64(symbol+1)*8 // a symbol is wrong once
		}
		at += group
	}
	return true
}
