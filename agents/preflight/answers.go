package preflight

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// What a peer that answers no ICMP is asked instead. Its kernel accepts or refuses a TCP
// connection to a port that nothing uses (discard, RFC 863) or that most nodes have (SSH);
// a packet filter that drops both tells nothing.
var otherPorts = []uint16{9, 22}

// otherWait is how long the answer to such a connection may take: two SYNs of Linux, which
// repeats it after a second.
const otherWait = 2500 * time.Millisecond

// answersTCP reports whether a peer answers a TCP connection that leaves as packets of a
// run do.
func (w way) answersTCP(ctx context.Context, peer string) bool {
	return slices.ContainsFunc(otherPorts, func(port uint16) bool { return w.answersAt(ctx, peer, port) })
}

func (w way) answersAt(ctx context.Context, peer string, port uint16) bool {
	d := net.Dialer{Control: w.bind, Timeout: otherWait}
	if a, err := netip.ParseAddr(w.from); err == nil {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
	}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(peer, strconv.Itoa(int(port))))
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = c.Close() // that it was accepted is all
	return true
}

// bind makes a socket send through the way's interface.
func (w way) bind(_, _ string, c syscall.RawConn) (err error) {
	cerr := c.Control(func(fd uintptr) { err = bindTo(int(fd), w.device) })
	return errors.Join(cerr, err)
}
