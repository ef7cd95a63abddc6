package radio

// MeanLoss is the long-run share of packets that the channel loses, 0…1.
func (c Channel) MeanLoss() float64 {
	switch c.Model {
	case ChannelUniform:
		return c.Loss
	case ChannelGilbertElliott:
		if c.GoodToBad+c.BadToGood == 0 {
			return c.LossGood
		}
		bad := c.GoodToBad / (c.GoodToBad + c.BadToGood)
		return (1-bad)*c.LossGood + bad*c.LossBad
	}
	return 0
}
