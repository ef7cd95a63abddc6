package session

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// dialer remembers the connections it made and those that it is making, so that all can
// be ended at once.
type dialer struct {
	connect func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	conns map[*conn]struct{}
	dials map[*dial]struct{}
}

func newDialer() *dialer {
	nd := net.Dialer{Timeout: 10 * time.Second}
	return &dialer{connect: nd.DialContext, conns: map[*conn]struct{}{}, dials: map[*dial]struct{}{}}
}

// dial is a connection that is being made.
type dial struct{ cancel context.CancelFunc }

type conn struct {
	net.Conn
	d *dialer
}

// unknownLate is how late the answer to a connection attempt that was given up may come:
// nothing is known of its way. It is the longest that RFC 6298, section 2, has a sender
// wait that knows no round-trip time.
const unknownLate = 3 * time.Second

var errReset = errors.New("all connections were ended while this one was being made")

func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x := &dial{cancel}
	d.mu.Lock()
	d.dials[x] = struct{}{}
	d.mu.Unlock()
	c, err := d.connect(ctx, network, address)
	d.mu.Lock()
	_, wanted := d.dials[x]
	delete(d.dials, x)
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	t := &conn{Conn: c, d: d}
	d.conns[t] = struct{}{}
	d.mu.Unlock()
	if !wanted { // it was made before it heard of the reset
		t.reset()
		return nil, errReset
	}
	return t, nil
}

func (c *conn) Close() error {
	c.d.mu.Lock()
	delete(c.d.conns, c)
	c.d.mu.Unlock()
	return c.Conn.Close()
}

// reset ends all connections with one RST each, and those that are being made. An orderly
// close would go on sending and repeating FINs, and so would data that the other end has
// not acknowledged. late is how long what the other end sent until it hears of that may
// take to arrive: the longest of the connections' round-trip times.
func (d *dialer) reset() (late time.Duration) {
	d.mu.Lock()
	for x := range d.dials {
		x.cancel()
		delete(d.dials, x)
		late = unknownLate
	}
	all := slices.Collect(maps.Keys(d.conns))
	d.mu.Unlock()
	for _, c := range all {
		late = max(late, c.reset())
	}
	return late
}

// reset ends a connection with one RST, and returns its round-trip time as the kernel
// estimates it, with four times its variation as in RFC 6298, section 2.
func (c *conn) reset() (roundTrip time.Duration) {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		if raw, err := t.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { // fails on a connection that has ended
				if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
					roundTrip = time.Duration(info.Rtt+4*info.Rttvar) * time.Microsecond
				}
			})
		}
		_ = t.SetLinger(0) // fails on a connection that has ended
	}
	_ = c.Close()
	return roundTrip
}

// open counts the connections.
func (d *dialer) open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}
