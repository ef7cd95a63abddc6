package haul

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"linktrial/protocols/haul/core"
)

// backlog is how many connections may wait for Accept.
const backlog = 256

// Listener accepts connections.
type Listener struct {
	end  *endpoint
	new  chan *Conn
	once sync.Once
	done chan struct{}
}

// Listen opens an address for connections; every one gets the options.
func Listen(local netip.AddrPort, o Options) (*Listener, error) {
	s, err := o.open(local, netip.AddrPort{})
	if err != nil {
		return nil, fmt.Errorf("listen haul %s: %w", local, err)
	}
	k, err := core.NewListener(o.config(s, local))
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("listen haul %s: %w", local, err)
	}
	e := newEndpoint(s, o)
	e.listener = k
	l := &Listener{end: e, new: make(chan *Conn, backlog), done: make(chan struct{})}
	e.accepted = l.new
	e.Start()
	return l, nil
}

// admit makes a connection of the listener; false where too many wait already.
func (e *endpoint) admit(k *core.Conn) bool {
	c := e.conn(k)
	select {
	case e.accepted <- c:
		e.conns[k] = c
		return true
	default:
		return false
	}
}

// Addr is the address that the listener has.
func (l *Listener) Addr() netip.AddrPort { return l.end.Local() }

// Dropped counts packets of no connection.
func (l *Listener) Dropped() core.Dropped {
	l.end.Lock()
	defer l.end.Unlock()
	return l.end.listener.Dropped
}

// Accept waits for the next connection. After Close it fails with [net.ErrClosed].
func (l *Listener) Accept() (*Conn, error) {
	select {
	case c := <-l.new:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close takes no more connections, and aborts those that are open.
func (l *Listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		e := l.end
		e.Lock()
		defer e.Unlock()
		e.closing = true
		for _, c := range e.conns {
			c.core.Abort("the listener is closed")
			c.touched = true
		}
		e.Settle(e.Now())
		e.Stop()
	})
	return nil
}
