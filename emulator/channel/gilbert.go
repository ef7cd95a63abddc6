package channel

import (
	"math"
	"time"

	"linktrial/internal/radio"
)

// blockSlots is after how many slots the state is drawn afresh from the
// stationary distribution, so that looking far ahead, or the first packet after a
// long pause, costs a bounded number of draws, and every caller gets the same
// answer. A million slots are hours at any rate this product emulates (6 ms a
// slot: 1.7 h); the correlation lost at a block's edge is not seen in a trial.
const blockSlots = 1 << 20

// chain is a two-state Markov chain on slots. It is kept as its sojourns,
// whose lengths are geometric: a draw for each change of state instead of one
// for each slot. A copy is a cursor that looks ahead.
type chain struct {
	slot time.Duration
	seed uint64

	stationaryBad uint64     // threshold
	leave         [2]float64 // probability to leave the state, per slot; good, bad

	block   int64
	sojourn uint64 // counted within the block
	bad     int    // state of the current sojourn, 0 or 1
	until   int64  // first slot after it
}

func newChain(goodToBad, badToGood float64, slot time.Duration, seed uint64) chain {
	c := chain{slot: slot, seed: hash(seed, domainState, 0, 0), leave: [2]float64{goodToBad, badToGood}, block: -1}
	if sum := goodToBad + badToGood; sum > 0 { // else the chain never moves, and starts good
		c.stationaryBad = threshold(goodToBad / sum)
	}
	return c
}

// advance moves to the sojourn that holds slot k.
func (g *chain) advance(k int64) {
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
func (g *chain) length() int64 {
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

// end is the first slot after the current sojourn, or after its block.
func (g *chain) end() int64 { return min(g.until, (g.block+1)*blockSlots) }

// changes is the moment at which the current sojourn ends.
func (g *chain) changes() time.Duration { return times(g.end(), g.slot) }

// times is n slots, or Forever.
func times(n int64, slot time.Duration) time.Duration {
	if n >= int64(Forever/slot) {
		return Forever
	}
	return time.Duration(n) * slot
}

// gilbertElliott has a loss probability for each state of the chain (Gilbert
// 1960, Elliott 1963).
type gilbertElliott struct {
	chain
	opportunities
	loss [2]uint64 // thresholds; good, bad
}

func newGilbertElliott(c radio.Channel, slot time.Duration, o opportunities, seed uint64) *gilbertElliott {
	return &gilbertElliott{
		chain: newChain(c.GoodToBad, c.BadToGood, slot, seed), opportunities: o,
		loss: [2]uint64{threshold(c.LossGood), threshold(c.LossBad)},
	}
}

func (g *gilbertElliott) Lost(start, _ time.Duration) bool {
	g.advance(int64(start / g.slot))
	return g.next(start) < g.loss[g.bad]
}

func (g *gilbertElliott) Foresee(start, _ time.Duration, nth uint64) (bool, time.Duration) {
	g.advance(int64(start / g.slot))
	return g.decide(g.loss[g.bad], start, nth, g.changes())
}

func (g *gilbertElliott) Clone() Process { c := *g; return &c }

func (g *gilbertElliott) State(at time.Duration) (State, time.Duration) {
	g.advance(int64(at / g.slot))
	return State{Loss: probability(g.loss[g.bad])}, g.changes()
}

// markov is the chain of decola-2006, section 3.2: good slots carry
// everything, bad ones nothing.
type markov struct {
	chain
	whole bool // every slot that a transmission overlaps must be good, not the first alone
}

func (m *markov) Lost(start, end time.Duration) bool {
	m.advance(int64(start / m.slot))
	if m.bad == 1 || !m.whole {
		return m.bad == 1
	}
	lost, _ := m.overlapped(end)
	return lost
}

// overlapped looks at the sojourns from the current one up to a transmission's
// end; badEnd is the first slot after the last bad one.
func (m *markov) overlapped(end time.Duration) (lost bool, badEnd int64) {
	last := int64(max(0, end-1) / m.slot)
	for look := m.chain; ; look.advance(look.end()) {
		if look.bad == 1 {
			lost, badEnd = true, look.end()
		}
		if look.end() > last {
			return lost, badEnd
		}
	}
}

func (m *markov) Foresee(start, end time.Duration, _ uint64) (bool, time.Duration) {
	m.advance(int64(start / m.slot))
	if !m.whole {
		return m.bad == 1, m.changes()
	}
	lost, badEnd := m.overlapped(end)
	if lost {
		return true, times(badEnd, m.slot)
	}
	if c := m.changes(); c != Forever {
		return false, max(start+1, c-(end-start)+1)
	}
	return false, Forever
}

func (m *markov) Clone() Process { c := *m; return &c }

func (m *markov) State(at time.Duration) (State, time.Duration) {
	m.advance(int64(at / m.slot))
	return State{Loss: float64(m.bad)}, m.changes()
}
