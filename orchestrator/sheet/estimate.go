package sheet

import (
	"fmt"
	"math"
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
// throughput; one whose figures say nothing, by the transfer limit.
func Estimate(s *runsheet.Sheet) []time.Duration {
	out := make([]time.Duration, len(s.Trials))
	for i, t := range s.Trials {
		for _, f := range t.Flows {
			d := f.Start + estimateFlow(s, f, len(t.Flows))
			out[i] = max(out[i], d)
		}
	}
	return out
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

func estimateFlow(s *runsheet.Sheet, f runsheet.Flow, sharing int) time.Duration {
	bytesPerSecond, roundTrip, ok := pace(s, f)
	if !ok {
		return s.Limits.Transfer
	}
	connect := min(s.Limits.Connect, roundTrip*3/2)
	seconds := float64(f.SizeBytes)*float64(sharing)/bytesPerSecond + roundTrip.Seconds()
	if seconds >= s.Limits.Transfer.Seconds() {
		return connect + s.Limits.Transfer
	}
	return connect + time.Duration(seconds*1e9)
}

// pace is the goodput of one bulk transfer alone on the radio and the round
// trip of a full-sized packet; not ok where nothing is known.
func pace(s *runsheet.Sheet, f runsheet.Flow) (bytesPerSecond float64, roundTrip time.Duration, ok bool) {
	if s.Network != nil {
		return networkPace(s.Network, f)
	}
	for _, fig := range s.Radio.Figures {
		scale := map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[fig.Unit]
		if fig.Name == "rate" && !fig.Unknown && fig.Value > 0 && scale > 0 {
			return fig.Value * scale / 8, 0, true
		}
	}
	return 0, 0, false
}

func networkPace(n *radio.Network, f runsheet.Flow) (bytesPerSecond float64, roundTrip time.Duration, ok bool) {
	payload := float64(n.MTUBytes - headerBytes)
	if payload <= 0 {
		return 0, 0, false
	}
	route := n.Route(f.From, f.To)
	var sum, slowest, slowestOneWay float64 // seconds of airtime for one full packet and its share of an acknowledgement
	answered := 1.0
	for i := 1; i < len(route); i++ {
		l := linkBetween(n, route[i-1], route[i])
		got := 1 - l.Channel.MeanLoss()
		if l.RateBitsPerSecond <= 0 || got <= 0 {
			return 0, 0, false
		}
		if l.Channel.Model == radio.ChannelGilbertElliott {
			// Acknowledgements cover for each other where single ones are lost,
			// but an outage of their direction holds up the sender too.
			answered *= got
		}
		air := func(packet float64) float64 {
			return ((packet+float64(n.FrameOverheadBytes))*8/l.RateBitsPerSecond + n.Turnaround.Seconds()) / got
		}
		data, ack := air(float64(n.MTUBytes)), air(headerBytes)/segmentsPerAck
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
	if perPacket <= 0 || math.IsInf(perPacket, 0) {
		return 0, 0, false
	}
	return payload / perPacket, n.RoundTrip(f.From, f.To, n.MTUBytes), true
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
	text := fmt.Sprintf("%s at %s, %s: %d trials (%d treatments × %d iterations, %s order), about %s",
		s.Radio.Title, s.Topology.Title, unit.FormatBytes(s.Cell.SizeBytes),
		len(s.Trials), runnable(s), s.Iterations(), s.Order, rough(Total(s)))
	if s.Network == nil {
		text += ", by the radio's rated throughput"
		if _, _, ok := pace(s, runsheet.Flow{}); !ok {
			text += ", which is unknown: at most that long"
		}
	}
	for _, t := range s.Treatments {
		if t.Missing != "" {
			text += fmt.Sprintf("; %s missing: %s", t.Label, t.Missing)
		}
	}
	return text
}

func runnable(s *runsheet.Sheet) int {
	n := 0
	for _, t := range s.Treatments {
		if t.Missing == "" {
			n++
		}
	}
	return n
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
