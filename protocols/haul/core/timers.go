package core

import "time"

// timers are the times of a connection that belong to neither direction.
type timers struct {
	clock        clock
	lastReceived time.Duration
	lastSent     time.Duration
}

// outagePatience is how long an outage may last before it makes a difference.
const outagePatience = 15 * time.Minute

// halfOpenFor is how long a connection may be half-open: its client's next packet may
// meet an outage.
const halfOpenFor = outagePatience

// idleAt is when nothing has been received for so long that the connection ends
// (cf. RFC 9000, section 10.1), 0 where it does not.
func (t *timers) idleAt(deadAfter time.Duration, halfOpen bool) (at time.Duration) {
	if halfOpen {
		at = t.lastReceived + halfOpenFor
	}
	if deadAfter > 0 {
		at = earliest(at, t.lastReceived+deadAfter)
	}
	return at
}

// keepAliveAt is when a packet is to be sent so that the other end's connection stays.
func (t *timers) keepAliveAt(every time.Duration) time.Duration {
	return max(t.lastSent, t.lastReceived) + every
}

// earliest is the earlier of two times, of which either may be 0 for none.
func earliest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}
