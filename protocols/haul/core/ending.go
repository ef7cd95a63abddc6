package core

import (
	"time"

	"linktrial/protocols/haul/wire"
)

// ending is how a connection ends: what was sent is delivered first, then a
// close goes out until it is answered.
type ending struct {
	closeSent int
	closeAt   time.Duration
	closeNow  bool
	farewells int // packets of a closed connection that still go out
	last      wire.Close
	remote    bool // the other end has closed
	notices   int
}

const (
	mostCloses  = 6 // without an answer
	abortCopies = 3
)

// Close ends the connection in order: what was sent still arrives. It is
// complete when Closed reports so.
func (c *Conn) Close() {
	switch c.state {
	case connecting:
		c.end(nil)
	case open:
		c.state = closing
	}
}

// Abort ends the connection at once: what has not arrived is discarded, at both
// ends. reason is for people.
func (c *Conn) Abort(reason string) {
	if c.state == closed {
		return
	}
	c.last = wire.Close{Abort: true, Reason: reason}
	if c.keys != nil {
		c.farewells = abortCopies
	}
	c.end(ErrClosed)
}

// closeDue reports whether a close is to be sent now.
func (c *Conn) closeDue(now time.Duration) bool {
	if c.state != closing || c.open > 0 || c.out.count > 0 && c.out.head(func(*outMessage) bool { return true }) != nil || len(c.out.items) > 0 {
		return false
	}
	if c.closeSent > 0 && now < c.closeAt {
		return false
	}
	if c.closeSent >= mostCloses {
		return false
	}
	c.closeSent++
	pause := c.rate.timeout()
	if c.loss.share() > 0.1 {
		pause /= 2
	}
	c.closeAt = now + min(pause, 2*time.Second)
	return true
}

func (c *Conn) closeFrame() wire.Close { return wire.Close{} }

// tickClose gives the close up after some without an answer.
func (c *Conn) tickClose(now time.Duration) {
	if c.state == closing && c.closeSent >= mostCloses && now >= c.closeAt {
		c.end(nil)
	}
}

// farewell writes the last packets of a closed connection.
func (c *Conn) farewell(now time.Duration, buf []byte) int {
	if c.farewells == 0 || c.keys == nil {
		return 0
	}
	c.farewells--
	return c.seal(now, buf, wire.AppendClose(c.begin(buf, false), c.last), sentPacket{})
}

// closedBy takes in the other end's close.
func (c *Conn) closedBy(f wire.Close) {
	switch {
	case f.Answer:
		if c.state == closing || c.state == closed {
			c.end(nil)
			c.farewells = 0
		}
		return
	case f.Abort:
		if c.state != closed {
			c.reason = f.Reason
			c.end(ErrAborted)
		}
		return
	}
	c.last = wire.Close{Answer: true}
	c.farewells = 1
	c.remote = true
	if c.state != closed {
		c.end(nil)
	}
}
