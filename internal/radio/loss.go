package radio

// MeanLoss is the long-run share of full-sized packets (1500 bytes, which
// matters for bit errors alone) that the channel loses, 0…1.
func (c Channel) MeanLoss() float64 { return c.LossOf(1500) }

// LossOf is the long-run share of packets (or frames) of a size that the
// channel loses, 0…1. First-order where a transmission overlaps several slots
// of a markov channel: the share of bad slots. Outages at stated times
// do not count: they have no long-run share.
func (c Channel) LossOf(bytes int) float64 {
	switch c.Model {
	case ChannelUniform, ChannelOnOff:
		return c.Loss
	case ChannelGilbertElliott:
		if c.GoodToBad+c.BadToGood == 0 {
			return c.LossGood
		}
		bad := c.GoodToBad / (c.GoodToBad + c.BadToGood)
		return (1-bad)*c.LossGood + bad*c.LossBad
	case ChannelMarkov:
		if c.Alpha+c.Beta == 0 {
			return 0
		}
		return c.Alpha / (c.Alpha + c.Beta)
	case ChannelHiddenMarkov:
		return c.Hidden.LossOf(bytes * 8)
	case ChannelOutages:
		if c.Outages.Period > 0 {
			return c.Outages.Loss * c.Outages.Length.Seconds() / c.Outages.Period.Seconds()
		}
	case ChannelTrace:
		sum := 0.0
		for _, l := range c.Trace.Loss {
			sum += l
		}
		return sum / float64(max(1, len(c.Trace.Loss)))
	case ChannelCombined:
		through := 1.0
		for _, p := range c.Parts {
			through *= 1 - p.LossOf(bytes)
		}
		return 1 - through
	}
	return 0
}

// bits calls f for every hidden Markov model of the channel, which may replace it.
func (c *Channel) bits(f func(*HiddenMarkov) (*HiddenMarkov, error)) error {
	if c.Model == ChannelHiddenMarkov {
		h, err := f(c.Hidden)
		if err != nil {
			return err
		}
		c.Hidden = h
	}
	for i := range c.Parts {
		if err := c.Parts[i].bits(f); err != nil {
			return err
		}
	}
	return nil
}
