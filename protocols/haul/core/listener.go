package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

// Bounds of a listener.
const (
	halfOpenFree = 64              // half-open connections before cookies are asked for
	halfOpenMost = 1024            // and in all
	lingers      = 5 * time.Second // a closed connection answers late packets so long,
	lingersLong  = outagePatience  // and so long where the other end may not know that it is closed
)

// Listener finds the connection of each packet, and makes new ones of hellos.
type Listener struct {
	config  Config
	cookies *secure.Cookies
	conns   map[uint32]*Conn
	hellos  map[helloKey]*Conn
	closed  map[*Conn]time.Duration
	half    int
	// Always asks every client for a cookie before anything is kept for it.
	Always bool
	// Dropped counts packets of no connection.
	Dropped Dropped
}

// NewListener makes a listener; every connection gets the configuration.
func NewListener(config Config) (*Listener, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	cookies, err := secure.NewCookies(config.Random)
	if err != nil {
		return nil, err
	}
	return &Listener{config: config, cookies: cookies, conns: map[uint32]*Conn{},
		hellos: map[helloKey]*Conn{}, closed: map[*Conn]time.Duration{}}, nil
}

// Receive takes in a packet. conn is the connection that it belongs to, nil for
// none; fresh says that it is new. reply, in buf, is to be sent back at once.
func (l *Listener) Receive(now time.Duration, p []byte, from netip.AddrPort, ecn uint8, buf []byte) (conn *Conn, fresh bool, reply []byte) {
	kind, version, err := wire.KindOf(p)
	switch {
	case err != nil:
		l.Dropped.Malformed++
	case kind == wire.KindData || kind == wire.KindAsking:
		id, _, err := wire.ParseData(p)
		if err != nil {
			l.Dropped.Malformed++
			return nil, false, nil
		}
		if c := l.conns[id]; c != nil {
			half := c.halfOpen
			c.Receive(now, p, from, ecn)
			if half && !c.halfOpen {
				l.half--
			}
			return c, false, nil
		}
		l.Dropped.Unexpected++
	case kind == wire.KindHello && version == wire.Version:
		return l.hello(now, p, from, buf)
	case kind == wire.KindHello && len(p) >= wire.MinHello:
		l.Dropped.Version++
		return nil, false, wire.AppendRefusal(buf[:0], binary.BigEndian.Uint32(p[1:]),
			fmt.Sprintf("this end speaks version %d of haul, the other version %d", wire.Version, version))
	default:
		l.Dropped.Unexpected++
	}
	return nil, false, nil
}

func (l *Listener) hello(now time.Duration, p []byte, from netip.AddrPort, buf []byte) (conn *Conn, fresh bool, reply []byte) {
	h, err := wire.ParseHello(p)
	if err != nil || len(h.Message) < 4 {
		l.Dropped.Malformed++
		return nil, false, nil
	}
	key := helloKey{from: from, client: h.Client}
	copy(key.message[:], h.Message)
	if c := l.hellos[key]; c != nil {
		c.handleHelloAgain(h, len(p))
		return c, false, nil
	}
	if l.Always || l.half >= halfOpenFree || len(h.Cookie) > 0 {
		if !l.cookies.Check(from, h.Message, h.Cookie, now) {
			return nil, false, wire.AppendRetry(buf[:0], h.Client, l.cookies.Make(from, h.Message, now))
		}
	}
	c, err := accept(l.config, h, from, len(p), now)
	switch {
	case errors.Is(err, secure.ErrMismatch):
		l.Dropped.Forged++
		return nil, false, wire.AppendRefusal(buf[:0], h.Client, errMode.Error())
	case err != nil:
		l.Dropped.Malformed++
		return nil, false, nil
	}
	if l.conns[c.id] != nil {
		return nil, false, nil // the same identity twice: the client asks again, and gets another
	}
	if l.half >= halfOpenMost {
		l.dropOldest()
	}
	l.half++
	l.conns[c.id], l.hellos[key] = c, c
	c.handshake.key = key
	return c, true, nil
}

// Sweep forgets connections that have ended. It returns when it wants to be
// called again, 0 for not until something happens.
func (l *Listener) Sweep(now time.Duration) (next time.Duration) {
	for _, c := range l.conns {
		at, known := l.closed[c]
		switch {
		case c.state == closed && !known:
			at = now + lingersLong
			l.closed[c] = at
		case c.state == closed && (now >= at || c.confirmed && now >= at-lingersLong+lingers):
			l.forget(c)
			continue
		}
		if c.state == closed {
			next = earliest(next, at)
		}
	}
	return next
}

// dropOldest ends the half-open connection that has waited for longest: a
// client that is there would have gone on long ago.
func (l *Listener) dropOldest() {
	var oldest *Conn
	for _, c := range l.conns {
		if c.halfOpen && (oldest == nil || c.lastReceived < oldest.lastReceived) {
			oldest = c
		}
	}
	oldest.end(ErrDead)
	l.forget(oldest)
}

func (l *Listener) forget(c *Conn) {
	delete(l.conns, c.id)
	delete(l.hellos, c.handshake.key)
	delete(l.closed, c)
	if c.halfOpen {
		l.half--
	}
}
