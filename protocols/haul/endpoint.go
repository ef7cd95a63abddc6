package haul

import (
	"net/netip"
	"time"

	"linktrial/protocols/datagram"
	"linktrial/protocols/datagram/edge"
	"linktrial/protocols/haul/core"
)

// endpoint is the connections over one socket: one of a client, any number of a listener.
type endpoint struct {
	*edge.Edge
	options  Options
	client   *Conn
	listener *core.Listener
	conns    map[*core.Conn]*Conn
	closing  bool       // no new connections
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
	for k, c := range e.conns {
		if k.Remote() == by {
			c.refused(now)
		}
	}
}

func (c *Conn) refused(now time.Duration) {
	if over, _ := c.core.Closed(); over {
		return
	}
	if c.core.Moving() {
		return // nobody is there: the client is elsewhere
	}
	open := c.core.Open()
	if err := c.port.Refused(now, open || c.end.client == nil, c.core.Stats().Timeout); err != nil {
		if open {
			c.core.Abort("the port is closed")
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

// TooLarge tells the packet's connection: a packet that is too large for the path is
// not sent again as it is.
func (e *endpoint) TooLarge(p datagram.Packet) {
	if e.client != nil {
		e.client.core.TooLarge(len(p.Data))
		return
	}
	for k := range e.conns {
		if k.Remote() == p.Addr {
			k.TooLarge(len(p.Data))
		}
	}
}

// Receive hands a packet to its connection.
func (e *endpoint) Receive(now time.Duration, p datagram.Packet) {
	if e.client != nil {
		e.client.core.Receive(now, p.Data, p.Addr, p.ECN)
		e.client.port.Heard(now)
		e.client.touched = true
		return
	}
	k, fresh, reply := e.listener.Receive(now, p.Data, p.Addr, p.ECN, e.Room())
	if reply != nil {
		e.queue(reply, p.Addr)
	}
	if k == nil {
		return
	}
	if fresh {
		if e.closing || !e.admit(k) {
			k.Abort("not accepted")
			return
		}
	}
	if c := e.conns[k]; c != nil {
		c.port.Heard(now)
		c.touched = true
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
			c.touched = e.transmit(now, c)
			c.tell()
			if c.touched {
				earlier(max(now, 1))
			}
		}
		if at, ok := c.core.Deadline(); ok {
			earlier(at)
		}
	}
	if e.client != nil {
		each(e.client)
		return deadline
	}
	for k, c := range e.conns {
		each(c)
		if over, _ := k.Closed(); over && c.told {
			delete(e.conns, k)
		}
	}
	earlier(e.listener.Sweep(now))
	return deadline
}

// transmit queues what a connection has to send now, and reports whether there may be
// more. It stops after a batch: on a node that sends more slowly than the pacing allows,
// time goes on as fast as packets go out, and what has arrived would not be read before
// the window is full.
func (e *endpoint) transmit(now time.Duration, c *Conn) (more bool) {
	for {
		room := e.Room()
		n, to := c.core.Transmit(now, room)
		if n == 0 {
			return false
		}
		if e.queue(room[:n], to) {
			return true
		}
	}
}

func (e *endpoint) queue(b []byte, to netip.AddrPort) (sent bool) {
	p := datagram.Packet{Data: b}
	if e.client == nil {
		p.Addr = to
	}
	if !e.options.NoECN {
		p.ECN = 2 // ECT(0), RFC 3168
	}
	return e.Queue(p)
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
