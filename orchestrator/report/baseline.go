package report

import (
	"slices"

	"linktrial/internal/radio"
)

// mostStep is how much the clocks may move during a probe that is a baseline, over the round
// trip: its two directions then have their least delays by one clock.
const mostStep = 0.01

// baseline is the least round-trip time of the run without load, measured by probes that ran
// alone in both directions at a time (RFC 6349, section 3.2.1); nil: there were none. The
// round trip is the least delay there and the least delay back. What one clock is ahead of
// the other is in both, with opposite signs, so that clocks need not be compared.
func (r *Run) baseline() (least *Baseline) {
	if r.Sheet == nil {
		return nil
	}
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.last() == nil || t.Index >= len(r.Sheet.Trials) || r.Sheet.Trials[t.Index].Beside() != "" {
			continue
		}
		if b := t.last().roundTrip(); b != nil && (least == nil || b.rttUS < least.rttUS) {
			least = b
			least.Trial, least.Label = t.Index, r.Sheet.Label(b.Probe)
			least.RTTMS = Rounded(b.rttUS / 1000)
		}
	}
	return least
}

// roundTrip is the least round-trip time that a probe of the attempt measured in both
// directions; nil: none did. A search for the capacity is a load.
func (a *Attempt) roundTrip() *Baseline {
	for i := range a.Probes {
		there := &a.Probes[i]
		if there.From != radio.RoleClient || !there.idles() {
			continue
		}
		k := slices.IndexFunc(a.Probes, func(p Probe) bool {
			return p.Treatment == there.Treatment && p.From == there.To && p.To == there.From && p.idles()
		})
		if k < 0 || slices.ContainsFunc(a.Probes, func(p Probe) bool { return p.Metrics != nil && p.Metrics.Capacity != nil }) {
			continue
		}
		back := &a.Probes[k]
		rtt := float64(there.Metrics.Delay.MinNS+back.Metrics.Delay.MinNS) / 1000
		step := float64(max(there.Metrics.ClockStepNS, back.Metrics.ClockStepNS)) / 1000
		if rtt > 0 && step <= mostStep*rtt {
			return &Baseline{Probe: there.Treatment, At: a.Started, rttUS: rtt}
		}
	}
	return nil
}

// idles reports whether the probe has delays that count.
func (p *Probe) idles() bool { return p.Counts() && p.Metrics.Delay != nil }

// baselineOf is the baseline of an attempt over TCP in microseconds, and where it is from:
// what probes measured without load, else the least round-trip time of the transfer itself.
// 0: not known.
func (t *RunTable) baselineOf(a *Attempt) (us float64, from BaselineSource) {
	switch {
	case t.Baseline != nil:
		return t.Baseline.rttUS, BaselineOfProbe
	case a.RTTLeastUS != nil && *a.RTTLeastUS > 0:
		return float64(*a.RTTLeastUS), BaselineOfTransfer
	}
	return 0, ""
}

// BaselineRTT is the baseline of an attempt over TCP that has a buffer delay percentage, in
// microseconds, and where it is from; nil: it has none.
func (t *RunTable) BaselineRTT(a *Attempt) (*float64, BaselineSource) {
	us, from := t.baselineOf(a)
	if us <= 0 || a.RTTMeanUS == nil {
		return nil, ""
	}
	return Rounded(us), from
}

// BufferDelayPercent is the buffer delay percentage (RFC 6349, section 4.3.1): by how much
// the mean round-trip time of the transfer is above the baseline. Nil: not known.
func (t *RunTable) BufferDelayPercent(a *Attempt) *float64 {
	us, _ := t.baselineOf(a)
	if us <= 0 || a.RTTMeanUS == nil {
		return nil
	}
	return Rounded(100 * (*a.RTTMeanUS - us) / us)
}

// LeastAboveBaselinePercent is by how much the least round-trip time of a transfer is above
// the baseline that probes measured; negative: it is below. Nil: one of them is not known.
func (t *RunTable) LeastAboveBaselinePercent(a *Attempt) *float64 {
	if t.Baseline == nil || a.RTTLeastUS == nil || *a.RTTLeastUS <= 0 {
		return nil
	}
	return Rounded(100 * (float64(*a.RTTLeastUS) - t.Baseline.rttUS) / t.Baseline.rttUS)
}
