package sheet

import (
	"fmt"
	"math"
	"slices"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
)

// DeadTime is what is reckoned between two trials for starting and ending
// drivers, on top of the plan's pause.
const DeadTime = 200 * time.Millisecond

const (
	// headerBytes is IPv4 and TCP with timestamps (RFC 791, 9293, 7323); other
	// transports' headers are of the same order.
	headerBytes = 52
	// segmentsPerAck is RFC 1122's delayed acknowledgement.
	segmentsPerAck = 2
)

// Estimate is how long each trial of a sheet will take, in the sheet's order:
// connecting and transferring at the goodput that rate, medium, overhead and
// mean loss allow, at most the plan's limits. First-order: no protocol's own
// behaviour is in it. A radio without emulation is reckoned by its rated
// throughput; one whose parameters say nothing, by the transfer limit.
func Estimate(s *runsheet.Sheet) []time.Duration {
	paces := map[way]*pace{} // of thousands of flows, few differ
	out := make([]time.Duration, len(s.Trials))
	for i, t := range s.Trials {
		for _, f := range t.Flows {
			k := way{f.Treatment, f.From, f.To}
			if paces[k] == nil {
				p := paceOf(s, f)
				paces[k] = &p
			}
			out[i] = max(out[i], f.Start+estimateFlow(s, f, paces[k], len(t.Flows)))
		}
		for _, f := range t.Probes {
			out[i] = max(out[i], f.Duration)
		}
	}
	return out
}

type way struct {
	treatment string
	from, to  radio.Role
}

// Total is the estimate of the whole sheet, pauses and dead time included.
func Total(s *runsheet.Sheet) time.Duration {
	var sum time.Duration
	for _, d := range Estimate(s) {
		sum = addClamped(sum, d+DeadTime+s.Limits.Pause)
	}
	return sum
}

