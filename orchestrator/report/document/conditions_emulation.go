package document

import (
	"fmt"
	"strings"

	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report/wording"
)

var mediums = map[radio.Medium]string{
	radio.MediumShared:     "shared: one transmission at a time among all radios",
	radio.MediumHalfDuplex: "half duplex: both directions of a link share its rate",
	radio.MediumFullDuplex: "full duplex: every direction of every link has its own rate",
}

// emulationFacts adds how a radio was emulated in a run at a topology, in words.
func emulationFacts(f *spreadFacts, run int, e *radio.Emulation, topology string) {
	add := func(known bool, name, text string) {
		if known {
			f.add(run, name, text)
		}
	}
	add(true, "Medium", mediums[e.Medium])
	add(true, "Rate on the air", unit.FormatRate(e.RateBitsPerSecond))
	add(true, "Processing delay", lasting(e.ProcessingDelay)+" a hop")
	add(e.Turnaround > 0, "Turnaround", lasting(e.Turnaround)+" between transmitters")
	add(e.FrameOverheadBytes > 0, "Overhead", fmt.Sprintf("%d B a packet", e.FrameOverheadBytes))
	add(true, "MTU", fmt.Sprintf("%d B", e.MTUBytes))
	add(true, "Queue", queueText(&e.Queue))
	add(true, "Channel", channelText(&e.Channel))
	if e.Reverse != nil {
		add(true, "Channel back", channelText(e.Reverse))
	}
	linkFacts(add, e)
	if e.Access != nil {
		add(true, "Access", accessText(e.Access))
	}
	if site, known := e.Sites[topology]; known {
		add(true, "Between relay and client at "+topology, siteText(&site))
	}
}

// linkFacts are what a radio does to frames and packets beside its channel.
func linkFacts(add func(known bool, name, text string), e *radio.Emulation) {
	if f := e.Framing; f != nil {
		add(true, "Frames", fmt.Sprintf("%d B, %d B of them header", f.FrameBytes, f.HeaderBytes))
	}
	if f := e.FEC; f != nil {
		text := string(f.Code)
		if f.BlockSymbols > 0 {
			text += fmt.Sprintf(" (%d, %d)", f.BlockSymbols, f.DataSymbols)
		}
		text += ", rate " + wording.Short(&f.CodeRate)
		if f.InterleavingDepth > 0 {
			text += fmt.Sprintf(", interleaving depth %d", f.InterleavingDepth)
		}
		if f.ResidualBER > 0 {
			text += ", bit error rate behind it " + wording.Short(&f.ResidualBER)
		}
		add(true, "Error-correcting code", text)
	}
	if a := e.ARQ; a != nil {
		order := map[bool]string{true: "in order", false: "as they come"}[a.InOrder]
		add(true, "ARQ", fmt.Sprintf("selective repeat, NACK after %d frames, at most %d retransmissions of a frame, delivered %s", a.NACKTimerFrames, a.Persistence, order))
	}
	if r := e.Reordering; r != nil {
		add(true, "Reordering", percentOf(r.Share)+" of the packets are held back for "+lasting(r.Delay)+" at their destination")
	}
	if d := e.Duplication; d != nil {
		add(true, "Duplication", percentOf(d.Share)+" of the packets come out twice at their destination")
	}
}

func percentOf(share float64) string {
	x := 100 * share
	return wording.Short(&x) + " %"
}

func queueText(q *radio.Queue) string {
	var parts []string
	if q.Bytes > 0 {
		parts = append(parts, unit.FormatBytes(int64(q.Bytes)))
	}
	if q.Packets > 0 {
		parts = append(parts, fmt.Sprintf("%d packets", q.Packets))
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "without bound"
	}
	r := q.RED
	if r == nil {
		return text + ", drop-tail"
	}
	text += fmt.Sprintf("; RED from %d B to %d B, probability %s at most", r.MinBytes, r.MaxBytes, wording.Short(&r.MaxProbability))
	if r.ECN {
		text += ", marks packets (ECN)"
	}
	return text
}

