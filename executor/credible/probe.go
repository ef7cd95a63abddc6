package credible

import (
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// Probe holds a probe's values against what there was of it: no more packets can
// arrive than were sent, and none can be under way for longer than the probe ran. It
// returns nil where they may be true, and for a transfer, which has none.
func Probe(p *contract.ProbeMetrics, elapsed time.Duration, t *Tolerance) *Fault {
	switch {
	case p == nil:
	case p.Received > p.Sent:
		return fault(journal.ReasonMoreThanSent, "the driver reports %d packets received, of %d that were sent", p.Received, p.Sent)
	case p.ReceivedBytes > p.SentBytes:
		return fault(journal.ReasonMoreThanSent, "the driver reports %d bytes received, of %d that were sent", p.ReceivedBytes, p.SentBytes)
	case p.Delay != nil && time.Duration(p.Delay.MaxNS-p.Delay.MinNS) > elapsed+t.Of(elapsed):
		return fault(journal.ReasonLongerThanRun, "the driver reports delays from %s to %s, the probe ran for %s",
			time.Duration(p.Delay.MinNS), time.Duration(p.Delay.MaxNS), show(elapsed))
	case p.Capacity != nil && time.Duration(p.Capacity.SearchNS+p.Capacity.HeldNS) > elapsed+t.Of(elapsed):
		return fault(journal.ReasonLongerThanRun, "the driver reports a search of %s and packets held for %s, the probe ran for %s",
			show(time.Duration(p.Capacity.SearchNS)), show(time.Duration(p.Capacity.HeldNS)), show(elapsed))
	case p.Delay != nil:
		for _, m := range p.Messages {
			if m.Time != nil && time.Duration(m.Time.MaxNS-p.Delay.MinNS) > elapsed+t.Of(elapsed) {
				return fault(journal.ReasonLongerThanRun, "the driver reports a message of %d bytes that took %s, and delays from %s on, the probe ran for %s",
					m.Bytes, time.Duration(m.Time.MaxNS), time.Duration(p.Delay.MinNS), show(elapsed))
			}
		}
	}
	return nil
}

// Again holds what a driver says at the end of a transfer that its protocol sent, in all and
// again, against each other and against the payload: every byte of it was sent at least once.
// payload is 0 where what was sent on a path that has gone may be in neither count. It returns
// nil where the values may be true, or there are none.
func Again(s *contract.Sample, payload int64) *Fault {
	if s == nil || s.TransmittedBytes == nil || s.RetransmittedBytes == nil {
		return nil
	}
	switch all, again := *s.TransmittedBytes, *s.RetransmittedBytes; {
	case again > all:
		return fault(journal.ReasonMoreThanSent, "the driver reports %d bytes sent again, of %d that were sent in all", again, all)
	case all-again < payload:
		return fault(journal.ReasonMoreThanSent, "the driver reports %d bytes of payload delivered, of %d bytes that were sent, %d of them again", payload, all, again)
	}
	return nil
}

// Capacity holds the capacity that a probe reports against the rate of the emulated radios
// on its way, at their best.
func Capacity(n *radio.Network, f *Flow, p *contract.ProbeMetrics) *Fault {
	if n == nil || p == nil || p.Capacity == nil {
		return nil
	}
	route, most := n.Route(f.From, f.To), p.Capacity.MaximumBPS
	for i := 1; i < len(route); i++ {
		h := hopOf(n, route[i-1], route[i])
		if h.rate > 0 && float64(most) > capacitySlack*h.rate {
			return fault(journal.ReasonFasterThanRadio, "the driver reports a capacity of %d bit/s, the emulated radio from %s to %s has %.0f bit/s", most, route[i-1], route[i], h.rate)
		}
	}
	return nil
}

// capacitySlack is for the times of a sub-interval's ends: packets that arrive together, as
// one after a repeated frame, and an emulator that waited for a processor.
const capacitySlack = 1.1

// Arrived holds the packets that a probe's server reports against those to its listener
// that arrived over the node's radio, at the most.
func Arrived(received, packets int64) *Fault {
	if received <= packets {
		return nil
	}
	return fault(journal.ReasonMoreThanSent, "the driver reports %d packets received, %d to its listener arrived over the radio", received, packets)
}

// Answered holds the packets that probes from one listener at the server report against
// those from it that arrived over the client's radio, at the most.
func Answered(received, packets int64) *Fault {
	if received <= packets {
		return nil
	}
	return fault(journal.ReasonMoreThanSent, "the driver reports %d packets received, %d from its listener arrived over the radio", received, packets)
}

// Early holds the delays of a probe against the least that the emulated radios on
// its way need for its smallest packet. Both ends must have one clock.
func Early(n *radio.Network, f *Flow, p *contract.ProbeMetrics) *Fault {
	if n == nil || p == nil || p.Delay == nil {
		return nil
	}
	route := n.Route(f.From, f.To)
	least := time.Duration(0)
	for i := 1; i < len(route); i++ {
		if h := hopOf(n, route[i-1], route[i]); h.rate > 0 {
			least += h.delay + h.packet(n, headerBytes+udpHeader)
		}
	}
	slack := radioSlack + part(least, radioShare) + time.Duration(p.ClockStepNS)
	if shortest := time.Duration(p.Delay.MinNS); shortest < least-slack {
		return fault(journal.ReasonFasterThanRadio, "the driver reports a delay of %s, the emulated radios need %s for an empty packet", shortest, least)
	}
	return nil
}

// Messages holds the times of a probe's messages against the least that the emulated radios
// on its way need for all packets of one: the slowest hop for all of them, each other hop for
// the smallest. Both ends must have one clock.
func Messages(n *radio.Network, f *Flow, p *contract.ProbeMetrics) *Fault {
	if n == nil || p == nil {
		return nil
	}
	route := n.Route(f.From, f.To)
	for _, m := range p.Messages {
		if m.Time == nil {
			continue
		}
		least, slowest := time.Duration(0), time.Duration(0)
		for i := 1; i < len(route); i++ {
			if h := hopOf(n, route[i-1], route[i]); h.rate > 0 {
				one := h.packet(n, headerBytes+udpHeader+int(m.Bytes/m.Packets))
				least += h.delay + one
				slowest = max(slowest, h.payload(n, m.Bytes)-one)
			}
		}
		least += slowest
		slack := radioSlack + part(least, radioShare) + time.Duration(p.ClockStepNS)
		if took := time.Duration(m.Time.MinNS); took < least-slack {
			return fault(journal.ReasonFasterThanRadio, "the driver reports a message of %d bytes that took %s, the emulated radios need %s", m.Bytes, took, least)
		}
	}
	return nil
}

const udpHeader = 8 // RFC 768
