package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"linktrial/internal/arrival"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// way is the client's end: datagrams to and from one server.
type way interface {
	// Write sends a datagram at once. It reports errHeld where the congestion
	// control does not let it go now: it has not been sent, and never will be.
	Write(b []byte) (int, error)
	// Read returns one datagram; [os.ErrDeadlineExceeded] where none came in time.
	Read(b []byte) (int, error)
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
	// write answers; what cannot be sent is lost like any other.
	write(b []byte, to netip.AddrPort)
	// forget is called of a client that has nothing more to expect.
	forget(client netip.AddrPort)
	// ownTimes reports whether the times of arrival are those at which this process
	// got the datagrams, and not the kernel's.
	ownTimes() bool
	Close() error
}

// isTimeout reports whether a deadline of a socket has passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// dialUDP opens the client's socket, which is connected: it hears where nobody
// listens, and gets no packets of others.
func dialUDP(ctx context.Context, p *contract.Parameters, local, remote netip.AddrPort) (way, error) {
	d := net.Dialer{Control: harness.MarkControl(p.DSCP)}
	if local.IsValid() {
		d.LocalAddr = net.UDPAddrFromAddrPort(local)
	}
	return d.DialContext(ctx, network(remote.Addr().Is6()), remote.String())
}

// network is the name of UDP over an address's family.
func network(inet6 bool) string {
	if inet6 {
		return "udp6"
	}
	return "udp4"
}

// receiveBuffer holds what arrives while the server does not run, in bytes.
const receiveBuffer = 1 << 20

// udpGate is the server's socket, with the kernel's times of arrival.
type udpGate struct {
	conn *net.UDPConn
	oob  [256]byte
}

func listenUDP(ctx context.Context, p *contract.Parameters, local netip.AddrPort) (gate, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) {
			err = errors.Join(harness.MarkSocket(int(fd), p.DSCP), arrival.Enable(int(fd)))
		}), err)
	}}
	c, err := lc.ListenPacket(ctx, network(local.Addr().Is6()), local.String())
	if err != nil {
		return nil, err
	}
	conn := c.(*net.UDPConn)
	if err := conn.SetReadBuffer(receiveBuffer); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &udpGate{conn: conn}, nil
}

func (g *udpGate) read(ctx context.Context, until time.Time, b []byte) (n int, from netip.AddrPort, arrived int64, err error) {
	if err := g.conn.SetReadDeadline(until); err != nil {
		return 0, from, 0, err
	}
	defer context.AfterFunc(ctx, func() { _ = g.conn.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		n, oobn, _, from, err := g.conn.ReadMsgUDPAddrPort(b, g.oob[:])
		switch {
		case ctx.Err() != nil:
			return 0, from, 0, ctx.Err()
		case errors.Is(err, syscall.ECONNREFUSED): // of an answer to a client that has ended
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

func (g *udpGate) write(b []byte, to netip.AddrPort) { _, _ = g.conn.WriteToUDPAddrPort(b, to) }
func (g *udpGate) forget(netip.AddrPort)             {}
func (g *udpGate) ownTimes() bool                    { return false }
func (g *udpGate) Close() error                      { return g.conn.Close() }
