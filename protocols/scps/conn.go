package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/socket"
)

// innerServer is the server's address in its lan namespace, and the port that it
// listens on there; clients draw theirs from the rest of this network.
var innerServer = netip.MustParseAddrPort("10.98.0.1:7000")

// end is one end: a site, its carrier once there is a way to the other node, and
// what the gateway is.
type end struct {
	site    *site
	carrier *carrier
	info    *contract.Info
	once    sync.Once
	closing chan struct{} // closed when close begins
}

// open are all ends of this process, for the end of it.
var open struct {
	sync.Mutex
	ends []*end
}

// newEnd makes an end that has no way to the other node yet.
func newEnd(ctx context.Context, p *contract.Parameters, b *build, inner netip.Addr) (*end, error) {
	s, err := newSite(ctx, p, b, inner)
	if err != nil {
		return nil, err
	}
	e := &end{site: s, info: b.info(), closing: make(chan struct{})}
	open.Lock()
	open.ends = append(open.ends, e)
	open.Unlock()
	return e, nil
}

// prepared is a client's end, which is there before the client connects: the start
// of a gateway is no part of the time to connect.
var prepared *end

// prepare makes a client's end.
func prepare(ctx context.Context, p *contract.Parameters, b *build) (err error) {
	inner, err := drawInner()
	if err == nil {
		prepared, err = newEnd(ctx, p, b, inner)
	}
	return err
}

// carry begins to carry packets over a UDP socket.
func (e *end) carry(udp *net.UDPConn, to netip.AddrPort) { e.carrier = carry(e.site.wan, udp, to) }

// close lets the last packets out and removes everything.
func (e *end) close() {
	e.once.Do(func() {
		close(e.closing)
		if e.carrier != nil {
			e.carrier.drain()
			e.carrier.close()
		}
		e.site.close()
	})
}

// closeAll is the last that the driver does.
func closeAll() {
	open.Lock()
	defer open.Unlock()
	for _, e := range open.ends {
		e.close()
	}
}

func listen(ctx context.Context, p *contract.Parameters) (harness.Listener, error) {
	addr, err := harness.AddrPort(p.Local, "local")
	if err != nil {
		return nil, err
	}
	// The packets on the radio have the code point; those within them are not seen there.
	lc := net.ListenConfig{Control: harness.MarkControl(p.DSCP)}
	pc, err := lc.ListenPacket(ctx, "udp", addr.String())
	if err != nil {
		return nil, err
	}
	udp := pc.(*net.UDPConn)
	b, err := findBuild(ctx)
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	e, err := newEnd(ctx, p, b, innerServer.Addr())
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	e.carry(udp, netip.AddrPort{})
	var l net.Listener
	err = process.InNamespace(path(e.site.lan), func() (err error) {
		l, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(innerServer))
		return err
	})
	if err != nil {
		e.close()
		return nil, fmt.Errorf("listen behind the gateway: %w", err)
	}
	k := &listener{l.(*net.TCPListener), e}
	go k.watch()
	return k, nil
}

type listener struct {
	*net.TCPListener
	end *end
}

// watch ends the server when its gateway has ended: nothing reaches it any more.
func (l *listener) watch() {
	select {
	case <-l.end.site.ended:
	case <-l.end.closing:
		return
	}
	slog.Error("the gateway has ended", "said", l.end.site.said.String())
	_ = l.Close()
}

func (l *listener) Accept() (harness.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return newConn(c, l.end, false)
}

func dial(ctx context.Context, p *contract.Parameters) (harness.Conn, error) {
	local, remote, err := harness.ClientAddrPorts(p)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Control: harness.MarkControl(p.DSCP)}
	if local.IsValid() {
		d.LocalAddr = net.UDPAddrFromAddrPort(local)
	}
	outer, err := d.DialContext(ctx, "udp", remote.String())
	if err != nil {
		return nil, err
	}
	udp := outer.(*net.UDPConn)
	e := prepared
	e.carry(udp, remote)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-e.carrier.refused:
			cancel(syscall.ECONNREFUSED)
		case <-e.site.ended:
			cancel(harness.Failf(contract.CodeInternal, "the gateway has ended; it said: %s", e.site.said.String()))
		case <-ctx.Done():
		}
	}()
	c, err := socket.Redial(ctx, func() (*net.TCPConn, error) { return e.connect(ctx) })
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("connect over the gateway: %w", cause)
		}
		e.close()
		return nil, err
	}
	return newConn(c, e, true)
}

// drawInner draws a client's address, so that no two clients of a server have the same.
func drawInner() (netip.Addr, error) {
	for {
		b := [4]byte{10, 98}
		if _, err := rand.Read(b[2:]); err != nil {
			return netip.Addr{}, err
		}
		if a := netip.AddrFrom4(b); b[2] != 0 && a != innerServer.Addr() {
			return a, nil
		}
	}
}

// connect asks for a connection once, from the lan namespace. The socket is made
// there; what waits for it is this process's ordinary poller.
func (e *end) connect(ctx context.Context) (*net.TCPConn, error) {
	var f *os.File
	err := process.InNamespace(path(e.site.lan), func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), "connection")
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(innerServer.Port()), Addr: innerServer.Addr().As4()})
		if errors.Is(err, unix.EINPROGRESS) {
			return nil
		}
		return err
	})
	if f != nil {
		defer f.Close() // the connection has a descriptor of its own
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(p, 0); n == 0 || errors.Is(err, unix.EINTR) {
			return false
		}
		if code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil {
			failed = err
		} else if code != 0 {
			failed = syscall.Errno(code)
		}
		return true
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("connect over the gateway: %w", err)
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// conn is a TCP connection to the gateway of this node. As long as its transfer has
// not ended it is reset where this process ends. Samples have no metrics of the
// protocol: those of this connection are not of the radio.
type conn struct {
	*net.TCPConn
	end *end
	own bool // the end is this connection's alone
}

func newConn(c *net.TCPConn, e *end, own bool) (harness.Conn, error) {
	k := &conn{c, e, own}
	if err := errors.Join(c.SetLinger(0), c.SetNoDelay(true)); err != nil {
		k.Abort()
		return nil, err
	}
	return k, nil
}

func (c *conn) Sample(*contract.Sample, bool) {}

func (c *conn) Info() *contract.Info { return c.end.info }

// closePatience bounds how long the end of a connection takes to arrive.
const closePatience = 3 * time.Second

// Close ends the stream and waits until the other end has ended it too: the site,
// which repeats what is lost, vanishes with a client.
func (c *conn) Close() error {
	err := errors.Join(c.SetLinger(-1), c.CloseWrite())
	if c.own && err == nil {
		_ = c.SetReadDeadline(time.Now().Add(closePatience))
		_, _ = c.Read(make([]byte, 1)) // its end, or the deadline
	}
	if cerr := c.TCPConn.Close(); err == nil {
		err = cerr
	}
	if c.own {
		c.end.close()
	}
	return err
}

func (c *conn) Abort() {
	_ = c.TCPConn.Close()
	if c.own {
		c.end.close()
	}
}
