package report

import (
	"linktrial/internal/unit"
	"linktrial/orchestrator/stats"
)

// fillDelivery is about all trials that tell of their protocol.
func (s *sample) fillDelivery(row *Row) {
	if len(s.deliveries) == 0 {
		return
	}
	waits, came, bytes, spent := make([]stats.Wait, len(s.deliveries)), 0, int64(0), 0.0
	for i, d := range s.deliveries {
		if waits[i] = d.wait; d.wait.Came && d.wait.Time <= s.horizon {
			came++
		}
		bytes, spent = bytes+d.bytes, spent+d.spent
	}
	curve := stats.KaplanMeier(waits)
	mean, _ := curve.Restricted(s.horizon)
	median, of := curve.Median(level)
	out := &Delivery{Trials: len(waits), HorizonSeconds: s.horizon,
		Share: Rounded(float64(came) / float64(len(waits))), ShareCI: interval(stats.Wilson(came, len(waits), level)),
		MeanSeconds: Rounded(mean), MeanCI: interval(curve.RestrictedInterval(s.horizon, level))}
	within := func(x float64) *float64 {
		if x > s.horizon { // delivered, but after it
			return nil
		}
		return Rounded(x)
	}
	out.MedianSeconds, out.MedianLow, out.MedianHigh = within(median), within(of.Low), within(of.High)
	if spent > 0 {
		out.GoodputKBps = Rounded(float64(bytes) / unit.KB / spent)
	}
	row.Delivery = out
}

// waits are the deliveries by iteration.
func (s *sample) waits() map[int]stats.Wait {
	m := make(map[int]stats.Wait, len(s.deliveries))
	for _, d := range s.deliveries {
		m[d.iteration] = d.wait
	}
	return m
}

// compareDeliveries holds each treatment's against the reference's, over the iterations in
// which both tell of their protocol.
func compareDeliveries(t *RunTable, samples []sample, ref int) {
	var rows []*DeliveryDifference
	var ps []float64
	for i := range t.Rows {
		if i == ref || t.Rows[i].Delivery == nil || samples[i].horizon != samples[ref].horizon {
			continue
		}
		s := stats.DecideSooner(samples[ref].waits(), samples[i].waits(), samples[i].horizon, level, 1)
		if s.Pairs < minPairs {
			continue
		}
		d := &DeliveryDifference{Reference: t.Reference, Pairs: s.Pairs, SoonerSeconds: Rounded(s.Difference), SoonerCI: interval(s.Interval), P: Rounded(s.P)}
		t.Rows[i].Delivery.Difference = d
		rows, ps = append(rows, d), append(ps, s.P)
	}
	for i, p := range stats.Holm(ps) {
		rows[i].PHolm = Rounded(p)
	}
}
