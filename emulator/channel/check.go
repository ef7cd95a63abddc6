package channel

import (
	"errors"
	"fmt"
	"math"
	"time"

	"linktrial/internal/radio"
)

// minSlot bounds the number of slots to draw for a time without packets: no
// radio's conditions change faster.
const minSlot = time.Microsecond

// Check returns everything that is wrong with a channel's parameters, at once.
func Check(c radio.Channel) error {
	k := &checker{}
	k.channel(c, false)
	return errors.Join(k.errs...)
}

type checker struct{ errs []error }

func (k *checker) bad(format string, args ...any) {
	k.errs = append(k.errs, fmt.Errorf(format, args...))
}

func (k *checker) probability(name string, p float64) {
	if !(p >= 0 && p <= 1) {
		k.bad("%s is %g, expected a probability from 0 to 1", name, p)
	}
}

// present notes a model whose section is missing.
func (k *checker) present(c radio.Channel, there bool) bool {
	if !there {
		k.bad("a channel of model %q without its parameters", c.Model)
	}
	return there
}

func (k *checker) channel(c radio.Channel, part bool) {
	switch c.Model {
	case radio.ChannelPerfect:
	case radio.ChannelUniform:
		k.probability("loss", c.Loss)
	case radio.ChannelGilbertElliott:
		k.probability("good_to_bad", c.GoodToBad)
		k.probability("bad_to_good", c.BadToGood)
		k.probability("loss_good", c.LossGood)
		k.probability("loss_bad", c.LossBad)
	case radio.ChannelMarkov:
		k.probability("alpha", c.Alpha)
		k.probability("beta", c.Beta)
	case radio.ChannelOnOff:
		if k.present(c, c.OnOff != nil) {
			k.onOff(c)
		}
	case radio.ChannelHiddenMarkov:
		if k.present(c, c.Hidden != nil) {
			k.hidden(c.Hidden)
		}
	case radio.ChannelOutages:
		if k.present(c, c.Outages != nil) {
			k.outages(c.Outages)
		}
	case radio.ChannelTrace:
		if k.present(c, c.Trace != nil) {
			k.trace(c.Trace)
		}
	case radio.ChannelMobility:
		k.bad("channel model %q exists in profiles only; a network has the trace that follows from it", c.Model)
	case radio.ChannelCombined:
		if part {
			k.bad("a combined channel is part of another")
			return
		}
		if len(c.Parts) == 0 {
			k.bad("a combined channel without parts")
		}
		for _, p := range c.Parts {
			k.channel(p, true)
		}
	default:
		k.bad("unknown channel model %q", c.Model)
	}
	if c.Slot < 0 || c.Slot > 0 && c.Slot < minSlot {
		k.bad("slot is %s, expected at least %s, or 0 for the airtime of a full-sized packet", c.Slot, minSlot)
	}
}

func (k *checker) onOff(c radio.Channel) {
	o := c.OnOff
	k.probability("loss", c.Loss)
	k.probability("loss in the one kind of period", c.Loss*o.OnFactor)
	k.probability("loss in the other kind of period", c.Loss*o.OffFactor)
	if o.PeriodMin < minSlot || o.PeriodMax < o.PeriodMin || o.PeriodMax > maxMoment {
		k.bad("periods from %s to %s, expected at least %s, at most %s, and the longest no less than the shortest", o.PeriodMin, o.PeriodMax, minSlot, maxMoment)
	}
}

// maxMoment bounds moments of a schedule, so that sums of two do not overflow.
const maxMoment = 10 * 365 * 24 * time.Hour

func (k *checker) hidden(h *radio.HiddenMarkov) {
	n := len(h.Transition)
	if n == 0 || n > 64 || len(h.BitErrorRates) != n {
		k.bad("%d rows of transition probabilities and %d bit error rates, expected 1 to 64 of each", n, len(h.BitErrorRates))
		return
	}
	for i, row := range h.Transition {
		k.probability(fmt.Sprintf("bit error rate %d", i), h.BitErrorRates[i])
		sum := 0.0
		for j, p := range row {
			k.probability(fmt.Sprintf("transition %d,%d", i, j), p)
			sum += p
		}
		if len(row) != n || !(math.Abs(sum-1) <= 1e-6) {
			k.bad("transition row %d has %d probabilities that sum to %g, expected %d that sum to 1", i, len(row), sum, n)
		}
	}
	if len(k.errs) == 0 {
		if _, err := h.Stationary(); err != nil {
			k.errs = append(k.errs, err)
		}
	}
}

func (k *checker) outages(o *radio.Outages) {
	k.probability("loss", o.Loss)
	if (o.Period > 0) == (len(o.Times) > 0) {
		k.bad("outages with a period of %s and %d times, expected one of them", o.Period, len(o.Times))
	}
	if o.Period > 0 && (o.Period < minSlot || o.Period > maxMoment || o.Length < 0 || o.Length > o.Period || o.Offset < 0 || o.Offset > maxMoment) {
		k.bad("outages of %s every %s from %s, expected none longer than the period and no negative time", o.Length, o.Period, o.Offset)
	}
	last := time.Duration(0)
	for i, x := range o.Times {
		if x.Start < last || x.End <= x.Start || x.End > maxMoment {
			k.bad("outage %d is from %s to %s, expected ascending times", i, x.Start, x.End)
			return
		}
		last = x.End
	}
}

func (k *checker) trace(t *radio.Trace) {
	n := len(t.Loss)
	if n == 0 || len(t.RateBitsPerSecond) != 0 && len(t.RateBitsPerSecond) != n || len(t.Delay) != 0 && len(t.Delay) != n {
		k.bad("trace with %d losses, %d rates and %d delays, expected one loss at least, and as many of the others or none", n, len(t.RateBitsPerSecond), len(t.Delay))
		return
	}
	if t.Step < minSlot || t.Step > maxMoment/time.Duration(n) {
		k.bad("trace of %d steps of %s, expected steps of at least %s and an end within %s", n, t.Step, minSlot, maxMoment)
	}
	for i := range n {
		if !(t.Loss[i] >= 0 && t.Loss[i] <= 1) {
			k.bad("trace step %d: loss is %g, expected a probability from 0 to 1", i, t.Loss[i])
			return
		}
		if len(t.RateBitsPerSecond) > 0 && !(t.RateBitsPerSecond[i] == 0 || t.RateBitsPerSecond[i] >= 1 && t.RateBitsPerSecond[i] <= 1e12) {
			k.bad("trace step %d: rate is %g bit/s, expected 0, or 1 to 1e12", i, t.RateBitsPerSecond[i])
			return
		}
		if len(t.Delay) > 0 && (t.Delay[i] < 0 || t.Delay[i] > time.Hour) {
			k.bad("trace step %d: delay is %s, expected 0 to 1h", i, t.Delay[i])
			return
		}
	}
}
