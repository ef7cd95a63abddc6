package measure

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"linktrial/internal/radio"
)

// Part is what of a measurement a plan has.
type Part int

const (
	// Whole is all of it in one run: the rate is known well enough to choose times by.
	Whole Part = iota
	// Search is the capacity alone: nothing says how fast the link is.
	Search
	// Rest is what follows a [Search].
	Rest
	// Track is small packets and voice alone, again and again while somebody moves.
	Track
)

// Names of plans by which measurements are found among campaigns.
var partNames = map[Part]string{Whole: "measure", Search: "measure-search", Rest: "measure-rest", Track: "measure-track"}

// PartOf is the part that a plan of this name is; false: it is no measurement.
func PartOf(plan string) (Part, bool) {
	for p, name := range partNames {
		if name == plan {
			return p, true
		}
	}
	return Whole, false
}

// PlanNames are the names of the plans of these parts.
func PlanNames(parts ...Part) (out []string) {
	for _, p := range parts {
		out = append(out, partNames[p])
	}
	return out
}

// Link is what is measured.
type Link struct {
	Radio, Topology string // names in the catalogue
	// RateBPS is what one way carries, in bit/s, as far as it is known: that of the profile,
	// or the lower capacity of both ways; 0: nothing says it.
	RateBPS float64
	Relay   bool // packets pass a relay, which may share the medium
}

// LinkOf is the link of a radio and a topology. The rate of the profile is that of the link
// unless the radio is unnamed. A relay that may share the medium halves it.
func LinkOf(p *radio.Profile, t *radio.Topology, unnamed bool) Link {
	l := Link{Radio: p.Name, Topology: t.Name}
	for i := range t.Stations {
		l.Relay = l.Relay || t.Stations[i].Role == radio.RoleRelay
	}
	if unnamed {
		return l
	}
	own := l.Relay
	if p.Emulation != nil {
		l.RateBPS = p.Emulation.RateBitsPerSecond
		own = own && p.Emulation.Medium == radio.MediumShared
	} else {
		l.RateBPS = ratedBPS(p)
	}
	if own {
		l.RateBPS /= 2
	}
	return l
}

// ratedBPS is the rated throughput of a profile in bit/s; 0: it states none.
func ratedBPS(p *radio.Profile) float64 {
	for _, f := range p.Parameters {
		scale := map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[f.Unit]
		if f.Name == "rate" && !f.Unknown && f.Value > 0 && scale > 0 {
			return f.Value * scale
		}
	}
	return 0
}

// From which rate of one way on, in bit/s, speech is measured: G.711 (80 kbit/s with headers
// of IP and UDP) where both directions take at most 40 % of a shared medium; G.729, of which
// g729BPS is the rate with headers, in both directions at once, else one after the other, as
// with a push-to-talk key.
const (
	g711From          = 400e3
	g729BPS, g729From = 24e3, 27e3
	g729AtOnceFrom    = 60e3
)

// Plan is a composed plan.
type Plan struct {
	Name, Text string
	// Bound is how long its run lasts at most, preparing the nodes not included.
	Bound time.Duration
}

// trackPackets is how many small packets a [Track] sends each way: none lost of them bounds
// the loss below 5 %.
const trackPackets = 80

// composer collects a plan.
type composer struct {
	treatments, probes []string
	bound, overhead    time.Duration
}

func (c *composer) probe(name, label, options string, alone time.Duration, beside bool, from ...radio.Role) {
	c.treatments = append(c.treatments, fmt.Sprintf("{name: %s, label: %q, protocol: probe, options: {%s}}", name, label, options))
	for _, role := range from {
		c.probes = append(c.probes, fmt.Sprintf("{treatment: %s, from: %s, alone: %s, beside: %t}", name, role, alone, beside))
	}
	c.bound += alone + c.overhead
}

// Names of the treatments, by which results are found.
const (
	capacityThere, capacityBack = "capacity-there", "capacity-back"
	idle                        = "idle"
	voiceG711, voiceG729        = "voice-g711", "voice-g729"
	voiceThere, voiceBack       = "voice-g729-there", "voice-g729-back"
	messages                    = "messages"
	messagesThere, messagesBack = "messages-there", "messages-back"
	tcp, haul                   = "tcp-cubic", "haul"
)

