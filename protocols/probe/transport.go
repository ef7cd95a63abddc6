package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"linktrial/internal/arrival"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/pattern"
)

// way is one end of a probe: datagrams to and from the other end alone.
type way interface {
	// Write sends a datagram at once. It reports errHeld where the congestion
	// control does not let it go now: it has not been sent, and never will be.
	Write(b []byte) (int, error)
	// receive returns one datagram and when it arrived, in nanoseconds since 1970;
	// [os.ErrDeadlineExceeded] where none came in time.
	receive(b []byte) (n int, arrived int64, err error)
	SetReadDeadline(t time.Time) error
	Close() error
}

// errHeld: the congestion control's queue is full.
var errHeld = errors.New("the congestion control lets no packet go")

// gate is the server's end: datagrams of any number of clients.
type gate interface {
	// read returns the next datagram and when it arrived, in nanoseconds since 1970.
	// n is 0 where the client with the address from has left.
	read(ctx context.Context, until time.Time, b []byte) (n int, from netip.AddrPort, arrived int64, err error)
	// write sends a datagram to a client, as [way.Write] does. It may be called by
	// several goroutines.
	write(b []byte, to netip.AddrPort) error
	// largest is the most payload that a packet to a client can have now; 0: not known.
	largest(client netip.AddrPort) int
	// forget is called of a client that has nothing more to expect.
	forget(client netip.AddrPort)
	// ownTimes reports whether the times of arrival are those at which this process
	// got the datagrams, and not the kernel's.
	ownTimes() bool
	Close() error
}

// isTimeout reports whether a deadline of a socket has passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// udpWay is the client's socket, which is connected: it hears where nobody listens,
// and gets no packets of others.
type udpWay struct {
	*net.UDPConn
	oob [256]byte
}

func dialUDP(ctx context.Context, p *contract.Parameters, local, remote netip.AddrPort) (way, error) {
	d := net.Dialer{Control: setUp(p)}
	if local.IsValid() {
		d.LocalAddr = net.UDPAddrFromAddrPort(local)
	}
	c, err := d.DialContext(ctx, network(remote.Addr().Is6()), remote.String())
	if err != nil {
		return nil, err
	}
	conn := c.(*net.UDPConn)
	if err := conn.SetReadBuffer(receiveBuffer); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &udpWay{UDPConn: conn}, nil
}

func (w *udpWay) receive(b []byte) (n int, arrived int64, err error) {
	n, oobn, _, _, err := w.ReadMsgUDPAddrPort(b, w.oob[:])
	if err != nil {
		return 0, 0, err
	}
	return n, arrivedAt(w.oob[:oobn]), nil
}

// setUp sets a socket up before it is bound: its code point, that the kernel tells when
// datagrams arrived, and that a search's are not fragmented.
func setUp(p *contract.Parameters) func(network, address string, c syscall.RawConn) error {
	return func(family, _ string, raw syscall.RawConn) (err error) {
		err = errors.Join(raw.Control(func(fd uintptr) {
			err = errors.Join(harness.MarkSocket(int(fd), p.DSCP), arrival.Enable(int(fd)))
		}), err)
		if p.Options["pattern"] == pattern.Capacity {
			err = errors.Join(err, doNotFragment(raw, family == network(true)))
		}
		return err
	}
}

// headerBytes are those of IP and UDP before a datagram to an address (RFC 791, RFC 8200,
// RFC 768).
func headerBytes(to netip.Addr) int {
	if to.Unmap().Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// network is the name of UDP over an address's family.
func network(inet6 bool) string {
	if inet6 {
		return "udp6"
	}
	return "udp4"
}

// receiveBuffer holds what arrives while the driver does not run, in bytes.
const receiveBuffer = 1 << 20

// udpGate is the server's socket, with the kernel's times of arrival.
type udpGate struct {
	conn  *net.UDPConn
	raw   syscall.RawConn
	inet6 bool
	oob   [256]byte

	mu   sync.Mutex
	gone []netip.AddrPort // clients whose nodes refuse packets, not yet reported
}

func listenUDP(ctx context.Context, p *contract.Parameters, local netip.AddrPort) (gate, error) {
	lc := net.ListenConfig{Control: setUp(p)}
	c, err := lc.ListenPacket(ctx, network(local.Addr().Is6()), local.String())
	if err != nil {
		return nil, err
	}
	g := &udpGate{conn: c.(*net.UDPConn), inet6: local.Addr().Is6()}
	err = g.conn.SetReadBuffer(receiveBuffer)
	if err == nil {
		g.raw, err = g.conn.SyscallConn()
	}
	if err == nil {
		err = g.hearRefusals()
	}
	if err != nil {
		return nil, errors.Join(err, g.conn.Close())
	}
	return g, nil
}

func (g *udpGate) read(ctx context.Context, until time.Time, b []byte) (n int, from netip.AddrPort, arrived int64, err error) {
	if err := g.conn.SetReadDeadline(until); err != nil {
		return 0, from, 0, err
	}
	defer context.AfterFunc(ctx, func() { _ = g.conn.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		if client, ok := g.nextGone(); ok {
			return 0, client, 0, nil
		}
		n, oobn, _, from, err := g.conn.ReadMsgUDPAddrPort(b, g.oob[:])
		switch {
		case ctx.Err() != nil:
			return 0, from, 0, ctx.Err()
		case isReport(err):
			g.takeReports()
			continue
		case err != nil:
			return 0, from, 0, err
		case n == 0:
			continue // nobody's packet
		}
		return n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), arrivedAt(g.oob[:oobn]), nil
	}
}

// arrivedAt is the kernel's time of a packet's arrival, in nanoseconds since 1970, and
// the present where the kernel gave none.
func arrivedAt(oob []byte) int64 {
	if at, there, err := arrival.Of(oob); err == nil && there {
		return at.Nanoseconds()
	}
	return arrival.Now().Nanoseconds()
}

// write sends once more where the socket had a report of an earlier packet to tell,
// in place of which it sends nothing.
func (g *udpGate) write(b []byte, to netip.AddrPort) (err error) {
	for range maxReports {
		if _, err = g.conn.WriteToUDPAddrPort(b, to); !isReport(err) {
			return err
		}
		if g.takeReports() == 0 {
			return err // of this very packet, which the node itself cannot send
		}
		_ = g.conn.SetReadDeadline(time.Unix(1, 0)) // read reports who is gone
	}
	return err
}

func (g *udpGate) largest(netip.AddrPort) int { return 0 }
func (g *udpGate) forget(netip.AddrPort)      {}
func (g *udpGate) ownTimes() bool             { return false }
func (g *udpGate) Close() error               { return g.conn.Close() }
