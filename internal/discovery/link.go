package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// The groups in which it is asked (RFC 6762, 3).
var (
	group4 = netip.MustParseAddr("224.0.0.251")
	group6 = netip.MustParseAddr("ff02::fb")
)

// hops is the number of hops with which packets leave (RFC 6762, 11).
const hops = 255

// maxPacket is the longest packet that is read, in bytes (RFC 6762, 17).
const maxPacket = 9000

// pause is how long reading rests after an error.
const pause = 10 * time.Millisecond

// packet is one that came by a link.
type packet struct {
	bytes []byte
	link  int // index of the interface
	from  netip.AddrPort
	via   family
	group bool // it was sent to the group, so by somebody on the link
}

// family is a socket of IPv4 or IPv6.
type family interface {
	join(i *net.Interface) error
	leave(i *net.Interface) error
	read(b []byte) (n, link int, from netip.AddrPort, group bool, err error)
	write(b []byte, link int, to netip.AddrPort) error
	toGroup() netip.AddrPort
	Close() error
}

type families []family

// open opens the sockets of the families that the machine has, at a port.
func open(at int) (families, error) {
	var all families
	var errs []error
	for _, make := range []func(int) (family, error){open4, open6} {
		f, err := make(at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("multicast DNS: %w", errors.Join(errs...))
	}
	return all, nil
}

func (l families) close() {
	for _, f := range l {
		_ = f.Close() // nothing is lost
	}
}

// leave leaves the group on the interfaces that are used no more.
func (l families) leave(before, used map[int][]netip.Addr) {
	for index := range before {
		if _, still := used[index]; still {
			continue
		}
		for _, f := range l {
			_ = f.leave(&net.Interface{Index: index}) // it has gone, or the family had no address there
		}
	}
}

// read sends what comes to a channel, until ctx ends or the sockets are closed.
func (l families) read(ctx context.Context, to chan<- packet) {
	for _, f := range l {
		go func() {
			b := make([]byte, maxPacket)
			for {
				n, link, from, group, err := f.read(b)
				if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
					return
				}
				if err != nil || link == 0 {
					select {
					case <-time.After(pause):
					case <-ctx.Done():
					}
					continue
				}
				select {
				case to <- packet{bytes: append([]byte(nil), b[:n]...), link: link, from: from, via: f, group: group}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

// ask asks on interfaces; an error where that works on none.
func (l families) ask(on []net.Interface) error {
	b, err := question()
	if err != nil {
		return err
	}
	errs := []error{ErrNoInterface}
	sent := false
	for _, i := range on {
		for _, f := range l {
			if err := f.write(b, i.Index, f.toGroup()); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", i.Name, err))
				continue
			}
			sent = true
		}
	}
	if sent {
		return nil
	}
	if len(on) > 0 {
		errs = errs[1:]
	}
	return errors.Join(errs...)
}

// listen opens a socket beside those that other programs of the machine have at the port.
func listen(network string, at int) (net.PacketConn, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		return errors.Join(err, set)
	}}
	return c.ListenPacket(context.Background(), network, fmt.Sprintf(":%d", at))
}

type v4 struct{ *ipv4.PacketConn }

func open4(at int) (family, error) {
	c, err := listen("udp4", at)
	if err != nil {
		return nil, err
	}
	p := ipv4.NewPacketConn(c)
	if err := errors.Join(p.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true), p.SetMulticastTTL(hops), p.SetMulticastLoopback(true)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return v4{p}, nil
}

func (v4) toGroup() netip.AddrPort { return netip.AddrPortFrom(group4, port) }

func (c v4) join(i *net.Interface) error {
	return c.JoinGroup(i, net.UDPAddrFromAddrPort(c.toGroup()))
}

func (c v4) leave(i *net.Interface) error {
	return c.LeaveGroup(i, net.UDPAddrFromAddrPort(c.toGroup()))
}

func (c v4) read(b []byte) (n, link int, from netip.AddrPort, group bool, err error) {
	n, m, a, err := c.ReadFrom(b)
	if err != nil || m == nil {
		return 0, 0, netip.AddrPort{}, false, err
	}
	return n, m.IfIndex, addressOf(a), m.Dst.IsMulticast(), nil
}

func (c v4) write(b []byte, link int, to netip.AddrPort) error {
	_, err := c.WriteTo(b, &ipv4.ControlMessage{IfIndex: link}, net.UDPAddrFromAddrPort(to))
	return err
}

type v6 struct{ *ipv6.PacketConn }

func open6(at int) (family, error) {
	c, err := listen("udp6", at)
	if err != nil {
		return nil, err
	}
	p := ipv6.NewPacketConn(c)
	if err := errors.Join(p.SetControlMessage(ipv6.FlagInterface|ipv6.FlagDst, true), p.SetMulticastHopLimit(hops), p.SetMulticastLoopback(true)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return v6{p}, nil
}

func (v6) toGroup() netip.AddrPort { return netip.AddrPortFrom(group6, port) }

func (c v6) join(i *net.Interface) error {
	return c.JoinGroup(i, net.UDPAddrFromAddrPort(c.toGroup()))
}

func (c v6) leave(i *net.Interface) error {
	return c.LeaveGroup(i, net.UDPAddrFromAddrPort(c.toGroup()))
}

func (c v6) read(b []byte) (n, link int, from netip.AddrPort, group bool, err error) {
	n, m, a, err := c.ReadFrom(b)
	if err != nil || m == nil {
		return 0, 0, netip.AddrPort{}, false, err
	}
	return n, m.IfIndex, addressOf(a), m.Dst.IsMulticast(), nil
}

func (c v6) write(b []byte, link int, to netip.AddrPort) error {
	_, err := c.WriteTo(b, &ipv6.ControlMessage{IfIndex: link}, net.UDPAddrFromAddrPort(to))
	return err
}

func addressOf(a net.Addr) netip.AddrPort {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := u.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}
