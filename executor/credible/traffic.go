package credible

import (
	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// Station is a listener: its node and its port.
type Station struct {
	At   radio.Role
	Port int
}

// Of reports whether packets are to or from one of the listeners.
func Of(t *radiocontrol.Traffic, stations []Station) bool {
	for _, s := range stations {
		if t.Destination == s.At && t.DestinationPort == s.Port || t.Source == s.At && t.SourcePort == s.Port {
			return true
		}
	}
	return false
}

// Bounds of what may be on the radio during an attempt beside its own packets: what
// closes of connections of attempts before leave behind is small.
const (
	foreignShare   = 0.01 // of the attempt's own bytes on the hop that carried most of them
	foreignPackets = 4    // full ones
)

// TolerableForeign is how many bytes of other packets may pass where an attempt has so many
// of its own.
func TolerableForeign(own int64, mtu int) int64 {
	return max(int64(foreignShare*float64(own)), foreignPackets*int64(mtu))
}

// Foreign is what of an attempt's traffic is not to or from its listeners.
type Foreign struct {
	Hop   radiocontrol.Traffic // the hop on which most of it passed, and those of its packets of which there were most
	Bytes int64                // of all of it on that hop
	Own   int64                // bytes of the attempt, on the hop that carried most of them
}

// ForeignTo is the traffic at a trial's hops that is none of the attempt's whose
// listeners these are; nil where it is too little to have an effect. What tolerated
// reports is left out.
func ForeignTo(n *radio.Network, all []radiocontrol.Traffic, stations []Station, tolerated func(*radiocontrol.Traffic) bool) *Foreign {
	type hop struct {
		from, to radio.Role
		second   bool
	}
	own, foreign := map[hop]int64{}, map[hop]int64{}
	f := &Foreign{}
	for i := range all {
		t := &all[i]
		at := hop{t.From, t.To, t.Second}
		switch {
		case Of(t, stations):
			own[at] += t.SentBytes
			f.Own = max(f.Own, own[at])
		case !tolerated(t):
			foreign[at] += t.SentBytes
			f.Bytes = max(f.Bytes, foreign[at])
		}
	}
	if n == nil || f.Bytes <= TolerableForeign(f.Own, n.MTUBytes) {
		return nil
	}
	for i := range all {
		t := &all[i]
		if !Of(t, stations) && !tolerated(t) && foreign[hop{t.From, t.To, t.Second}] == f.Bytes && t.SentBytes > f.Hop.SentBytes {
			f.Hop = *t
		}
	}
	return f
}

// ArrivedOf holds the packets that probes of one treatment and direction say have
// arrived against those that the last hop delivered at its listener's port. What else
// passes there only makes the bound higher.
func ArrivedOf(received int64, from, to radio.Role, all []radiocontrol.Traffic, stations []Station) *Fault {
	delivered := int64(0)
	for i := range all {
		if t := &all[i]; t.To == to && t.Source == from && t.Destination == to && Of(t, stations) {
			delivered += t.DeliveredPackets
		}
	}
	if len(all) == 0 || received <= delivered {
		return nil
	}
	return fault(journal.ReasonMoreThanSent, "the driver reports %d packets received, the emulated radio delivered %d of the %s at the ports of their listener to the %s", received, delivered, from, to)
}

// Bounds of what a sender need not send again although the radio lost it: packets that
// open a connection or look for the path's MTU are as large as those with payload, and a
// packet sent again may carry what several had.
const (
	missedUnrelated = 24
	missedFor       = 4 // lost packets for each one sent again
)

// Repaired holds the packets that a sender says it sent again, or sent as repairs,
// against those of its large ones that the radio lost on the way to the listener: all
// payload has arrived, so each one with payload was made up for.
func Repaired(again int64, from radio.Role, to Station, all []radiocontrol.Traffic) *Fault {
	missed := int64(0)
	for i := range all {
		if t := &all[i]; t.Source == from && t.Destination == to.At && t.DestinationPort == to.Port {
			missed += t.MissedLarge
		}
	}
	if !fewer(again, missed) {
		return nil
	}
	return fault(journal.ReasonFewerThanLost, "the driver reports %d packets sent again, the emulated radio lost %d of over half of its MTU on the way from the %s to the %s, and all payload arrived", again, missed, from, to.At)
}

// RepairedOf is [Repaired] on real radios: of bytes of payload that left the sender and did
// not arrive, full packets of which there were at the least so many.
func RepairedOf(again, missedBytes int64, mtu int, from, to radio.Role) *Fault {
	missed := missedBytes / int64(mtu)
	if !fewer(again, missed) {
		return nil
	}
	return fault(journal.ReasonFewerThanLost, "the driver reports %d packets sent again; %d bytes of payload left the radio of the %s and did not arrive at that of the %s, at least %d packets, and all payload arrived", again, missedBytes, from, to, missed)
}

// fewer reports whether fewer packets were sent again than so many lost ones allow.
func fewer(again, missed int64) bool {
	return missedFor*again < missed-missedUnrelated
}
