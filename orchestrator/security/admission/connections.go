package admission

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// connections are those that are open. The ones on which nobody is known yet are in
// the order in which they arrived, so that the oldest can be closed.
type connections struct {
	gate *Gate

	mu      sync.Mutex
	n       int
	unknown list.List             // of *conn
	of      map[string]*list.List // unknown, by address
	known   map[string]int        // by address
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	all     *connections
	address string
	inAll   *list.Element // nil: it is known, or closed
	inOwn   *list.Element
	proven  bool
	gone    bool
}

// NetConn returns the connection below, as of [crypto/tls.Conn].
func (c *conn) NetConn() net.Conn { return c.Conn }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.all.remove(c)
	return c.Conn.Close()
}

func (s *connections) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// add counts a connection. It returns the one to close for it: itself, where all
// others are of known callers.
func (s *connections) add(c *conn) (victim *conn) {
	b := s.gate.bounds
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of, s.known = map[string]*list.List{}, map[string]int{}
	}
	own := s.of[c.address]
	switch {
	case own != nil && own.Len() >= b.UnknownConnections:
		victim = own.Front().Value.(*conn)
	case s.n >= b.Connections && s.unknown.Len() == 0:
		c.gone = true
		return c
	case s.n >= b.Connections:
		victim = s.unknown.Front().Value.(*conn)
	}
	if victim != nil {
		s.drop(victim)
	}
	if own = s.of[c.address]; own == nil {
		own = list.New()
		s.of[c.address] = own
	}
	c.inAll, c.inOwn = s.unknown.PushBack(c), own.PushBack(c)
	s.n++
	return victim
}

func (s *connections) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
}

// drop takes a connection from the counts once; s.mu is held.
func (s *connections) drop(c *conn) {
	if c.gone {
		return
	}
	c.gone = true
	s.n--
	s.unlist(c)
	if c.proven {
		if s.known[c.address]--; s.known[c.address] == 0 {
			delete(s.known, c.address)
		}
	}
}

func (s *connections) unlist(c *conn) {
	if c.inAll == nil {
		return
	}
	s.unknown.Remove(c.inAll)
	own := s.of[c.address]
	own.Remove(c.inOwn)
	if own.Len() == 0 {
		delete(s.of, c.address)
	}
	c.inAll, c.inOwn = nil, nil
}

// prove keeps a connection from being closed for others: a call on it was made by
// somebody who is known. Half of all connections may be of one address.
func (c *conn) prove() {
	s := c.all
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.gone || c.proven || s.known[c.address] >= (s.gate.bounds.Connections+1)/2 {
		return
	}
	c.proven = true
	s.known[c.address]++
	s.unlist(c)
}

// isProven reports whether a call on the connection was made by somebody who is known.
func (c *conn) isProven() bool {
	if c == nil {
		return false
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.proven
}

// Listener bounds the connections that a listener accepts.
func (g *Gate) Listener(l net.Listener) net.Listener { return &listener{l, g} }

type listener struct {
	net.Listener
	gate *Gate
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: nc, all: &l.gate.connections, address: networkOf(nc.RemoteAddr().String())}
		victim := l.gate.connections.add(c)
		if victim != nil {
			n := l.gate.closed.Add(1)
			if l.gate.told.due() {
				l.gate.log.Warn("connections are closed: too many are open on which it is not known who calls", "address", victim.address, "open", l.gate.connections.open(), "closed_so_far", n)
			}
			_ = victim.Conn.Close() // its own handler hears of it
		}
		if victim != c {
			return c, nil
		}
	}
}

type connKey struct{}

// WithConn adds a connection to the context of its calls
// (net/http.Server.ConnContext).
func WithConn(ctx context.Context, nc net.Conn) context.Context {
	for {
		if c, ok := nc.(*conn); ok {
			return context.WithValue(ctx, connKey{}, c)
		}
		inner, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		nc = inner.NetConn()
	}
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// sometimes is due once a minute.
type sometimes struct {
	mu   sync.Mutex
	last time.Time
}

func (s *sometimes) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() && now.Sub(s.last) < time.Minute {
		return false
	}
	s.last = now
	return true
}