// Compose is the plan that measures a part of a link: one iteration in the order of the
// plan. The search is the campaign by whose capacities a rest or a track is made; empty: none.
func Compose(l Link, part Part, search string) Plan {
	p := l.pace()
	c := &composer{overhead: p.trialOverhead()}
	if part == Whole || part == Search {
		c.probe(capacityThere, "Capacity, there", "pattern: capacity", p.search, false, radio.RoleClient)
		c.probe(capacityBack, "Capacity, back", "pattern: capacity", p.search, false, radio.RoleServer)
	}
	if part == Track {
		p.idle, p.voice = time.Duration(trackPackets/p.perSecond*float64(time.Second)), p.voice/2
	}
	if part != Search {
		c.idle(p)
		if part != Track {
			c.messages(l, p)
		}
		c.voice(l, p)
	}
	flows := ""
	if part == Whole || part == Rest {
		c.transfers(p)
		flows = fmt.Sprintf("flows: [{duration: %s}]\n", p.transfer)
	}
	text := "# What this link is good for: composed by 'linktrial measure'.\n"
	if search != "" {
		text += searchMark + search + "\n"
	}
	text += fmt.Sprintf(`name: %s
title: Measure this link
radio: %q
topology: %q
treatments:
  - %s
%sprobes:
  - %s
iterations: 1
order: fixed
seed: 1
limits: {connect: %s, transfer: %s, attempts: 1}
sample_interval: 500ms
`, partNames[part], l.Radio, l.Topology, strings.Join(c.treatments, "\n  - "), flows, strings.Join(c.probes, "\n  - "), p.connect, p.limit)
	return Plan{Name: partNames[part], Text: text, Bound: c.bound}
}

// idle adds the constant probe, in both directions at once: it is no load. It also
// accompanies the transfers.
func (c *composer) idle(p pace) {
	c.probe(idle, "Small packets", fmt.Sprintf("pattern: constant, packets_per_second: %g, packet: %d B", p.perSecond, p.payload), p.idle, true, radio.RoleClient, radio.RoleServer)
}

// Messages: five times those that are one packet, and then a long one, which takes most of
// the time. From messagesAtOnceFrom on, in bit/s, both ways have them at once. Their rate in
// bit/s is bounded: more of them would tell no more.
const (
	messageSizes       = "20 100 1024 20 100 1024 20 100 1024 20 100 1024 20 100 1024 10240"
	messagesAtOnceFrom = 256e3
	leastMessageBPS    = 500
	mostMessageBPS     = 400e3
)

// messages adds messages at a rate that leaves the link idle in between.
func (c *composer) messages(l Link, p pace) {
	bps := min(max(p.messageShare*l.RateBPS, leastMessageBPS), mostMessageBPS)
	options := fmt.Sprintf("pattern: messages, messages: %q, message_kbit_per_second: %.4g", messageSizes, bps/1e3)
	if l.RateBPS >= messagesAtOnceFrom {
		c.probe(messages, "Messages", options, p.messages, false, radio.RoleClient, radio.RoleServer)
		return
	}
	c.probe(messagesThere, "Messages, there", options, p.messages, false, radio.RoleClient)
	// Two treatments must differ; messages have no spurts.
	c.probe(messagesBack, "Messages, back", options+", talk: 2s", p.messages, false, radio.RoleServer)
}

// voice adds speech without pauses, which has more packets to judge by.
func (c *composer) voice(l Link, p pace) {
	switch {
	case l.RateBPS >= g711From:
		c.probe(voiceG711, "Voice (G.711)", "pattern: voip-g711, pause: 0s", p.voice, false, radio.RoleClient, radio.RoleServer)
	case l.RateBPS >= g729AtOnceFrom:
		c.probe(voiceG729, "Voice (G.729)", "pattern: voip-g729, pause: 0s", p.voice, false, radio.RoleClient, radio.RoleServer)
	case l.RateBPS >= g729From:
		c.probe(voiceThere, "Voice (G.729), there", "pattern: voip-g729, pause: 0s", p.voice, false, radio.RoleClient)
		// Two treatments must differ; without pauses the length of a spurt does nothing.
		c.probe(voiceBack, "Voice (G.729), back", "pattern: voip-g729, talk: 2s, pause: 0s", p.voice, false, radio.RoleServer)
	}
}

// transfers adds one of TCP CUBIC and one of Haul. A time bounds them, so that a link that
// is slower than it should be takes no longer.
func (c *composer) transfers(p pace) {
	c.treatments = append(c.treatments,
		fmt.Sprintf("{name: %s, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}", tcp),
		fmt.Sprintf("{name: %s, label: Haul, protocol: haul}", haul))
	c.bound += 2 * (p.connect + p.limit + c.overhead)
}

// Bound is how long all parts of a link's measurement take at most. Where the rate is not
// known, that is the time of the slowest link.
func Bound(l Link) time.Duration {
	if l.RateBPS > 0 {
		return Compose(l, Whole, "").Bound
	}
	longest := time.Duration(0)
	for _, p := range paces { // a faster rest may take longer: it has voice
		for _, rate := range []float64{p.fromBPS, g729From} {
			found := l
			found.RateBPS = rate
			longest = max(longest, Compose(found, Rest, "").Bound)
		}
	}
	return Compose(l, Search, "").Bound + longest
}

// searchMark begins the line of a plan that names the campaign of its search.
const searchMark = "# The capacities are those of the campaign "

var searched = regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(searchMark) + `([0-9a-z]+)$`)

// SearchLine is the line by which the text of a plan names the campaign of its search.
func SearchLine(campaign string) string { return searchMark + campaign + "\n" }

// SearchOf is the campaign by whose capacities a plan was made; empty: there is none.
func SearchOf(text string) string {
	if m := searched.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
