package lttcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"linktrial/protocols/datagram/edge"
	"linktrial/protocols/lttcp/core"
)

// Conn is one end of a connection. Its methods may be called from any goroutine.
type Conn struct {
	end      *endpoint
	core     *core.Conn
	remote   netip.AddrPort
	signal   edge.Signal
	port     edge.Port // at the other end
	err      error     // why the connection failed, besides what core says
	touched  bool
	deadline time.Time
}

// Dial connects to an address, until ctx ends. local may be the zero value: any
// address and port. An error wraps what the system said (for example
// [syscall.ECONNREFUSED]), or ctx's.
func Dial(ctx context.Context, local, remote netip.AddrPort, o Options) (*Conn, error) {
	s, err := o.open(local, remote)
	if err != nil {
		return nil, fmt.Errorf("dial lttcp %s: %w", remote, err)
	}
	k, err := core.Dial(o.config(s, remote))
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("dial lttcp %s: %w", remote, err)
	}
	e := newEndpoint(s, o)
	c := &Conn{end: e, core: k, remote: remote, touched: true}
	e.client = c
	e.Start()
	err = c.wait(ctx, func() (bool, error) { return c.core.Open(), c.failure() })
	if err != nil {
		c.Abort()
		return nil, fmt.Errorf("dial lttcp %s: %w", remote, err)
	}
	return c, nil
}

// fail ends the connection with an error of the system; the lock is held.
func (c *Conn) fail(err error) {
	if c.err == nil {
		c.err = err
		c.touched = true
	}
}

// failure is why the connection cannot be used any more; the lock is held.
func (c *Conn) failure() error {
	if c.err != nil {
		return c.err
	}
	switch over, err := c.core.Closed(); {
	case over && errors.Is(err, core.ErrReset):
		return fmt.Errorf("%w: %w", err, syscall.ECONNRESET)
	case over && err != nil:
		return fmt.Errorf("%w: %w", err, net.ErrClosed)
	}
	return nil
}

// wait waits until ready says so, or fails, at most to the connection's
// deadline; ready is called with the lock held.
func (c *Conn) wait(ctx context.Context, ready func() (bool, error)) error {
	return c.end.Await(ctx, &c.signal, func() time.Time { return c.deadline }, ready)
}

// do touches the connection with the lock held, and sends what follows from it.
func (c *Conn) do(f func()) {
	c.end.Lock()
	defer c.end.Unlock()
	f()
	c.touched = true
	c.end.Settle(c.end.Now())
}

// SetDeadline bounds all waiting and later reads and writes, which then fail
// with [os.ErrDeadlineExceeded]; the zero value is no bound.
func (c *Conn) SetDeadline(t time.Time) error {
	c.end.Lock()
	defer c.end.Unlock()
	c.deadline = t
	c.signal.Tell()
	return nil
}

// Read reads what has arrived; it waits until there is something. [io.EOF]: the
// other end has finished the stream.
func (c *Conn) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	eof := false
	err = c.wait(context.Background(), func() (bool, error) {
		if n, eof = c.core.Read(b); n > 0 || eof {
			return true, nil
		}
		return false, c.failure()
	})
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	c.do(func() {}) // the other end may have to learn of the room
	return n, nil
}

// Write queues bytes; it waits while the queue is full.
func (c *Conn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		part := 0
		err := c.wait(context.Background(), func() (bool, error) {
			if err := c.failure(); err != nil {
				return false, err
			}
			var err error
			part, err = c.core.Write(b[n:], c.end.options.queue(), false)
			if errors.Is(err, core.ErrFinished) {
				err = net.ErrClosed
			}
			return part > 0, err
		})
		if err != nil {
			c.do(c.core.NoMore)
			return n, err
		}
		n += part
		c.do(func() {})
	}
	return n, nil
}

// CloseWrite finishes the stream: the other end reads [io.EOF] after what was written.
func (c *Conn) CloseWrite() error {
	c.do(c.core.Finish)
	return nil
}

// Close finishes the stream and waits until both ends have, at most until ctx ends.
func (c *Conn) Close(ctx context.Context) error {
	c.do(func() {
		c.core.Finish()
		c.deadline = time.Time{}
	})
	err := c.wait(ctx, func() (bool, error) {
		over, err := c.core.Closed()
		return over || c.err != nil, err
	})
	if ctx.Err() != nil {
		c.do(c.core.Abort)
	}
	c.release()
	return err
}

// Abort ends the connection at once; what has not arrived is discarded.
func (c *Conn) Abort() {
	c.do(c.core.Abort)
	c.release()
}

// release closes the socket of a client, whose connection has ended.
func (c *Conn) release() {
	c.end.Lock()
	mine := c.end.client == c
	if mine {
		c.end.Stop()
	}
	c.end.Unlock()
	if mine {
		c.end.Wait()
	}
}

// Stats returns the values of now.
func (c *Conn) Stats() Stats {
	c.end.Lock()
	defer c.end.Unlock()
	return c.core.Stats()
}

// RemoteAddr is the other end's address.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }
