package datagram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Packet is one UDP datagram.
type Packet struct {
	Data []byte
	// Addr is where it came from or goes to. Empty to send on a connected socket.
	Addr netip.AddrPort
	// ECN is the mark in the IP header (RFC 3168): 0 none, 1 ECT(1), 2 ECT(0),
	// 3 congestion experienced.
	ECN uint8
}

// Config says what socket to open.
type Config struct {
	// Local is the own address. Without an address, it is any; of IPv6 and IPv4
	// if Remote is empty, too. Port 0: the kernel chooses one.
	Local netip.AddrPort
	// Remote is the only address that packets go to and come from: the socket is
	// connected. Empty: it is not.
	Remote netip.AddrPort
	// Device is the only network device that packets pass; empty: any.
	Device string
	// ReadBuffer and WriteBuffer are the sizes of the kernel's buffers in bytes;
	// 0: as the system has them. The kernel may grant less (socket(7)).
	ReadBuffer, WriteBuffer int
	// DSCP is the code point of all packets (RFC 2474); 0: the default.
	DSCP int
}

// Socket is a UDP socket. One goroutine may read while another writes and others
// call the remaining methods.
type Socket struct {
	conn   *net.UDPConn
	raw    syscall.RawConn
	local  netip.AddrPort
	config Config
	inet6  bool // the socket is one of IPv6, which may carry IPv4, too
	reader reader
	writer writer
}

// Open opens a socket. Packets are never fragmented, here or on the way (the DF
// bit is set): whoever uses the socket finds out what size the path takes.
// Errors wrap the kernel's: EADDRINUSE, EADDRNOTAVAIL, ENETUNREACH, ENODEV, …
func Open(c Config) (*Socket, error) {
	c.Local, c.Remote = unmap(c.Local), unmap(c.Remote)
	conn, err := c.open()
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket%s: %w", c.describe(), err)
	}
	s := &Socket{conn: conn, config: c, local: unmap(conn.LocalAddr().(*net.UDPAddr).AddrPort())}
	if s.raw, err = conn.SyscallConn(); err == nil {
		err = s.prepare()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("open a UDP socket%s: %w", c.describe(), err)
	}
	return s, nil
}

func (c Config) open() (*net.UDPConn, error) {
	if c.Remote.IsValid() {
		local := c.Local
		if local.Addr().IsValid() && local.Addr().Is4() != c.Remote.Addr().Is4() {
			if !local.Addr().IsUnspecified() {
				return nil, fmt.Errorf("%v and %v are addresses of different families: %w", local.Addr(), c.Remote.Addr(), unix.EAFNOSUPPORT)
			}
			local = netip.AddrPortFrom(netip.Addr{}, local.Port())
		}
		d := net.Dialer{Control: c.control}
		if local.Addr().IsValid() || local.Port() != 0 {
			d.LocalAddr = address(local)
		}
		conn, err := d.DialContext(context.Background(), network(c.Remote.Addr()), c.Remote.String())
		if err != nil {
			return nil, err
		}
		return conn.(*net.UDPConn), nil
	}
	l := net.ListenConfig{Control: c.control}
	name := "udp" // both families, where there is IPv6
	if a := c.Local.Addr(); a.IsValid() && a != netip.IPv6Unspecified() {
		name = network(a)
	}
	conn, err := l.ListenPacket(context.Background(), name, address(c.Local).String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// address is one without an IP address if a has none.
func address(a netip.AddrPort) *net.UDPAddr {
	if !a.Addr().IsValid() {
		return &net.UDPAddr{Port: int(a.Port())}
	}
	return net.UDPAddrFromAddrPort(a)
}

func network(a netip.Addr) string {
	if a.Is4() {
		return "udp4"
	}
	return "udp6"
}

func (c Config) describe() string {
	text := ""
	if c.Local.Addr().IsValid() {
		text += " at " + c.Local.String()
	} else if c.Local.Port() != 0 {
		text += fmt.Sprintf(" at port %d", c.Local.Port())
	}
	if c.Remote.IsValid() {
		text += " to " + c.Remote.String()
	}
	if c.Device != "" {
		text += " on device " + c.Device
	}
	return text
}

// control sets what must be set before the socket has an address.
func (c Config) control(network, _ string, raw syscall.RawConn) error {
	return control(raw, func(fd int) error {
		if c.Device != "" {
			if err := unix.BindToDevice(fd, c.Device); err != nil {
				return fmt.Errorf("bind to device %s: %w", c.Device, err)
			}
		}
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			return fmt.Errorf("family of the socket: %w", err)
		}
		// A socket of IPv6 carries IPv4, too: it gets the options of both.
		options := []option{
			{"IP_MTU_DISCOVER", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE},
			{"IP_RECVTOS", unix.IPPROTO_IP, unix.IP_RECVTOS, 1},
		}
		if domain == unix.AF_INET6 {
			options = append(options,
				option{"IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE},
				option{"IPV6_RECVTCLASS", unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1})
		}
		if !c.Remote.IsValid() { // a connected socket has such errors without
			options = append(options, option{"IP_RECVERR", unix.IPPROTO_IP, unix.IP_RECVERR, 1})
			if domain == unix.AF_INET6 {
				options = append(options, option{"IPV6_RECVERR", unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1})
			}
		}
		if c.DSCP != 0 {
			options = append(options, option{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, c.DSCP << 2})
			if domain == unix.AF_INET6 {
				options = append(options, option{"IPV6_TCLASS", unix.IPPROTO_IPV6, unix.IPV6_TCLASS, c.DSCP << 2})
			}
		}
		for _, o := range options {
			if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
				return fmt.Errorf("set %s: %w", o.text, err)
			}
		}
		// With the right to, beyond the system's limit.
		if err := buffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, c.ReadBuffer); err != nil {
			return fmt.Errorf("set the read buffer to %d bytes: %w", c.ReadBuffer, err)
		}
		if err := buffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, c.WriteBuffer); err != nil {
			return fmt.Errorf("set the write buffer to %d bytes: %w", c.WriteBuffer, err)
		}
		return nil
	})
}

type option struct {
	text               string
	level, name, value int
}

func buffer(fd, force, plain, size int) error {
	if size == 0 || unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size)
}

func control(raw syscall.RawConn, f func(fd int) error) error {
	var err error
	if outer := raw.Control(func(fd uintptr) { err = f(int(fd)) }); outer != nil {
		return outer
	}
	return err
}

// prepare finds out what the kernel can, and makes the buffers.
func (s *Socket) prepare() error {
	return control(s.raw, func(fd int) error {
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			return fmt.Errorf("family of the socket: %w", err)
		}
		s.inet6 = domain == unix.AF_INET6
		// Linux 5.0 and 4.18; a kernel may be built without.
		gro := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		_, err = unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		s.reader.prepare(gro)
		s.writer.prepare(s, err == nil)
		return nil
	})
}

// Local is the socket's own address.
func (s *Socket) Local() netip.AddrPort { return s.local }

// defaultMTU is Ethernet's, in bytes of IP packet.
const defaultMTU = 1500

// MTU is the size in bytes of the largest IP packet that, as the kernel knows
// now, fits through: of a connected socket the path's; of another one that of
// the device that the socket is bound to or that has its address, else 1500.
func (s *Socket) MTU() int {
	mtu := 0
	if s.config.Remote.IsValid() {
		err := control(s.raw, func(fd int) (err error) {
			if s.config.Remote.Addr().Is4() {
				mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
			} else {
				mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
			}
			return err
		})
		if err == nil && mtu > 0 {
			return mtu
		}
	}
	if i := s.device(); i != nil && i.MTU > 0 {
		return i.MTU
	}
	return defaultMTU
}

// device is the one that the socket is bound to by name or by address.
func (s *Socket) device() *net.Interface {
	if s.config.Device != "" {
		i, _ := net.InterfaceByName(s.config.Device)
		return i
	}
	if a := s.local.Addr(); !a.IsUnspecified() {
		all, _ := net.Interfaces()
		for _, i := range all {
			addresses, _ := i.Addrs()
			for _, p := range addresses {
				if n, ok := p.(*net.IPNet); ok && n.IP.Equal(a.AsSlice()) {
					return &i
				}
			}
		}
	}
	return nil
}

// SetReadDeadline ends a Read that waits, now or later, at a time, with an error
// that is os.ErrDeadlineExceeded. The zero time: never.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }

// Close closes the socket; a Read or Write that waits returns net.ErrClosed.
func (s *Socket) Close() error { return s.conn.Close() }

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// errno is the kernel's error, nil for 0.
func errno(call string, e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return &callError{call, e}
}

// callError names the system call that failed.
type callError struct {
	call string
	err  syscall.Errno
}

func (e *callError) Error() string { return e.call + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

var errNoAddress = errors.New("packet without an address on a socket that is not connected")
