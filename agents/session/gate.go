package session

import (
	"context"
	"net"
	"sync"
	"time"

	"linktrial/internal/notify"
)

// gate lets calls through or holds them back. Silence is counted: everyone
// who asked for it must have let go.
type gate struct {
	mu      sync.Mutex
	holds   int
	calls   map[*call]struct{}
	changed notify.Notifier
}

type call struct{ cancel context.CancelFunc }

func newGate() *gate { return &gate{calls: map[*call]struct{}{}} }

// enter waits until calls may be made. The returned context ends when silence
// falls; leave must be called after the call.
func (g *gate) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	for {
		g.mu.Lock()
		if g.holds == 0 {
			c := &call{}
			ctx, c.cancel = context.WithCancel(ctx)
			g.calls[c] = struct{}{}
			g.mu.Unlock()
			return ctx, func() {
				c.cancel()
				g.mu.Lock()
				delete(g.calls, c)
				g.changed.Notify()
				g.mu.Unlock()
			}, nil
		}
		changed := g.changed.Changed()
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// hold cancels all calls and waits until they have returned.
func (g *gate) hold() {
	g.mu.Lock()
	g.holds++
	g.changed.Notify()
	for len(g.calls) > 0 {
		for c := range g.calls {
			c.cancel()
		}
		changed := g.changed.Changed()
		g.mu.Unlock()
		<-changed
		g.mu.Lock()
	}
	g.mu.Unlock()
}

func (g *gate) release() {
	g.mu.Lock()
	g.holds--
	g.changed.Notify()
	g.mu.Unlock()
}

func (g *gate) silent() (bool, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holds > 0, g.changed.Changed()
}

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
// sending and repeating FINs on the air, and so would data that the other end
// has not acknowledged.
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
