package lttcp

import (
	"net/netip"
	"time"

	"linktrial/protocols/datagram"
	"linktrial/protocols/datagram/edge"
	"linktrial/protocols/lttcp/core"
)

// endpoint is the connections over one socket: one of a client, any number of a listener.
type endpoint struct {
	*edge.Edge
	options  Options
	client   *Conn
	listener *core.Listener
	conns    map[*core.Conn]*Conn
	accepted chan *Conn // a listener's, until Accept
}

func newEndpoint(s *datagram.Socket, o Options) *endpoint {
	e := &endpoint{options: o, conns: map[*core.Conn]*Conn{}}
	e.Edge = edge.New(s, e)
	return e
}

// Refused takes a report that nobody has the other end's port: no server, or a client
// that has ended.
func (e *endpoint) Refused(now time.Duration, by netip.AddrPort) {
	if e.client != nil {
		e.client.refused(now)
		return
	}
	for _, c := range e.conns {
		if c.remote == by {
			c.refused(now)
		}
	}
}

func (c *Conn) refused(now time.Duration) {
	if over, _ := c.core.Closed(); over {
		return
	}
	open := c.core.Open()
	// An end of LT-TCP cannot move to another address, so a closed port is its end.
	if err := c.port.Refused(now, open || c.end.client == nil, 0); err != nil {
		if open {
			c.core.Abort()
		}
		c.fail(err)
	}
}

// Unreachable ends an attempt to connect; later, it is a loss as any other.
func (e *endpoint) Unreachable(err error) {
	if e.client != nil && !e.client.core.Open() {
		e.client.fail(err)
	}
}

// TooLarge does nothing: segments are as long as the path takes when the socket is
// opened, and what is too long for it later is lost.
func (e *endpoint) TooLarge(datagram.Packet) {}

// Receive hands a packet to its connection.
func (e *endpoint) Receive(now time.Duration, p datagram.Packet) {
	if e.client != nil {
		e.client.core.Receive(now, p.Data, p.ECN)
		e.client.port.Heard(now)
		e.client.touched = true
		return
	}
	k, fresh := e.listener.Receive(now, p.Data, p.Addr, p.ECN)
	if k == nil {
		return
	}
	c := e.conns[k]
	if c == nil {
		c = &Conn{end: e, core: k, remote: p.Addr}
		e.conns[k] = c
	}
	c.port.Heard(now)
	c.touched = true
	if fresh {
		select {
		case e.accepted <- c:
		default: // too many wait already
			k.Abort()
		}
	}
}

// Flush queues what connections have to send, tells applications what has changed,
// and returns the next deadline.
func (e *endpoint) Flush(now time.Duration) (deadline time.Duration) {
	earlier := func(at time.Duration) {
		if at > 0 && (deadline == 0 || at < deadline) {
			deadline = at
		}
	}
	each := func(c *Conn) {
		if c.touched {
			c.touched = false
			e.transmit(now, c)
			c.signal.Tell()
		}
		if at, ok := c.core.Deadline(); ok {
			earlier(at)
		}
	}
	if e.client != nil {
		each(e.client)
		return deadline
	}
	for _, c := range e.conns {
		each(c)
	}
	earlier(e.sweep(now))
	return deadline
}

// sweep forgets connections that the listener has forgotten.
func (e *endpoint) sweep(now time.Duration) (next time.Duration) {
	next = e.listener.Sweep(now)
	if len(e.conns) == e.listener.Len() {
		return next
	}
	known := map[*core.Conn]bool{}
	e.listener.Each(func(k *core.Conn) { known[k] = true })
	for k, c := range e.conns {
		if !known[k] {
			delete(e.conns, k)
			c.signal.Tell()
		}
	}
	return next
}

// transmit queues what a connection has to send now.
func (e *endpoint) transmit(now time.Duration, c *Conn) {
	for {
		p, ecn := c.core.Transmit(now, e.Room())
		if p == nil {
			return
		}
		d := datagram.Packet{Data: p, ECN: ecn}
		if e.client == nil {
			d.Addr = c.remote
		}
		if e.options.NoECN {
			d.ECN = 0
		}
		if e.Queue(d) {
			now = e.Now()
		}
	}
}

// Tick does what is due.
func (e *endpoint) Tick(now time.Duration) {
	each := func(c *Conn) {
		if at, ok := c.core.Deadline(); ok && at <= now {
			c.core.Tick(now)
			c.touched = true
		}
	}
	if e.client != nil {
		each(e.client)
	}
	for _, c := range e.conns {
		each(c)
	}
}
