package core

import (
	"fmt"
	"strings"
	"time"

	"linktrial/protocols/haul/wire"
)

const (
	mostCloses  = 12 // without an answer; the pauses grow, so that a burst of losses does not take all
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
		c.suspended, c.suspendNotices = false, 0
	}
}

// Abort ends the connection at once: what has not arrived is discarded, at both
// ends. reason is for people, and arrives as the other end's AbortError; of a
// longer one the first 200 bytes do.
func (c *Conn) Abort(reason string) {
	if c.state == closed {
		return
	}
	c.closeFrame = wire.Close{Abort: true, Reason: reason}
	if c.keys != nil {
		c.closesLeft = abortCopies
	}
	c.end(ErrClosed)
}

// violated ends the connection because of a violation of the protocol.
func (c *Conn) violated(what error) {
	if c.state == closed {
		return
	}
	c.Abort("protocol violated: " + what.Error())
	c.err = fmt.Errorf("%w: %w", ErrProtocol, what)
}

// closeDue reports whether a close is to be sent now.
func (c *Conn) closeDue(now time.Duration) bool {
	if c.state != closing || c.open > 0 || c.out.count > 0 && c.out.head(func(*outMessage) bool { return true }) != nil || len(c.out.items) > 0 || c.unreliable != nil {
		return false
	}
	if c.closes > 0 && now < c.closeAt {
		return false
	}
	if c.closes >= mostCloses {
		return false
	}
	c.closes++
	c.closeSent = true
	pause := c.rate.timeout()
	if c.loss.share() > 0.1 {
		pause /= 2
	}
	c.closeAt = now + min(pause<<(c.closes/4), 2*time.Second)
	return true
}

// tickClose gives the close up after some without an answer.
func (c *Conn) tickClose(now time.Duration) {
	if c.state == closing && c.closes >= mostCloses && now >= c.closeAt {
		c.end(nil)
	}
}

// writeClose writes the last packets of a closed connection.
func (c *Conn) writeClose(now time.Duration, buf []byte) int {
	if c.closesLeft == 0 || c.keys == nil {
		return 0
	}
	c.closesLeft--
	last := c.closeFrame
	if c.move.to.IsValid() {
		// To where the packet came from that this answers, and no more than may go there.
		c.sendTo, last.Reason = c.move.to, ""
	}
	return c.seal(now, buf, wire.AppendClose(c.begin(buf, false), last), sentPacket{})
}

// handleAfterClose reads a packet that comes when the connection has ended. The last
// word may have been lost, so it is said again, but never in answer to another
// last word: two closed ends would go on for ever.
func (c *Conn) handleAfterClose(body []byte) {
	for len(body) > 0 {
		body, _ = wire.Next(body, &c.frame)
		if f := &c.frame; f.Kind == wire.FrameClose {
			if f.Close.Answer {
				c.closesLeft, c.confirmed = 0, true
			} else if f.Close.Abort {
				c.confirmed = true
			} else {
				c.closeFrame, c.closesLeft = wire.Close{Answer: true}, 1
			}
			return
		}
	}
	c.closesLeft = max(c.closesLeft, 1)
}

// handleClose takes in the other end's close.
func (c *Conn) handleClose(f wire.Close) {
	switch {
	case f.Answer:
		if c.state == closing {
			c.confirmed = true
			c.end(nil)
		}
		return
	case f.Abort:
		c.closeFrame, c.closesLeft = wire.Close{Abort: true, Answer: true}, 1
		c.end(&AbortError{Reason: strings.ToValidUTF8(f.Reason, "\uFFFD")})
		return
	}
	c.closeFrame = wire.Close{Answer: true}
	c.closesLeft = 1
	c.end(nil)
}
