package haul

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
	"linktrial/protocols/haul/core"
)

// defaultQueue is how many bytes Send takes before it waits.
const defaultQueue = 64 << 10

// Conn is one end of a connection. Its methods may be called from any goroutine.
type Conn struct {
	end     *endpoint
	core    *core.Conn
	signal  edge.Signal
	port    edge.Port // at the other end
	err     error     // why the connection failed, besides what core says
	touched bool
	told    bool          // that it has ended
	over    chan struct{} // closed when it cannot be used any more
	waiters int           // calls of Send that wait for room
	streams map[uint16]*Stream
	events  chan Event
}

func (e *endpoint) conn(k *core.Conn) *Conn {
	c := &Conn{end: e, core: k, streams: map[uint16]*Stream{}, over: make(chan struct{})}
	if e.options.OnEvent != nil {
		c.events = make(chan Event, 64)
		go func() {
			for v := range c.events {
				e.options.OnEvent(v)
			}
		}()
	}
	return c
}

// Dial connects to an address, until ctx ends. local may be the zero value: any
// address and port. An error wraps what the system said (for example
// [syscall.ECONNREFUSED]), or ctx's.
func Dial(ctx context.Context, local, remote netip.AddrPort, o Options) (*Conn, error) {
	return DialEarly(ctx, local, remote, o, nil)
}

// DialEarly is Dial with data in the first packet, for what must not wait for a
// round trip: see [Conn.Early]. It can be replayed, and without a key be read.
func DialEarly(ctx context.Context, local, remote netip.AddrPort, o Options, early []byte) (*Conn, error) {
	s, err := o.open(local, remote)
	if err != nil {
		return nil, fmt.Errorf("dial haul %s: %w", remote, err)
	}
	k, err := core.Dial(o.config(s, remote), remote, early)
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("dial haul %s: %w", remote, err)
	}
	e := newEndpoint(s, o)
	c := e.conn(k)
	e.client = c
	c.touched = true
	e.Start()
	err = c.wait(ctx, time.Time{}, func() (bool, error) {
		return c.core.Open(), c.failure()
	})
	if err != nil {
		c.Abort("not wanted any more")
		return nil, fmt.Errorf("dial haul %s: %w", remote, err)
	}
	return c, nil
}

// tell wakes everyone who waits for a change; the lock is held.
func (c *Conn) tell() {
	c.signal.Tell()
	for _, v := range c.core.Events() {
		if c.events != nil {
			select {
			case c.events <- v:
			default: // nobody takes them
			}
		}
	}
	if c.failure() != nil {
		select {
		case <-c.over:
		default:
			close(c.over)
		}
	}
	if over, _ := c.core.Closed(); over && !c.told {
		c.told = true
		if c.events != nil {
			close(c.events)
			c.events = nil
		}
	}
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
	over, err := c.core.Closed()
	switch {
	case !over:
		return nil
	case errors.Is(err, core.ErrAborted):
		return fmt.Errorf("%w (%w)", err, syscall.ECONNRESET)
	case errors.Is(err, core.ErrClosed):
		return net.ErrClosed
	case err != nil:
		return err
	}
	return io.EOF
}

// wait waits until ready says so, or fails; it calls it with the lock held.
func (c *Conn) wait(ctx context.Context, deadline time.Time, ready func() (bool, error)) error {
	return c.end.Await(ctx, &c.signal, func() time.Time { return deadline }, ready)
}

// Wait waits until the connection has ended, whether or not anybody reads or
// writes, and returns why: nil after an orderly end, or one that this end aborted.
func (c *Conn) Wait() error {
	<-c.over
	c.end.Lock()
	defer c.end.Unlock()
	if err := c.failure(); !errors.Is(err, io.EOF) && !errors.Is(err, core.ErrClosed) {
		return err
	}
	return nil
}

// do touches the connection with the lock held, and sends what follows from it.
func (c *Conn) do(f func(now time.Duration)) {
	c.end.Lock()
	defer c.end.Unlock()
	now := c.end.Now()
	f(now)
	c.touched = true
	c.end.Settle(now)
}

// Send queues a message. It waits while the queue is full, until ctx ends.
func (c *Conn) Send(ctx context.Context, m Message) error {
	return c.queue(ctx, m, false)
}

// Replace gives up what has not been delivered of messages with the same stream
// and tag, and queues this one.
func (c *Conn) Replace(ctx context.Context, m Message) error {
	return c.queue(ctx, m, true)
}

