package measure

import "time"

// pace is how long each step of a measurement lasts.
type pace struct {
	search, relayed time.Duration // bound of one search, and of one over a relay
	idle            time.Duration
	perSecond       float64 // packets of the constant probe
	payload         int     // bytes of one
	messages        time.Duration
	messageShare    float64 // of the rate of one way that messages take
	voice, transfer time.Duration
	connect, limit  time.Duration // of a transfer, from its connection on
}

// paces are those from a rate on, in bit/s, the fastest first. The constant probe takes at
// most 7 % of the rate, and has enough packets, alone and beside a transfer, that none lost
// bounds the loss below 5 % (Wilson's interval of 0 of 73). Bounds of searches are those of
// docs/probes.md, but for relays at low rates: there a search that is cut short leaves time
// for the rest.
var paces = []struct {
	fromBPS float64
	pace
}{
	{2e6, pace{search: 20 * time.Second, relayed: 20 * time.Second, idle: 5 * time.Second, perSecond: 20, payload: 100, messages: 6 * time.Second, messageShare: 0.2,
		voice: 8 * time.Second, transfer: 8 * time.Second, connect: 3 * time.Second, limit: 20 * time.Second}},
	{256e3, pace{search: 45 * time.Second, relayed: 90 * time.Second, idle: 10 * time.Second, perSecond: 10, payload: 100, messages: 20 * time.Second, messageShare: 0.2,
		voice: 15 * time.Second, transfer: 15 * time.Second, connect: 5 * time.Second, limit: 45 * time.Second}},
	{64e3, pace{search: 90 * time.Second, relayed: 120 * time.Second, idle: 20 * time.Second, perSecond: 4, payload: 40, messages: 20 * time.Second, messageShare: 0.5,
		voice: 20 * time.Second, transfer: 25 * time.Second, connect: 10 * time.Second, limit: time.Minute}},
	{0, pace{search: 2 * time.Minute, relayed: 140 * time.Second, idle: 32 * time.Second, perSecond: 2.5, payload: 24, messages: 40 * time.Second, messageShare: 0.5,
		voice: 20 * time.Second, transfer: 30 * time.Second, connect: 10 * time.Second, limit: time.Minute}},
}

// slowMessages is how long messages are sent over a relay at the slowest pace.
const slowMessages = 30 * time.Second

func (l Link) pace() pace {
	for _, p := range paces {
		if l.RateBPS >= p.fromBPS {
			if l.Relay {
				p.search, p.messages = p.relayed, min(p.messages, slowMessages)
			}
			return p.pace
		}
	}
	return paces[len(paces)-1].pace
}

// trialOverhead is reckoned for each trial beside its own time: drivers that start, the
// second in which late packets are awaited, and the report over a slow way.
func (p pace) trialOverhead() time.Duration {
	if p.fast() {
		return 2 * time.Second
	}
	return 3 * time.Second
}

func (p pace) fast() bool { return p.connect < 5*time.Second }
