package session

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialer remembers the connections it made, so that all can be ended at once.
type dialer struct {
	mu    sync.Mutex
	conns map[*conn]struct{}
}

type conn struct {
	net.Conn
	d *dialer
}

func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: 10 * time.Second}
	c, err := nd.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t := &conn{Conn: c, d: d}
	d.mu.Lock()
	d.conns[t] = struct{}{}
	d.mu.Unlock()
	return t, nil
}

func (c *conn) Close() error {
	c.d.mu.Lock()
	delete(c.d.conns, c)
	c.d.mu.Unlock()
	return c.Conn.Close()
}

// reset ends all connections with one RST each. An orderly close would go on
// sending and repeating FINs, and so would data that the other end has not
// acknowledged.
func (d *dialer) reset() {
	d.mu.Lock()
	all := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		all = append(all, c)
	}
	d.mu.Unlock()
	for _, c := range all {
		if t, ok := c.Conn.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // fails on a connection that has ended
		}
		_ = c.Close()
	}
}

// open counts the connections.
func (d *dialer) open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}
