package lttcp

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"linktrial/protocols/lttcp/core"
)

// backlog is how many connections may wait for Accept.
const backlog = 256

// Listener accepts connections.
type Listener struct {
	end  *endpoint
	once sync.Once
}

// Listen opens an address for connections; every one gets the options.
func Listen(local netip.AddrPort, o Options) (*Listener, error) {
	s, err := o.open(local, netip.AddrPort{})
	if err != nil {
		return nil, fmt.Errorf("listen lttcp %s: %w", local, err)
	}
	k, err := core.NewListener(o.config(s, local))
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("listen lttcp %s: %w", local, err)
	}
	e := newEndpoint(s, o)
	e.listener = k
	e.accepted = make(chan *Conn, backlog)
	e.Start()
	return &Listener{end: e}, nil
}

// Addr is the address that the listener has.
func (l *Listener) Addr() netip.AddrPort { return l.end.Local() }

// Accept waits for the next connection. After Close it fails with [net.ErrClosed].
func (l *Listener) Accept() (*Conn, error) {
	select {
	case c := <-l.end.accepted:
		return c, nil
	case <-l.end.Done():
		return nil, net.ErrClosed
	}
}

// Close takes no more connections, and aborts those that are open.
func (l *Listener) Close() error {
	l.once.Do(func() {
		e := l.end
		e.Lock()
		for _, c := range e.conns {
			if over, _ := c.core.Closed(); !over {
				c.core.Abort()
				c.touched = true
			}
		}
		e.Settle(e.Now())
		e.Stop()
		e.Unlock()
		e.Wait()
	})
	return nil
}