func accessText(a *radio.Access) string {
	switch {
	case a.TDMA != nil:
		owners := make([]string, len(a.TDMA.Owners))
		for i, r := range a.TDMA.Owners {
			owners[i] = string(r)
		}
		return "TDMA, slots of " + lasting(a.TDMA.Slot) + ": " + strings.Join(owners, ", ")
	case a.CSMA != nil:
		c := a.CSMA
		return fmt.Sprintf("carrier sense: DIFS %s, slot %s, window %d to %d slots, %d retries", lasting(c.DIFS), lasting(c.Slot), c.WindowMin, c.WindowMax, c.Retries)
	}
	return "radios take turns"
}

func siteText(s *radio.Site) string {
	var parts []string
	if s.RateBitsPerSecond > 0 {
		parts = append(parts, unit.FormatRate(s.RateBitsPerSecond))
	}
	if s.Channel != nil {
		parts = append(parts, channelText(s.Channel))
	}
	if s.Reverse != nil {
		parts = append(parts, "back: "+channelText(s.Reverse))
	}
	return strings.Join(parts, "; ")
}

// channelText is an error process in words.
func channelText(c *radio.Channel) string {
	switch c.Model {
	case radio.ChannelPerfect:
		return "loses nothing"
	case radio.ChannelUniform:
		return "loses packets independently, " + percentOf(c.Loss)
	case radio.ChannelGilbertElliott:
		return fmt.Sprintf("Gilbert–Elliott%s: good to bad %s, bad to good %s, loss %s in the good state and %s in the bad one", slotsText(c), exact(c.GoodToBad), exact(c.BadToGood), percentOf(c.LossGood), percentOf(c.LossBad))
	case radio.ChannelMarkov:
		return fmt.Sprintf("two-state Markov chain%s: α %s, β %s; %s of the slots are bad", slotsText(c), exact(c.Alpha), exact(c.Beta), percentOf(c.MeanLoss()))
	case radio.ChannelOnOff:
		if o := c.OnOff; o != nil {
			return fmt.Sprintf("ON and OFF periods of %s to %s, mean loss %s, times %s and %s", lasting(o.PeriodMin), lasting(o.PeriodMax), percentOf(c.Loss), exact(o.OnFactor), exact(o.OffFactor))
		}
	case radio.ChannelHiddenMarkov:
		if h := c.Hidden; h != nil {
			return fmt.Sprintf("hidden Markov bit errors of %d states, with bit error rates %s", len(h.BitErrorRates), numbersText(h.BitErrorRates))
		}
	case radio.ChannelOutages:
		if o := c.Outages; o != nil && o.Period > 0 {
			return fmt.Sprintf("outages of %s every %s, loss %s in them", lasting(o.Length), lasting(o.Period), percentOf(o.Loss))
		} else if o != nil {
			return fmt.Sprintf("%s at stated times, loss %s in them", wording.Plural(len(o.Times), "outage", "outages"), percentOf(o.Loss))
		}
	case radio.ChannelTrace:
		return "follows a trace of rate, delay and loss"
	case radio.ChannelMobility:
		return "follows the distance between the stations"
	case radio.ChannelCombined:
		parts := make([]string, len(c.Parts))
		for i := range c.Parts {
			parts[i] = channelText(&c.Parts[i])
		}
		return strings.Join(parts, "; and ")
	}
	return string(c.Model)
}

func slotsText(c *radio.Channel) string {
	if c.Slot == 0 {
		return ""
	}
	return " in slots of " + lasting(c.Slot)
}

func numbersText(xs []float64) string {
	parts := make([]string, len(xs))
	for i := range xs {
		parts[i] = wording.Short(&xs[i])
	}
	return strings.Join(parts, ", ")
}
