package tun

import (
	"time"

	"golang.org/x/sys/unix"

	"linktrial/emulator/link"
	"linktrial/internal/radiocontrol"
)

// rememberedConnections is how many connections to one listener are told apart. Of more,
// one that has sent little is forgotten.
const rememberedConnections = 32

// moments are those of the packets of a kind; see [radiocontrol.Traffic].
type moments struct {
	carried   int64 // bytes that arrived, without headers
	carriedAt time.Duration
	arrivedAt time.Duration

	// Of packets to a listener:
	payload     int64 // the least of the flows to it, in bytes; 0: not known
	flows       int   // to it
	connections []connection
	last        int  // index of the one whose packet came last
	forgot      bool // a connection was forgotten: one that comes anew may have sent before
	untold      bool // packets came of connections that are not told apart

	// Of packets from a listener: the number of the kind of those to it, and one more; 0:
	// not looked up.
	there int
}

// connection is what one port sends to a listener.
type connection struct {
	port   uint16
	before bool  // the port has sent to the listener in a trial before: it may be what that one left
	bytes  int64 // that it sent, with headers
	opened int64 // those of them that it sent since its first answer
	// carried are those that arrived, without headers.
	carried                                 int64
	first, flowingAt, answeredAt, carriedAt time.Duration
}

// usedPorts are the ports that have sent to listeners, with the number of the first trial
// in which each did.
type usedPorts struct {
	trial int
	first map[usedPort]int
}

type usedPort struct {
	from           uint8 // index of a device
	protocol       uint8
	port, listener uint16
}

// use notes that a port sends to a listener, and reports whether it did in a trial before.
func (u *usedPorts) use(p usedPort) (before bool) {
	trial, known := u.first[p]
	if !known {
		u.first[p] = u.trial
	}
	return known && trial < u.trial
}

// sent notes a packet of a kind to a listener, and returns the index of its connection and
// one more; 0: it is not told apart. Where it notes a moment, it reads the clock anew: the
// loop has read it before it read the packet, which may have been sent in between.
func (t *traffic) sent(n uint16, port uint16, bytes int) uint8 {
	m := &t.moments[n]
	i := m.find(port)
	if i < 0 {
		if i = m.place(); i < 0 {
			m.untold = true
			return 0
		}
		k := &t.kinds[n]
		c := connection{port: port, first: t.clock(), before: t.used.use(usedPort{k.from, k.protocol, port, k.toPort})}
		if m.forgot {
			c.carried = radiocontrol.Opening // as much as it may have sent before it was forgotten
		}
		m.connections[i] = c
	}
	m.last = i
	c := &m.connections[i]
	c.bytes += int64(bytes)
	if c.answeredAt != 0 && c.flowingAt == 0 {
		if c.opened += int64(bytes); c.opened > radiocontrol.Opening {
			c.flowingAt = t.clock()
		}
	}
	return uint8(i + 1)
}

// find is the index of a port's connection, -1 for none.
func (m *moments) find(port uint16) int {
	if m.last < len(m.connections) && m.connections[m.last].port == port {
		return m.last
	}
	for i := range m.connections {
		if m.connections[i].port == port {
			return i
		}
	}
	return -1
}

// place is the index for one more connection, -1 where there is no room: every one has
// sent more than what opens it.
func (m *moments) place() int {
	if len(m.connections) < rememberedConnections {
		m.connections = append(m.connections, connection{})
		return len(m.connections) - 1
	}
	least := 0
	for i := range m.connections {
		if m.connections[i].bytes < m.connections[least].bytes {
			least = i
		}
	}
	if m.connections[least].bytes > radiocontrol.Opening {
		return -1
	}
	m.forgot = true
	return least
}

// answering is what sent returns, for a packet of a kind from a listener to a port.
func (t *traffic) answering(n uint16, port uint16) uint8 {
	m := &t.moments[n]
	if m.there == 0 {
		k := &t.kinds[n]
		there, known := t.numbers[kind{from: k.to, to: k.from, protocol: k.protocol, toPort: k.fromPort}]
		if !known {
			return 0
		}
		m.there = int(there) + 1
	}
	return uint8(t.moments[m.there-1].find(port) + 1)
}

// arrived notes a packet that its last hop has delivered.
func (t *traffic) arrived(n int, e *link.Event) {
	if t.window > 0 {
		t.windows[n].add(e.At, int64(e.Bytes))
	}
	k, m := &t.kinds[n], &t.moments[n]
	of := int(t.connection[e.Handle]) - 1
	switch {
	case k.toListener():
		bytes := int64(e.Bytes) - overheadOf(k.protocol)
		if m.carried += bytes; m.carriedAt == 0 && m.payload > 0 && m.carried >= m.payload {
			m.carriedAt = e.At
		}
		if of < 0 {
			return
		}
		c := &m.connections[of]
		if c.carried += bytes; c.carriedAt == 0 && m.payload > 0 && c.carried >= m.payload {
			c.carriedAt = e.At
		}
	case k.fromListener():
		if m.arrivedAt == 0 {
			m.arrivedAt = e.At
		}
		if of < 0 || m.there == 0 {
			return
		}
		if c := &t.moments[m.there-1].connections[of]; c.answeredAt == 0 {
			c.answeredAt = e.At
		}
	}
}

// overheadOf is the least that the headers of a packet with payload take, in bytes: IPv4's
// without options and its protocol's (RFC 9293, RFC 768, RFC 9260 with one chunk).
func overheadOf(protocol uint8) int64 {
	switch protocol {
	case unix.IPPROTO_TCP:
		return 20 + 20
	case unix.IPPROTO_UDP:
		return 20 + 8
	case unix.IPPROTO_SCTP:
		return 20 + 12 + 16
	}
	return 20
}

// began are the moments when the first packet came of the connection that sent most, and
// when payload was flowing for certain: what a trial before has left has a port of then.
func (m *moments) began() (first, flowing time.Duration) {
	most := connection{}
	for _, c := range m.connections {
		if c.bytes > most.bytes {
			most = c
		}
		if !c.before && c.flowingAt != 0 && (flowing == 0 || c.flowingAt < flowing) {
			flowing = c.flowingAt
		}
	}
	if flowing == 0 || most.flowingAt != 0 && most.flowingAt < flowing {
		flowing = most.flowingAt
	}
	return most.first, flowing
}

// whole are the connections that carried as much as the payload of any of several flows to
// the listener; none where not all connections were told apart.
func (m *moments) whole() (out []radiocontrol.Connection) {
	if m.flows < 2 || m.untold {
		return nil
	}
	for _, c := range m.connections {
		if c.carriedAt != 0 {
			out = append(out, radiocontrol.Connection{FirstAt: c.first, AnsweredAt: c.answeredAt, FlowingAt: c.flowingAt, CarriedAt: c.carriedAt})
		}
	}
	return out
}