func addClamped(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func estimateFlow(s *runsheet.Sheet, f runsheet.Flow, p *pace, sharing int) time.Duration {
	connect := min(s.Limits.Connect, p.roundTrip*3/2)
	switch seconds := float64(f.SizeBytes)*float64(sharing)/p.bytesPerSecond + p.roundTrip.Seconds(); {
	case f.Duration > 0:
		return connect + f.Duration
	case !p.known:
		return s.Limits.Transfer
	case seconds >= s.Limits.Transfer.Seconds():
		return connect + s.Limits.Transfer
	default:
		return connect + time.Duration(seconds*1e9)
	}
}

// pace is the goodput of one bulk transfer alone on the radio and the round
// trip of a full-sized packet; not known where no parameter says it.
type pace struct {
	bytesPerSecond float64
	roundTrip      time.Duration
	known          bool
}

func paceOf(s *runsheet.Sheet, f runsheet.Flow) pace {
	if s.Network != nil {
		return networkPace(s.Network, f, packetBytes(s, f.Treatment))
	}
	for _, fig := range s.Radio.Parameters {
		scale := map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[fig.Unit]
		if fig.Name == "rate" && !fig.Unknown && fig.Value > 0 && scale > 0 {
			return pace{bytesPerSecond: fig.Value * scale / 8, known: true}
		}
	}
	return pace{}
}

// packetBytes is a full-sized packet: the MTU's, or that of a smaller segment
// that the treatment asks for.
func packetBytes(s *runsheet.Sheet, treatment string) int {
	const ipAndTCP = 40 // without options, which a segment's size includes
	n := s.Network.MTUBytes
	if t := s.Treatment(treatment); t != nil {
		switch mss := t.Options["mss"].(type) {
		case int64:
			n = min(n, int(mss)+ipAndTCP)
		case float64:
			n = min(n, int(mss)+ipAndTCP)
		}
	}
	return n
}

// hop is what one packet costs on one link: seconds of the medium, all
// retransmissions of the link's own included, and the chance that it is lost.
func hop(n *radio.Network, l *radio.Link, to radio.Role, packet int) (seconds, lost float64) {
	c, rate := l.Toward(to), n.UserRate(l)
	for _, part := range append([]radio.Channel{*c}, c.Parts...) {
		if part.Trace != nil && len(part.Trace.RateBitsPerSecond) > 0 {
			sum := 0.0
			for _, r := range part.Trace.RateBitsPerSecond {
				sum += r
			}
			rate = min(rate, sum/float64(len(part.Trace.RateBitsPerSecond)))
		}
	}
	if n.Framing == nil {
		return float64(packet+n.FrameOverheadBytes)*8/rate + n.Turnaround.Seconds(), c.LossOf(packet)
	}
	count, bytes := n.Framing.Frames(packet)
	seconds = float64(bytes)*8/rate + n.Turnaround.Seconds()
	if n.ARQ == nil {
		return seconds, c.LossOf(bytes)
	}
	frame := c.LossOf(min(n.Framing.FrameBytes, bytes))
	givenUp := math.Pow(frame, float64(n.ARQ.Persistence+1))
	if frame < 1 {
		seconds *= (1 - givenUp) / (1 - frame)
	}
	return seconds, 1 - math.Pow(1-givenUp, float64(count))
}

func networkPace(n *radio.Network, f runsheet.Flow, packet int) pace {
	payload := float64(packet - headerBytes)
	if payload <= 0 {
		return pace{}
	}
	route := n.Route(f.From, f.To)
	var sum, slowest, slowestOneWay float64 // seconds of airtime for one full packet and its share of an acknowledgement
	answered := 1.0
	for i := 1; i < len(route); i++ {
		l := linkBetween(n, route[i-1], route[i])
		there, lost := hop(n, &l, route[i], packet)
		back, lostBack := hop(n, &l, route[i-1], headerBytes)
		if l.RateBitsPerSecond <= 0 || lost >= 1 || lostBack >= 1 {
			return pace{}
		}
		switch l.Toward(route[i-1]).Model {
		case radio.ChannelGilbertElliott, radio.ChannelMarkov, radio.ChannelOutages, radio.ChannelTrace, radio.ChannelCombined:
			// Acknowledgements cover for each other where single ones are lost,
			// but an outage of their direction holds up the sender too.
			answered *= 1 - lostBack
		}
		data, ack := there/(1-lost), back/(1-lostBack)/segmentsPerAck
		sum += data + ack
		slowest = max(slowest, data+ack)
		slowestOneWay = max(slowestOneWay, data)
	}
	perPacket := sum
	switch n.Medium {
	case radio.MediumHalfDuplex:
		perPacket = slowest
	case radio.MediumFullDuplex:
		perPacket = slowestOneWay
	}
	perPacket /= answered
	if !(perPacket > 0) || math.IsInf(perPacket, 0) {
		return pace{}
	}
	return pace{bytesPerSecond: payload / perPacket, roundTrip: n.RoundTrip(f.From, f.To, packet), known: true}
}

func linkBetween(n *radio.Network, a, b radio.Role) radio.Link {
	for _, l := range n.Links {
		if l.A == a && l.B == b || l.A == b && l.B == a {
			return l
		}
	}
	return radio.Link{}
}

// Summary is one line for people.
func Summary(s *runsheet.Sheet) string {
	what := unit.FormatBytes(s.Cell.SizeBytes)
	switch flows := slices.IndexFunc(s.Trials, func(t runsheet.Trial) bool { return len(t.Flows) > 0 }); {
	case flows < 0 && len(s.Trials) > 0:
		what = "probes"
	case flows >= 0 && s.Cell.SizeBytes == 0 && s.Trials[flows].Flows[0].Duration > 0:
		what = "flows of a fixed duration"
	}
	if s.Cell.Label != "" {
		what += ", " + s.Cell.Label
	}
	if s.Cell.Group != "" {
		what = s.Cell.Group + ": " + what
	}
	most := ""
	if s.Stop != nil {
		most = "at most "
	}
	text := fmt.Sprintf("%s at %s, %s: %d trials (%d treatments × %d iterations, %s order), %sabout %s",
		s.Radio.Title, s.Topology.Title, what,
		len(s.Trials), runnable(s), s.Iterations(), s.Order, most, rough(Total(s)))
	if s.Network == nil {
		text += ", by the radio's rated throughput"
		if !paceOf(s, runsheet.Flow{}).known {
			text += ", which is unknown: at most that long"
		}
	}
	for _, t := range s.Treatments {
		if t.Missing != "" {
			text += fmt.Sprintf("; %s missing: %s", t.Label, t.Missing)
		}
	}
	for _, m := range s.Mixes {
		if m.Missing != "" {
			text += fmt.Sprintf("; %s missing: %s", m.Label, m.Missing)
		}
	}
	return text
}

// runnable is how many treatments and mixes have trials.
func runnable(s *runsheet.Sheet) int {
	names := map[string]bool{}
	for _, t := range s.Trials {
		names[t.Treatment] = true
	}
	return len(names)
}

// rough rounds an estimate to what it is worth.
func rough(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d < 10*time.Minute:
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
