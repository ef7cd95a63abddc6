package core

import (
	"net/netip"
	"time"

	"linktrial/protocols/lttcp/wire"
)

// Bounds of a listener.
const (
	mostHalfOpen = 256              // connections whose client has not answered
	halfOpenFor  = 30 * time.Minute // and for how long: the client may be in an outage
	lingers      = 3 * time.Minute  // an ended connection answers late packets so long
)

// Listener finds the connection of each packet by its address, and makes new ones.
type Listener struct {
	config Config
	conns  map[netip.AddrPort]*Conn
	ends   map[*Conn]time.Duration // when it is forgotten
}

// NewListener makes a listener; every connection gets the configuration.
func NewListener(config Config) (*Listener, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Listener{config: config, conns: map[netip.AddrPort]*Conn{}, ends: map[*Conn]time.Duration{}}, nil
}

// Receive takes in a packet. conn is the connection that it belongs to, nil for
// none; fresh reports whether it has just been opened by the client's answer.
func (l *Listener) Receive(now time.Duration, b []byte, from netip.AddrPort, ecn uint8) (conn *Conn, fresh bool) {
	kind, err := wire.KindOf(b)
	if err != nil {
		return nil, false
	}
	c := l.conns[from]
	if kind == wire.Syn {
		return l.syn(now, b, from, c), false
	}
	if c == nil {
		return nil, false
	}
	half := c.state == granted
	c.Receive(now, b, ecn)
	if half && c.state == open {
		delete(l.ends, c)
		return c, true
	}
	return c, false
}

// syn takes in a client's request. It is either new, or one that has been
// granted already, whose answer may be lost.
func (l *Listener) syn(now time.Duration, b []byte, from netip.AddrPort, c *Conn) *Conn {
	var p wire.Packet
	if wire.Parse(b, &wire.Key{}, &p) != nil || p.Client == 0 {
		return nil
	}
	if c != nil && c.tokens[0] == p.Client {
		c.asks = c.state == granted
		return c
	}
	if c != nil {
		// The client's address has a new client: the old one is gone. A request
		// can be forged, so a connection that is alive stays.
		if over, _ := c.Closed(); !over && c.state != granted {
			return nil
		}
		l.forget(from, c)
	}
	if half := l.halfOpen(); half >= mostHalfOpen {
		l.dropOldest()
	}
	c, err := accept(l.config, &p, now)
	if err != nil {
		return nil
	}
	l.conns[from] = c
	l.ends[c] = now + halfOpenFor
	return c
}

func (l *Listener) halfOpen() (n int) {
	for c := range l.ends {
		if c.state == granted {
			n++
		}
	}
	return n
}

// dropOldest forgets the connection that has waited longest for its client's answer.
func (l *Listener) dropOldest() {
	var from netip.AddrPort
	var oldest *Conn
	for a, c := range l.conns {
		if c.state == granted && (oldest == nil || c.heard < oldest.heard) {
			from, oldest = a, c
		}
	}
	if oldest != nil {
		l.forget(from, oldest)
	}
}

func (l *Listener) forget(from netip.AddrPort, c *Conn) {
	if c.state == granted {
		c.end(ErrAborted)
	}
	delete(l.conns, from)
	delete(l.ends, c)
}

// Len is how many connections there are.
func (l *Listener) Len() int { return len(l.conns) }

// Each calls a function for every connection.
func (l *Listener) Each(f func(c *Conn)) {
	for _, c := range l.conns {
		f(c)
	}
}

// Sweep forgets connections that have ended, or were never opened. It returns
// when it wants to be called again, 0 for not before something happens.
func (l *Listener) Sweep(now time.Duration) (next time.Duration) {
	for a, c := range l.conns {
		at, known := l.ends[c]
		if over, _ := c.Closed(); over && !known {
			at, known = now+lingers, true
			l.ends[c] = at
		}
		switch {
		case known && now >= at:
			l.forget(a, c)
		case known && (next == 0 || at < next):
			next = at
		}
	}
	return next
}
