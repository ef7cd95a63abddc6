package report

import (
	"linktrial/internal/stats"
	"linktrial/protocols/contract"
)

// capacitySample is what a row of searches for the capacity is made of.
type capacitySample struct {
	row                                        CapacityRow
	maximum, mean, payload, bottleneck, rate   []float64
	loss, delayMean, delayP95, bytes, interval []float64
}

// add takes what one trial found; the clock is that of its direction.
func (s *capacitySample) add(c *contract.Capacity, clock ProbeClock, least int64) {
	s.row.Measured++
	s.maximum, s.mean, s.payload, s.rate = append(s.maximum, float64(c.MaximumBPS)), append(s.mean, float64(c.MeanBPS)), append(s.payload, float64(c.PayloadBPS)), append(s.rate, float64(c.RateBPS))
	if c.BottleneckBPS > 0 {
		s.bottleneck = append(s.bottleneck, float64(c.BottleneckBPS))
	}
	d := clock.CorrectPart(c.HeldDelay, least)
	s.delayMean, s.delayP95 = append(s.delayMean, d.Mean), append(s.delayP95, d.P95)
	s.loss = append(s.loss, c.LossShare())
	s.bytes, s.interval = append(s.bytes, float64(c.PacketBytes)), append(s.interval, milliseconds(c.IntervalNS))
	if s.row.Measured == 1 || c.LargestPayloadBytes < s.row.LargestPayloadBytes {
		s.row.LargestPayloadBytes = c.LargestPayloadBytes
	}
	switch c.End {
	case contract.CapacityTime:
		s.row.Unfinished++
	case contract.CapacityHighest:
		s.row.Highest++
	}
}

// finish is the row; nil: no trial found a capacity.
func (s *capacitySample) finish() *CapacityRow {
	if s.row.Measured == 0 {
		return nil
	}
	row := s.row
	mean := func(xs []float64) *float64 { return Rounded(stats.Mean(xs)) }
	row.MaximumBPS, row.MaximumCI, row.MeanBPS, row.PayloadBPS = mean(s.maximum), meanInterval(s.maximum), mean(s.mean), mean(s.payload)
	row.BottleneckBPS, row.RateBPS, row.LossShare = mean(s.bottleneck), mean(s.rate), mean(s.loss)
	row.DelayMeanMS, row.DelayP95MS, row.PacketBytes, row.IntervalMS = mean(s.delayMean), mean(s.delayP95), mean(s.bytes), mean(s.interval)
	return &row
}
