// Package channel holds the error processes of emulated radio links: whether a
// packet on the air reaches the other end. Comes in: a radio.Channel, a seed,
// and the times of transmissions since the trial's start. Goes out: their
// fates. Pure: no clock, no I/O.
//
// A realisation is a function of its seed alone. It runs on time slots, also
// while nobody sends, so two senders that meet the same slot meet the same
// conditions, whatever each did before (common random numbers).
//
// Slots carry the state of the channel. Within a state, losses of single
// packets are drawn per opportunity: an opportunity is the airtime of a
// full-sized packet, or the slot where that is shorter, and the j-th packet
// whose transmission starts in an opportunity draws from (seed, opportunity,
// j). So the first packet of an opportunity has the same fate for every
// sender, packets of one opportunity are still independent, and back-to-back
// full-sized packets are each the first of theirs. On a link with framing read
// frame for packet. Bit errors need no draws for packets: they lie in time.
package channel

import (
	"fmt"
	"math"
	"slices"
	"time"

	"linktrial/internal/radio"
)

// Process is one realisation of one direction of a link. It is a cursor: start
// times must not decrease from call to call of any method.
type Process interface {
	// Lost decides the fate of a transmission that is on the air from start to end.
	Lost(start, end time.Duration) bool
	// Foresee tells, without sending, what would become of a transmission if it were
	// the nth (from 0) to start in its opportunity, and until when a later
	// start of one as long would meet the same answer. Until is always after start,
	// and not beyond the opportunity where the answer depends on nth.
	Foresee(start, end time.Duration, nth uint64) (lost bool, until time.Duration)
	// State is the channel's condition at a moment and when it may next change,
	// which is always after the moment.
	State(at time.Duration) (s State, until time.Duration)
	// Clone is another cursor at the same place of the same realisation.
	Clone() Process
}

// State is a channel's condition: the probabilities that a transmission that
// starts then is lost, apart from wrong bits, and that a bit is wrong.
type State struct {
	Loss, BitErrorRate float64
}

// Params is what of its link a process depends on.
type Params struct {
	Packet time.Duration // airtime of a full-sized packet with its frames; the slot where the channel gives none
	// Unit is the airtime of the longest single transmission: a frame, or the
	// packet where the link has no framing. 0: as Packet.
	Unit time.Duration
	// Bit is how long a bit lasts, in nanoseconds: one that the user sends, or
	// one on the air where Code corrects errors. 0 where no process has bit errors.
	Bit  float64
	Code *radio.FEC // a Reed–Solomon code that corrects bit errors, or nil
}

// Forever is the time that Foresee gives for an answer that never changes.
const Forever = time.Duration(math.MaxInt64)

// Seed derives the seed of one direction of a link from a trial's.
func Seed(trial uint64, from, to radio.Role) uint64 {
	h := mix(trial + golden)
	for _, s := range [2]radio.Role{from, to} {
		for i := range len(s) {
			h = mix(h ^ uint64(s[i]))
		}
		h = mix(h ^ 1<<32) // so that "a","bc" and "ab","c" differ
	}
	return h
}

// New draws a realisation.
func New(c radio.Channel, p Params, seed uint64) (Process, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	if p.Packet <= 0 || p.Unit < 0 {
		return nil, fmt.Errorf("airtimes of a packet, %s, and a unit, %s: expected positive times", p.Packet, p.Unit)
	}
	if hasBits(c) && !(p.Bit > 0) {
		return nil, fmt.Errorf("a bit lasts %g ns, expected more than 0", p.Bit)
	}
	return newProcess(c, p, Opportunity(c, p), seed), nil
}

// Opportunity is how long an opportunity of the channel lasts.
func Opportunity(c radio.Channel, p Params) time.Duration {
	o := p.Unit
	if o == 0 {
		o = p.Packet
	}
	if c.Slot > 0 {
		o = min(o, c.Slot)
	}
	for _, part := range c.Parts {
		o = min(o, Opportunity(part, p))
	}
	return o
}

func hasBits(c radio.Channel) bool {
	return c.Model == radio.ChannelHiddenMarkov || slices.ContainsFunc(c.Parts, hasBits)
}

// newProcess makes the process of a checked channel.
func newProcess(c radio.Channel, p Params, opportunity time.Duration, seed uint64) Process {
	slot := c.Slot
	if slot == 0 {
		slot = p.Packet
	}
	o := opportunities{length: opportunity, seed: hash(seed, domainLoss, 0, 0), current: -1}
	switch c.Model {
	case radio.ChannelUniform:
		return &uniform{opportunities: o, loss: threshold(c.Loss)}
	case radio.ChannelGilbertElliott:
		return newGilbertElliott(c, slot, o, seed)
	case radio.ChannelMarkov:
		return &markov{chain: newChain(c.Alpha, c.Beta, slot, seed), whole: c.Slot > 0}
	case radio.ChannelOnOff:
		return newOnOff(c, o, seed)
	case radio.ChannelHiddenMarkov:
		return newHidden(c.Hidden, p, seed)
	case radio.ChannelOutages:
		return &outages{opportunities: o, Outages: c.Outages, loss: threshold(c.Outages.Loss)}
	case radio.ChannelTrace:
		return newTrace(c.Trace, o)
	case radio.ChannelCombined:
		all := &combined{}
		for i, part := range c.Parts {
			all.parts = append(all.parts, newProcess(part, p, opportunity, hash(seed, domainPart, uint64(i), 0)))
		}
		return all
	default: // Check admits no other
		return perfect{}
	}
}

// perfect loses nothing.
type perfect struct{}

func (perfect) Lost(_, _ time.Duration) bool { return false }

func (perfect) Foresee(_, _ time.Duration, _ uint64) (bool, time.Duration) { return false, Forever }

func (perfect) Clone() Process { return perfect{} }

func (perfect) State(time.Duration) (State, time.Duration) { return State{}, Forever }

// uniform loses packets independently of each other.
type uniform struct {
	opportunities
	loss uint64
}

func (u *uniform) Lost(start, _ time.Duration) bool { return u.next(start) < u.loss }

func (u *uniform) Foresee(start, _ time.Duration, nth uint64) (bool, time.Duration) {
	return u.decide(u.loss, start, nth, Forever)
}

func (u *uniform) Clone() Process { c := *u; return &c }

func (u *uniform) State(time.Duration) (State, time.Duration) {
	return State{Loss: probability(u.loss)}, Forever
}

// opportunities draws the numbers that decide single packets.
type opportunities struct {
	length  time.Duration
	seed    uint64
	current int64  // the opportunity of the last packet
	count   uint64 // packets that have started in it
}

func (o *opportunities) next(start time.Duration) uint64 {
	k := int64(start / o.length)
	if k != o.current {
		o.current, o.count = k, 0
	}
	j := o.count
	o.count++
	return draw(hash(o.seed, domainPacket, uint64(k), j))
}

func (o *opportunities) peek(start time.Duration, nth uint64) (uint64, time.Duration) {
	k := int64(start / o.length)
	return draw(hash(o.seed, domainPacket, uint64(k), nth)), time.Duration(k+1) * o.length
}

// decide foresees the nth packet of an opportunity where the probability of
// loss, as a threshold, holds until a moment.
func (o *opportunities) decide(loss uint64, start time.Duration, nth uint64, holds time.Duration) (bool, time.Duration) {
	switch loss {
	case 0:
		return false, holds
	case one:
		return true, holds
	}
	d, until := o.peek(start, nth)
	return d < loss, min(until, holds)
}
