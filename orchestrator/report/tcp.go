package report

import (
	"slices"

	"linktrial/internal/radio"
	"linktrial/internal/stats"
)

// Bytes of headers without options, of IPv4, TCP and UDP (RFC 791, RFC 9293, RFC 768).
const (
	ipHeader  = 20
	tcpHeader = 20
	udpHeader = 8
)

// tcpProtocol is the driver of the kernel's TCP.
const tcpProtocol = "tcp"

// OverTCP reports whether a row is of transfers over TCP from end to end.
func (r *Row) OverTCP() bool {
	return r.Protocol == tcpProtocol && r.Missing == "" && r.Via == ""
}

// EfficiencyPercent is the TCP efficiency percentage (RFC 6349, section 4.2.1): of the bytes
// that were sent, those that were not sent again. Nil: they are not known of every flow.
func (a *Attempt) EfficiencyPercent() *float64 {
	all, again := a.TransmittedBytes, a.RetransmittedBytes
	if all == nil || again == nil || *all <= 0 || *again > *all {
		return nil
	}
	return Rounded(100 * float64(*all-*again) / float64(*all))
}

// TransferTimeRatio is the TCP transfer time ratio of a valid attempt over TCP (RFC 6349,
// section 4.1.2). With Ideal both times contain connecting; with a capacity neither does.
// Nil: no ideal time is known.
func (t *RunTable) TransferTimeRatio(a *Attempt) (*float64, IdealSource) {
	switch {
	case !a.Valid() || a.Elapsed <= 0:
		return nil, ""
	case a.Ideal > 0:
		return Rounded((a.Connect + a.Elapsed).Seconds() / a.Ideal.Seconds()), IdealOfRadio
	case len(a.Flows) > 0: // of several, or bounded by a time
		return nil, ""
	}
	rate := t.idealTCP()
	if rate <= 0 {
		return nil, ""
	}
	return Rounded(a.Elapsed.Seconds() * rate / (8 * float64(a.SizeBytes))), IdealOfCapacity
}

// idealTCP is the maximum achievable throughput of TCP from the client to the server, in
// bit/s (RFC 6349, section 4.1.1), by the capacity and the MTU that a search without
// transfers beside it found; 0: there was none. Layers below IP are part of the capacity.
func (t *RunTable) idealTCP() float64 {
	i := slices.IndexFunc(t.Probes, func(p ProbeRow) bool {
		return p.Beside == "" && p.From == radio.RoleClient && p.Capacity != nil && p.Capacity.MaximumBPS != nil && p.Capacity.LargestPayloadBytes > 0
	})
	if i < 0 {
		return 0
	}
	mtu := float64(t.Probes[i].Capacity.LargestPayloadBytes + udpHeader + ipHeader)
	return *t.Probes[i].Capacity.MaximumBPS * (mtu - ipHeader - tcpHeader) / mtu
}

// addRFC6349 gives the rows of treatments over TCP their metrics of RFC 6349.
func (t *RunTable) addRFC6349(r *Run) {
	for i := range t.Rows {
		row := &t.Rows[i]
		if !row.OverTCP() {
			continue
		}
		var x RFC6349
		var ratios, efficiencies, delays, above []float64
		add := func(to *[]float64, value *float64) {
			if value != nil {
				*to = append(*to, *value)
			}
		}
		for k := range r.Trials {
			a := r.Trials[k].Counted()
			if r.Trials[k].Treatment != row.Treatment || a == nil {
				continue
			}
			ratio, from := t.TransferTimeRatio(a)
			if from != "" && x.IdealFrom != "" && from != x.IdealFrom {
				ratio = nil // of another kind than the first
			} else if from != "" {
				x.IdealFrom = from
			}
			add(&ratios, ratio)
			add(&efficiencies, a.EfficiencyPercent())
			add(&delays, t.BufferDelayPercent(a))
			add(&above, t.LeastAboveBaselinePercent(a))
			if _, from := t.BaselineRTT(a); from != "" {
				x.BaselineFrom = from
			}
		}
		x.LeastAboveBaselinePercent = spreadOf(above)
		x.TransferTimeRatio, x.EfficiencyPercent, x.BufferDelayPercent = spreadOf(ratios), spreadOf(efficiencies), spreadOf(delays)
		if x != (RFC6349{}) {
			row.RFC6349 = &x
		}
	}
}

func spreadOf(xs []float64) *Spread {
	if len(xs) == 0 {
		return nil
	}
	return &Spread{Trials: len(xs), Mean: Rounded(stats.Mean(xs)), Least: Rounded(slices.Min(xs)), Largest: Rounded(slices.Max(xs))}
}
