package channel

import (
	"math"
	"time"

	"linktrial/internal/radio"
)

// blockSlots is after how many slots the state is drawn afresh from the
// stationary distribution, so that looking far ahead, or waking after a long
// silence, costs a bounded number of draws and gives every asker the same
// answer. A million slots are hours at any rate this product emulates (6 ms a
// slot: 1.7 h); the correlation lost at a block's edge is not seen in a trial.
const blockSlots = 1 << 20

// gilbertElliott is a two-state Markov chain on slots, with a loss probability
// for each state (Gilbert 1960, Elliott 1963). The chain is kept as its
// sojourns, whose lengths are geometric: a draw for each change of state
// instead of one for each slot.
type gilbertElliott struct {
	opportunities
	slot time.Duration
	seed uint64

	stationaryBad uint64     // threshold
	loss          [2]uint64  // thresholds; good, bad
	leave         [2]float64 // probability to leave the state, per slot

	block   int64
	sojourn uint64 // counted within the block
	bad     int    // state of the current sojourn, 0 or 1
	until   int64  // first slot after it
}

func newGilbertElliott(c radio.Channel, slot time.Duration, o opportunities, seed uint64) *gilbertElliott {
	g := &gilbertElliott{
		opportunities: o, slot: slot, seed: hash(seed, domainState, 0, 0),
		loss:  [2]uint64{threshold(c.LossGood), threshold(c.LossBad)},
		leave: [2]float64{c.GoodToBad, c.BadToGood},
		block: -1,
	}
	if sum := c.GoodToBad + c.BadToGood; sum > 0 { // else the chain never moves, and starts good
		g.stationaryBad = threshold(c.GoodToBad / sum)
	}
	return g
}

// advance moves to the sojourn that holds slot k.
func (g *gilbertElliott) advance(k int64) {
	if b := k / blockSlots; b != g.block {
		g.block, g.sojourn, g.bad = b, 0, 0
		if draw(hash(g.seed, domainInitial, uint64(b), 0)) < g.stationaryBad {
			g.bad = 1
		}
		g.until = b*blockSlots + g.length()
	}
	for g.until <= k {
		g.bad = 1 - g.bad
		g.sojourn++
		g.until += g.length()
	}
}

// length draws how many slots the current sojourn lasts. The geometric
// distribution has no memory, so the first sojourn of a block needs no other.
func (g *gilbertElliott) length() int64 {
	p := g.leave[g.bad]
	switch p {
	case 0:
		return 2 * blockSlots
	case 1:
		return 1
	}
	n := math.Log(unit(hash(g.seed, domainSojourn, uint64(g.block), g.sojourn))) / math.Log1p(-p)
	return 1 + int64(min(n, 2*blockSlots))
}

func (g *gilbertElliott) Lost(start, _ time.Duration) bool {
	g.advance(int64(start / g.slot))
	return g.next(start) < g.loss[g.bad]
}

func (g *gilbertElliott) Foresee(start, _ time.Duration, nth uint64) (bool, time.Duration) {
	g.advance(int64(start / g.slot))
	end := min(g.until, (g.block+1)*blockSlots) // of the state, in slots
	changes := Forever
	if end < int64(Forever/g.slot) {
		changes = time.Duration(end) * g.slot
	}
	switch g.loss[g.bad] {
	case 0:
		return false, changes
	case one:
		return true, changes
	}
	d, until := g.peek(start, nth)
	return d < g.loss[g.bad], min(until, changes)
}
