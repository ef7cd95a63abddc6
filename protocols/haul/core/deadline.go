package core

import "time"

// Deadline is when Tick wants to be called at the latest; false: not until a
// packet arrives or the application does something.
func (c *Conn) Deadline() (time.Duration, bool) {
	at, ok := c.deadline()
	if ok {
		at = c.clock.callers(at)
	}
	// The deadlines of messages are times of the application.
	if next := c.nextExpiry(); next > 0 && c.Open() && !c.suspended && (!ok || next < at) {
		at, ok = next, true
	}
	if ok {
		c.clock.expected = max(at, c.clock.caller)
	}
	return at, ok
}

// deadline is Deadline without messages, by the connection's clock.
func (c *Conn) deadline() (time.Duration, bool) {
	switch {
	case c.state == closed:
		return 1, c.closesLeft > 0
	case c.state == connecting:
		return max(c.handshake.next, 1), true
	case c.suspended:
		return 0, false
	}
	at := earliest(c.sender.deadline(), c.receiver.deadline())
	at = earliest(at, c.challengeAt())
	if c.config.KeepAlive > 0 && !c.ping && !c.amplificationLimited && c.timeoutAt() == 0 { // or else something is expected anyway
		at = earliest(at, c.keepAliveAt(c.config.KeepAlive))
	}
	at = earliest(at, c.idleAt(c.deadAfter(), c.halfOpen))
	at = earliest(at, c.closeAt)
	return at, at > 0
}

// deadAfter is how long nothing may be received, 0 while that is no sign of anything.
func (c *Conn) deadAfter() time.Duration {
	if c.peerSuspended {
		return 0
	}
	return c.config.DeadAfter
}

// Tick lets time pass. Transmit is to be called after it.
func (c *Conn) Tick(callers time.Duration) {
	now := c.clock.read(callers)
	if c.state == closed || c.state == connecting || c.suspended {
		return
	}
	c.expire(callers)
	if at := c.idleAt(c.deadAfter(), c.halfOpen); at > 0 && now >= at {
		c.end(ErrDead)
		return
	}
	if at := c.timeoutAt(); at > 0 && now >= at && c.timeoutsCount() {
		c.timedOut(now)
	}
	if k := c.config.KeepAlive; k > 0 && c.timeoutAt() == 0 && now >= c.keepAliveAt(k) {
		c.ping = true
	}
	c.tickClose(now)
}
