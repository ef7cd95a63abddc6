package path

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// End is this node's end of a path.
type End struct {
	Address string // on the radio network; empty: any
	Device  string // the radio's interface; empty: the routes decide
	Key     Key
}

// config makes sockets that send by the radio's interface alone, and datagrams that no hop
// cuts into fragments.
func (e *End) config() *net.ListenConfig {
	return &net.ListenConfig{Control: e.control}
}

func (e *End) dialer() *net.Dialer {
	d := &net.Dialer{Control: e.control}
	if a, err := netip.ParseAddr(e.Address); err == nil {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
	}
	return d
}

func (e *End) control(network, _ string, c syscall.RawConn) (err error) {
	cerr := c.Control(func(fd uintptr) {
		if e.Device != "" && !e.loopback() {
			// Without the capability the routes decide.
			if err = unix.BindToDevice(int(fd), e.Device); errors.Is(err, unix.EPERM) {
				err = nil
			}
		}
		switch network {
		case "udp4":
			err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE))
		case "udp6":
			err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE))
		}
	})
	return errors.Join(cerr, err)
}

func (e *End) loopback() bool {
	a, err := netip.ParseAddr(e.Address)
	return err == nil && a.IsLoopback()
}

func (e *End) at(port int) string { return net.JoinHostPort(e.Address, strconv.Itoa(port)) }

// listen opens the responder's sockets.
func (e *End) listen(ctx context.Context) (*net.UDPConn, net.Listener, error) {
	c := e.config()
	u, err := c.ListenPacket(ctx, "udp", e.at(Port))
	if err != nil {
		return nil, nil, err
	}
	udp, ok := u.(*net.UDPConn)
	if !ok {
		_ = u.Close()
		return nil, nil, errors.New("not a UDP socket")
	}
	t, err := c.Listen(ctx, "tcp", e.at(Port))
	if err != nil {
		_ = u.Close()
		return nil, nil, err
	}
	return udp, t, nil
}

// identity is what sockets that are bound to an interface hang on: one that comes back with
// another index leaves them deaf.
func (e *End) identity() int {
	if e.Device == "" {
		return 0
	}
	i, err := net.InterfaceByName(e.Device)
	if err != nil {
		return -1
	}
	return i.Index
}
