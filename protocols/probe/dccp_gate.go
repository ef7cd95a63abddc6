package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
)

// inFlight is how many datagrams may wait for the goroutine that takes them.
const inFlight = 64

// dccpGate takes connections. One goroutine accepts, one for each connection reads;
// all of them end with Close, which waits for them.
type dccpGate struct {
	file *os.File
	raw  syscall.RawConn
	in   chan dccpPacket
	quit chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	conns map[netip.AddrPort]*dccpConn
}

type dccpPacket struct {
	b       []byte // empty: the client has left
	from    netip.AddrPort
	arrived int64
}

func listenDCCP(p *contract.Parameters, local netip.AddrPort) (gate, error) {
	fd, err := openDCCP(p, local.Addr().Is6())
	if err != nil {
		return nil, err
	}
	// Connections that have ended keep their port for a while (RFC 4340, section
	// 8.3); a second listener is refused all the same.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, sockaddr(local))
	}
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("listen on %s: %w", local, err)
	}
	g := &dccpGate{file: os.NewFile(uintptr(fd), "dccp"), in: make(chan dccpPacket, inFlight), quit: make(chan struct{}), conns: map[netip.AddrPort]*dccpConn{}}
	if g.raw, err = g.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, g.file.Close())
	}
	g.wg.Go(g.accept)
	return g, nil
}

// accept takes connections until Close.
func (g *dccpGate) accept() {
	for {
		var fd int
		var from unix.Sockaddr
		var err error
		if e := g.raw.Read(func(l uintptr) bool {
			fd, from, err = unix.Accept4(int(l), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(err, unix.EAGAIN)
		}); e != nil {
			return
		}
		if err != nil {
			continue // a client that has left already
		}
		g.admit(fd, addrPort(from))
	}
}

// admit begins to read from a connection. More than a server takes are closed.
func (g *dccpGate) admit(fd int, from netip.AddrPort) {
	c, err := newDCCPConn(fd)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.quit: // Close has been through the connections already
		_ = c.Close()
		return
	default:
	}
	if before := g.conns[from]; before != nil {
		_ = before.Close()
	}
	if len(g.conns) >= maxSessions {
		_ = c.Close()
		return
	}
	g.conns[from] = c
	g.wg.Go(func() { g.receive(c, from) })
}

// receive hands a connection's packets on.
func (g *dccpGate) receive(c *dccpConn, from netip.AddrPort) {
	buf := make([]byte, 64<<10)
	for {
		n, at, err := c.receive(buf)
		if err != nil {
			n = 0
			g.leave(c, from)
		}
		select {
		case g.in <- dccpPacket{append([]byte(nil), buf[:n]...), from, at}:
		case <-g.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// leave closes a connection, and forgets it where it is still the client's.
func (g *dccpGate) leave(c *dccpConn, from netip.AddrPort) {
	_ = c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns[from] == c {
		delete(g.conns, from)
	}
}

func (g *dccpGate) read(ctx context.Context, until time.Time, b []byte) (int, netip.AddrPort, int64, error) {
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
		return 0, netip.AddrPort{}, 0, ctx.Err()
	case <-due:
		return 0, netip.AddrPort{}, 0, os.ErrDeadlineExceeded
	case p := <-g.in:
		return copy(b, p.b), p.from, p.arrived, nil
	}
}

func (g *dccpGate) write(b []byte, to netip.AddrPort) error {
	c := g.conn(to)
	if c == nil {
		return unix.ENOTCONN
	}
	_, err := c.Write(b)
	return err
}

func (g *dccpGate) largest(client netip.AddrPort) int {
	if c := g.conn(client); c != nil {
		return c.largest()
	}
	return 0
}

func (g *dccpGate) conn(of netip.AddrPort) *dccpConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conns[of]
}

func (g *dccpGate) forget(client netip.AddrPort) {
	if c := g.conn(client); c != nil {
		g.leave(c, client)
	}
}

func (g *dccpGate) ownTimes() bool { return true }

func (g *dccpGate) Close() error {
	close(g.quit)
	err := g.file.Close()
	g.mu.Lock()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.wg.Wait()
	return err
}
