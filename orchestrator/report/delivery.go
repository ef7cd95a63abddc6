package report

import (
	"slices"

	"linktrial/internal/stats"
	"linktrial/internal/unit"
)

// fillDelivery is about all trials that tell of their protocol.
func (s *sample) fillDelivery(row *Row) {
	if len(s.deliveries) == 0 {
		return
	}
	waits, bytes, spent := make([]stats.Wait, len(s.deliveries)), int64(0), 0.0
	var times []float64 // of those that were delivered by the horizon
	for i, d := range s.deliveries {
		if waits[i] = d.wait; d.wait.Came && d.wait.Time <= s.horizon {
			times = append(times, d.wait.Time)
		}
		bytes, spent = bytes+d.bytes, spent+d.spent
	}
	curve := stats.KaplanMeier(waits)
	mean, _ := curve.Restricted(s.horizon)
	median, of := curve.Median(level)
	out := &Delivery{Trials: len(waits), HorizonSeconds: s.horizon,
		Curve: stepsOf(times, len(waits)),
		Share: Rounded(float64(len(times)) / float64(len(waits))), ShareCI: interval(stats.Wilson(len(times), len(waits), level)),
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

// stepsOf is the curve of so many trials, of which some were delivered.
func stepsOf(times []float64, trials int) []DeliveryStep {
	slices.Sort(times)
	out := []DeliveryStep{}
	for i, t := range times {
		if i+1 < len(times) && times[i+1] == t {
			continue
		}
		out = append(out, DeliveryStep{Seconds: *Rounded(t), Delivered: i + 1,
			Share: Rounded(float64(i+1) / float64(trials)), ShareCI: interval(stats.Wilson(i+1, trials, level))})
	}
	return out
}

// waits are the deliveries by iteration.
func (s *sample) waits() map[int]stats.Wait {
	m := make(map[int]stats.Wait, len(s.deliveries))
	for _, d := range s.deliveries {
		m[d.iteration] = d.wait
	}
	return m
}

// restricted are the times to delivery by iteration, in seconds: of a trial that failed the
// horizon.
func (s *sample) restricted() map[int]float64 {
	m := make(map[int]float64, len(s.deliveries))
	for _, d := range s.deliveries {
		m[d.iteration] = min(d.wait.Time, s.horizon)
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
