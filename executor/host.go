package executor

import (
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// Lateness of a wake-up that matters to no value.
const (
	leastLate    = 2 * time.Millisecond // of an idle machine
	realLate     = 5 * time.Millisecond // where nothing is known of the radio
	lateOfRounds = 20                   // a round trip is so many times as long
)

// TolerableLateness is by how much a program may be woken too late without an effect on
// what it measures: by a packet's time on the radio, because the packet before is on its
// way until then, or by a twentieth of the round trip.
func TolerableLateness(n *radio.Network) time.Duration {
	if n == nil {
		return realLate
	}
	l := linkKnowledge(n, radio.RoleClient, radio.RoleServer)
	if l == nil || l.RateBitsPerSecond <= 0 {
		return realLate
	}
	packet := time.Duration(float64(l.MTUBytes) * 8 / l.RateBitsPerSecond * float64(time.Second))
	round := time.Duration(l.RoundTripMS * float64(time.Millisecond))
	return max(leastLate, packet, round/lateOfRounds)
}

// measureHost measures the node's load for an attempt; nothing where nobody can.
func (n *node) measureHost() (end func(*journal.AttemptEnded)) {
	if n.Host == nil {
		return func(*journal.AttemptEnded) {}
	}
	stop := n.Host.Begin(TolerableLateness(n.sheet.Network))
	return func(e *journal.AttemptEnded) {
		load := stop()
		e.Host = &load
	}
}

// holdHost excuses the flows of an attempt during which the node, or the emulated radio on
// it, missed more of the time than the plan allows. It is called when the attempt's
// duration is known.
func (n *node) holdHost(flows []*flow, e *journal.AttemptEnded) {
	if e.Host != nil && e.Host.Longest >= n.tolerance.Slack {
		excuseLateReading(flows, e.Host.Longest, n.Role)
	}
	v := n.sheet.Valid
	if v == nil || v.HostShare == 0 {
		return
	}
	hold := func(what string, share float64, missed, longest time.Duration) {
		if share <= v.HostShare {
			return
		}
		for _, f := range flows {
			f.excuse(journal.ReasonHost, fmt.Sprintf("rule %s: %s for %.1f %% of the attempt (%s), at most %g %% are allowed; the longest time was %s",
				runsheet.RuleHost, what, 100*share, missed.Round(time.Millisecond), 100*v.HostShare, longest.Round(time.Millisecond)))
		}
	}
	if h := e.Host; h != nil {
		hold(fmt.Sprintf("programs of the %s were ready and did not run", n.Role), h.Share(e.Duration), h.Missed, h.Longest)
	}
	if e.Radio != nil && e.Radio.Late != nil {
		l := e.Radio.Late
		hold("the emulated radio gave packets out late", l.Share(e.Duration), l.Missed, l.Longest)
	}
}

// excuseLateReading excuses the flows whose times contradict the moments at which the
// agent read its driver's events: where programs did not run for longer than the
// tolerance of that comparison, the agent may have read an event late.
func excuseLateReading(flows []*flow, longest time.Duration, role radio.Role) {
	for _, f := range flows {
		if r := &f.result; r.Verdict == journal.Invalid && (r.Reason == journal.ReasonLongerThanRun || r.Reason == journal.ReasonShorterThanRun) {
			f.excuse(journal.ReasonHost, fmt.Sprintf("programs of the %s were ready and did not run for %s at a time, so that the agent may have read events of the driver late", role, longest.Round(time.Millisecond)))
		}
	}
}