func (c *Conn) queue(ctx context.Context, m Message, replace bool) error {
	if err := c.room(ctx, time.Time{}, func() error { return nil }); err != nil {
		return err
	}
	var err error
	c.do(func(now time.Duration) {
		k := core.Message{Stream: m.Stream, Class: m.Class, Priority: m.Priority, Tag: m.Tag, Data: m.Data}
		if m.SendWithin > 0 {
			k.SendBy = now + m.SendWithin
		}
		if m.DeliverWithin > 0 {
			k.DeliverBy = now + m.DeliverWithin
		}
		if err = c.failure(); err != nil {
			return
		}
		if replace {
			err = c.core.Replace(now, k)
		} else {
			err = c.core.Send(now, k)
		}
	})
	return closedError(err)
}

func closedError(err error) error {
	if errors.Is(err, core.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// room waits until the queue is short enough for more, or stop fails.
func (c *Conn) room(ctx context.Context, deadline time.Time, stop func() error) error {
	limit := c.end.options.Queue
	if limit == 0 {
		limit = defaultQueue
	}
	waits := false
	err := c.wait(ctx, deadline, func() (bool, error) {
		if err := c.failure(); err != nil {
			return false, err
		}
		if c.core.Queued() < limit {
			return true, nil
		}
		if !waits {
			waits = true
			c.waiters++
			c.core.WriterWaits(true)
		}
		return false, stop()
	})
	if waits {
		c.end.Lock()
		c.waiters--
		c.core.WriterWaits(c.waiters > 0)
		c.end.Unlock()
	}
	return err
}

// Receive waits for the next message that is not of a stream that is read as
// bytes. [io.EOF]: the other end has closed the connection.
func (c *Conn) Receive(ctx context.Context) (Message, error) {
	var got core.Received
	err := c.wait(ctx, time.Time{}, func() (bool, error) {
		r, ok := c.core.NextOf(func(r *core.Received) bool {
			return !r.End && (c.streams[r.Stream] == nil || r.Class != ReliableSequenced)
		})
		if ok {
			got = r
			return true, nil
		}
		return false, c.failure()
	})
	if err != nil {
		return Message{}, err
	}
	c.read()
	return Message{Stream: got.Stream, Class: got.Class, Tag: got.Tag, Data: got.Data}, nil
}

// read lets the other end know, where it is time, that something has been read.
func (c *Conn) read() { c.do(func(time.Duration) {}) }

// Cancel gives up every message of the stream with the tag that has not been
// delivered, and reports how many there were.
func (c *Conn) Cancel(stream uint16, tag uint32) (n int) {
	c.do(func(time.Duration) { n = c.core.Cancel(stream, tag) })
	return n
}

// Stats returns the values of now.
func (c *Conn) Stats() Stats {
	c.end.Lock()
	defer c.end.Unlock()
	return c.core.Stats()
}

// Early is what the client sent with its first packet (of a listener's connections).
func (c *Conn) Early() []byte {
	c.end.Lock()
	defer c.end.Unlock()
	return c.core.Early()
}

// RemoteAddr is where the other end is now.
func (c *Conn) RemoteAddr() netip.AddrPort {
	c.end.Lock()
	defer c.end.Unlock()
	return c.core.Remote()
}

// Suspend tells the other end, and then nothing is sent and no time counts until Resume.
func (c *Conn) Suspend() { c.do(func(time.Duration) { c.core.Suspend() }) }

// Resume ends what Suspend began.
func (c *Conn) Resume() { c.do(func(now time.Duration) { c.core.Resume(now) }) }

// Close ends the connection in order: what was sent still arrives. It waits for
// that, at most until ctx ends, and then aborts.
func (c *Conn) Close(ctx context.Context) error {
	c.do(func(time.Duration) { c.core.Close() })
	err := c.wait(ctx, time.Time{}, func() (bool, error) {
		over, err := c.core.Closed()
		return over || c.err != nil, err
	})
	if ctx.Err() != nil {
		c.Abort("not delivered in time")
		return err
	}
	c.release()
	return err
}

// Abort ends the connection at once; what has not arrived is discarded. reason is
// for people: the other end's calls fail with an [AbortError] that has it, cut
// after 200 bytes.
func (c *Conn) Abort(reason string) {
	c.do(func(time.Duration) { c.core.Abort(reason) })
	c.release()
}

// release closes the socket of a client whose connection has ended.
func (c *Conn) release() {
	c.end.Lock()
	defer c.end.Unlock()
	if c.end.client == c {
		c.end.Stop()
	}
}

// Rebind moves a client's connection to another local address, as when its node
// has got a new one; the connection goes on.
func (c *Conn) Rebind(local netip.AddrPort) error {
	e := c.end
	e.Lock()
	defer e.Unlock()
	refused := errors.New("only a client's open connection can be bound anew")
	if e.client != c {
		return refused
	}
	s, err := e.options.open(local, c.core.Remote())
	if err != nil {
		return err
	}
	if !e.Replace(s) {
		return refused
	}
	c.core.Moved()
	c.touched = true
	e.Settle(e.Now())
	return nil
}
