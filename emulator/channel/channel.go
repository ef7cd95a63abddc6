// Package channel holds the error processes of emulated radio links: whether a
// packet on the air reaches the other end. Comes in: a radio.Channel, a seed,
// and the times of transmissions since the trial's start. Goes out: their
// fates. Pure: no clock, no I/O; imports internal/radio.
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
// full-sized packets are each the first of theirs.
package channel

import (
	"errors"
	"fmt"
	"math"
	"time"

	"linktrial/internal/radio"
)

// Process is one realisation of one direction of a link. It is a cursor: start
// times must not decrease from call to call of either method.
type Process interface {
	// Lost decides the fate of a packet that is put on the air from start to end.
	Lost(start, end time.Duration) bool
	// Foresee tells, without sending, what would become of a packet if it were
	// the nth (from 0) to start in its opportunity, and until when a later
	// start would meet the same answer. Until is always after start.
	Foresee(start, end time.Duration, nth uint64) (lost bool, until time.Duration)
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

// New draws a realisation. fullPacket is the airtime of a full-sized packet on
// the link; it is the slot length where the channel gives none.
func New(c radio.Channel, fullPacket time.Duration, seed uint64) (Process, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	if fullPacket <= 0 {
		return nil, fmt.Errorf("airtime of a full-sized packet is %s, expected a positive time", fullPacket)
	}
	slot := c.Slot
	if slot == 0 {
		slot = fullPacket
	}
	o := opportunities{length: min(slot, fullPacket), seed: hash(seed, domainLoss, 0, 0), current: -1}
	switch c.Model {
	case radio.ChannelPerfect:
		return perfect{}, nil
	case radio.ChannelUniform:
		return &uniform{opportunities: o, loss: threshold(c.Loss)}, nil
	default: // Check admits no other than these three
		return newGilbertElliott(c, slot, o, seed), nil
	}
}

// Check says what is wrong with a channel's figures: everything at once.
func Check(c radio.Channel) error {
	var errs []error
	probability := func(name string, p float64) {
		if !(p >= 0 && p <= 1) {
			errs = append(errs, fmt.Errorf("%s is %g, expected a probability from 0 to 1", name, p))
		}
	}
	switch c.Model {
	case radio.ChannelPerfect:
	case radio.ChannelUniform:
		probability("loss", c.Loss)
	case radio.ChannelGilbertElliott:
		probability("good_to_bad", c.GoodToBad)
		probability("bad_to_good", c.BadToGood)
		probability("loss_good", c.LossGood)
		probability("loss_bad", c.LossBad)
	default:
		errs = append(errs, fmt.Errorf("channel model %q, expected %s, %s or %s", c.Model,
			radio.ChannelPerfect, radio.ChannelUniform, radio.ChannelGilbertElliott))
	}
	if c.Slot < 0 || c.Slot > 0 && c.Slot < minSlot {
		errs = append(errs, fmt.Errorf("slot is %s, expected at least %s, or 0 for the airtime of a full-sized packet", c.Slot, minSlot))
	}
	return errors.Join(errs...)
}

// minSlot keeps the work for a stretch of silence in proportion: no radio's
// conditions change faster.
const minSlot = time.Microsecond

// perfect loses nothing.
type perfect struct{}

func (perfect) Lost(_, _ time.Duration) bool { return false }

func (perfect) Foresee(_, _ time.Duration, _ uint64) (bool, time.Duration) { return false, Forever }

// uniform loses packets independently of each other.
type uniform struct {
	opportunities
	loss uint64
}

func (u *uniform) Lost(start, _ time.Duration) bool { return u.next(start) < u.loss }

func (u *uniform) Foresee(start, _ time.Duration, nth uint64) (bool, time.Duration) {
	switch u.loss {
	case 0:
		return false, Forever
	case one:
		return true, Forever
	}
	draw, until := u.peek(start, nth)
	return draw < u.loss, until
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
