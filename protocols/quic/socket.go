package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// buffers is the size of the kernel's buffers of a socket, in bytes: what the
// library wants, which would otherwise complain in its log.
const buffers = 7 << 20

// socket is a UDP socket as the library reads and writes it. What the kernel
// says of a path does not end a connection, as it would otherwise: a packet that
// could not be sent is lost like any other.
type socket struct {
	*net.UDPConn
	batch *ipv4.PacketConn
	// connected: the socket has one remote address, and is told what its node says.
	connected bool
	dscp      uint32
	heard     atomic.Int64 // when packets arrived last: time since begin, in ns
	begin     time.Time

	mu sync.Mutex
	// report gets what the kernel says of the path, where it is wanted.
	report func(error)
}

// openServer opens the server's socket.
func openServer(ctx context.Context, p *contract.Parameters) (*socket, error) {
	local, err := harness.AddrPort(p.Local, "local")
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: control(p.Device, p.DSCP)}
	network, at := "udp", fmt.Sprintf(":%d", p.Local.Port) // any address, of both families
	if local.IsValid() {
		network, at = family(local.Addr()), local.String()
	}
	c, err := lc.ListenPacket(ctx, network, at)
	if err != nil {
		return nil, err
	}
	return newSocket(c.(*net.UDPConn), false, p.DSCP), nil
}

// openClient opens a client's socket, which is connected: it is told at once where
// nobody listens, and takes no packets of others.
func openClient(ctx context.Context, p *contract.Parameters) (*socket, *net.UDPAddr, error) {
	local, remote, err := harness.ClientAddrPorts(p)
	if err != nil {
		return nil, nil, err
	}
	d := net.Dialer{Control: control(p.Device, p.DSCP)}
	if local.IsValid() {
		d.LocalAddr = net.UDPAddrFromAddrPort(local)
	}
	c, err := d.DialContext(ctx, family(remote.Addr()), remote.String())
	if err != nil {
		return nil, nil, err
	}
	return newSocket(c.(*net.UDPConn), true, p.DSCP), net.UDPAddrFromAddrPort(remote), nil
}

func newSocket(c *net.UDPConn, connected bool, dscp int) *socket {
	return &socket{UDPConn: c, batch: ipv4.NewPacketConn(c), connected: connected, dscp: uint32(dscp), begin: time.Now()}
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "udp4"
	}
	return "udp6"
}

// control sets what a socket needs before it has an address.
func control(device string, dscp int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		outer := c.Control(func(fd uintptr) {
			// Without the right to do so the address alone has to lead to the radio.
			if err = bindDevice(int(fd), device); err != nil {
				return
			}
			if err = harness.MarkSocket(int(fd), dscp); err != nil {
				return
			}
			// Beyond the system's limit where that is allowed, else as far as it is.
			for _, o := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
				if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o[0], buffers) != nil {
					_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o[1], buffers)
				}
			}
		})
		return errors.Join(outer, err)
	}
}

func bindDevice(fd int, device string) error {
	if device == "" {
		return nil
	}
	err := unix.BindToDevice(fd, device)
	if err == nil || errors.Is(err, unix.EPERM) {
		return nil
	}
	return harness.Unsupported("bind to device %s: %w", device, err)
}

// listenFor has what the kernel says of the path reported; nil: not any more.
func (s *socket) listenFor(report func(error)) {
	s.mu.Lock()
	s.report = report
	s.mu.Unlock()
}

// told takes what the kernel says of the path, and reports whether that is what
// the error is: the socket can still be used.
func (s *socket) told(err error) bool {
	if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	for _, e := range []error{unix.ECONNREFUSED, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EHOSTDOWN, unix.ENOPROTOOPT,
		unix.EACCES, unix.EPERM, unix.ENOBUFS, unix.ENOMEM, unix.ENODEV, unix.EADDRNOTAVAIL, unix.EPROTO} {
		if errors.Is(err, e) {
			s.mu.Lock()
			report := s.report
			s.mu.Unlock()
			if report != nil {
				report(err)
			}
			return true
		}
	}
	return false
}

// ReadBatch is what the library reads with.
func (s *socket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for {
		n, err := s.batch.ReadBatch(ms, flags)
		if !s.told(err) {
			if n > 0 {
				s.heard.Store(int64(time.Since(s.begin)))
			}
			return n, err
		}
	}
}

// WriteMsgUDP is what the library writes with.
func (s *socket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	if s.connected {
		to = nil
	}
	s.mark(oob)
	// A packet too large, and one that the interface cannot segment, are the library's to know.
	n, oobn, err = s.UDPConn.WriteMsgUDP(b, oob, to)
	if s.told(err) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// mark adds the DSCP to the ECN mark of one packet, which takes the place of the
// socket's whole octet.
func (s *socket) mark(oob []byte) {
	if s.dscp == 0 || len(oob) == 0 {
		return
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return // the library's, which the kernel will refuse
	}
	for _, m := range messages {
		octet := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_TOS || m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_TCLASS
		switch {
		case !octet:
		case len(m.Data) >= 4:
			binary.NativeEndian.PutUint32(m.Data, binary.NativeEndian.Uint32(m.Data)|s.dscp<<2)
		case len(m.Data) == 1: // as the library has it of IPv4
			m.Data[0] |= byte(s.dscp << 2)
		}
	}
}

// quiet is how long nothing has arrived.
func (s *socket) quiet() time.Duration { return time.Since(s.begin) - time.Duration(s.heard.Load()) }
