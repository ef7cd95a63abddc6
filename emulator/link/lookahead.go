package link

import (
	"time"

	"linktrial/emulator/channel"
)

// NextExit is a time before which no packet comes out at its node, unless
// another enters; false when none will. Until then a caller has nothing to do:
// what happens inside is worked off, with its own times, by the next call. It
// is later than [Network.NextEvent] by what a packet at least still needs, so
// that a caller whose wake-ups are expensive wakes about once a packet instead of
// twice a hop.
func (l *Network) NextExit() (time.Duration, bool) {
	at := channel.Forever
	for i := range l.directions {
		at = min(at, l.nextFrom(&l.directions[i]))
	}
	// A packet can come out by a timer: what waited behind one that was given up.
	if h := l.timers.heap; len(h) > 0 {
		at = min(at, h[0].at)
	}
	for i := range l.media {
		m := &l.media[i]
		due := m.wake
		if m.busy {
			due = m.free
		}
		if due != channel.Forever {
			at = min(at, due+m.nearest) // what is on the air is then on its way
		}
	}
	return at, at != channel.Forever
}

// nextFrom bounds what is on its way over one direction.
func (l *Network) nextFrom(d *direction) time.Duration {
	if d.inFlight.n == 0 {
		return channel.Forever
	}
	f := d.inFlight.front()
	if f.kind != unitPacket || int(f.p.dst) == d.to {
		return f.due
	}
	// At a relay it goes on the air once more, but the next may stay here.
	on := &l.directions[l.next[d.to*len(l.nodes)+int(f.p.dst)]]
	at := f.due + on.line.Airtime(int(f.p.bytes), on.fastest) + on.nearest
	if d.inFlight.n > 1 {
		at = min(at, d.inFlight.at(d.inFlight.base+1).due)
	}
	return at
}
