package protocoltest

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// wire is the path between the two namespaces where the suite carries every
// packet itself, between two TUN devices: it can be slow, lossy, cut in one
// direction, and it counts.
type wire struct {
	up, down *lane // from the client, from the server
	tuns     []int // descriptors
}

// The second addresses of either side, in networks with a [wire].
const (
	clientAddress2 = "192.0.2.2"
	serverAddress2 = "198.51.100.2"
	// The same in IPv6 (RFC 3849).
	clientAddress6 = "2001:db8:1::1"
	serverAddress6 = "2001:db8:2::1"
	// nowhere is an address that no route leads to (RFC 5737, TEST-NET-3).
	nowhere = "203.0.113.1"
)

// newWireNetwork makes a client and a server namespace with a link between
// them, or the loopback interface under the conditions of [newNetwork].
func newWireNetwork(loopback string, firstPort int) (*network, error) {
	if loopback != "" {
		return &network{loopback: loopback, firstPort: firstPort}, nil
	}
	n := &network{firstPort: firstPort, wire: &wire{}}
	if err := n.makeWire(); err != nil {
		n.close()
		return nil, fmt.Errorf("make a link between network namespaces: %w", err)
	}
	return n, nil
}

func (n *network) makeWire() error {
	for _, side := range []struct {
		ns        **os.File
		far       []string
		addresses []string
	}{
		{&n.client, []string{serverAddress, serverAddress2, serverAddress6}, []string{clientAddress, clientAddress2, clientAddress6}},
		{&n.server, []string{clientAddress, clientAddress2, clientAddress6}, []string{serverAddress, serverAddress2, serverAddress6}},
	} {
		ns, err := namespace.Unnamed()
		if err != nil {
			return err
		}
		*side.ns = ns
		err = process.InNamespace(nsPath(ns), func() error {
			tun, err := openTUN(side.addresses, side.far)
			if err == nil {
				n.wire.tuns = append(n.wire.tuns, tun)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	l := n.wire
	var err error
	if l.up, err = newLane(l.tuns[0], l.tuns[1], 1); err != nil {
		return err
	}
	if l.down, err = newLane(l.tuns[1], l.tuns[0], 2); err != nil {
		return err
	}
	go l.up.carry()
	go l.down.carry()
	return nil
}

// openTUN makes the radio of this namespace: a TUN device with addresses and
// routes to the other end. Without offloads, so that what is read are packets as
// they would be on a wire, with their checksums.
func openTUN(addresses, far []string) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return -1, skip("this machine has no /dev/net/tun: load it with 'modprobe tun'")
	}
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(device)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		err = fmt.Errorf("make a TUN device: %w", err)
	} else {
		err = configureTUN(addresses, far)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func configureTUN(addresses, far []string) error {
	// No link-local address, with which the kernel would send packets of its own.
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/addr_gen_mode", []byte("1"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("prepare %s: %w", device, err)
	}
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("interface %s: %w", device, err)
	}
	source := map[bool]net.IP{} // of packets to either family
	for _, a := range addresses {
		ip := net.ParseIP(a)
		is4 := ip.To4() != nil
		if source[is4] == nil {
			source[is4] = ip
		}
		// Without looking for another owner of the address, which takes a second.
		if err := h.AddrAdd(dev, &netlink.Addr{IPNet: host(a), Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
	}
	if err := h.LinkSetUp(dev); err != nil {
		return err
	}
	for _, a := range far {
		to := host(a)
		route := &netlink.Route{Dst: to, LinkIndex: dev.Attrs().Index, Src: source[to.IP.To4() != nil]}
		if err := h.RouteAdd(route); err != nil {
			return fmt.Errorf("route to %s: %w", a, err)
		}
	}
	return up(h, "lo", "")
}

func (l *wire) close() {
	for _, d := range []*lane{l.up, l.down} {
		if d != nil {
			d.close()
		}
	}
	for _, fd := range l.tuns {
		_ = unix.Close(fd)
	}
}

// both sets the same conditions in both directions.
func (l *wire) both(c conditions) {
	l.up.change(c)
	l.down.change(c)
}

// needWire skips a check that needs the suite's own link.
func (s *suite) needWire() (*wire, error) {
	if s.net.wire == nil {
		return nil, skip("needs a link between network namespaces: %s", s.net.loopback)
	}
	return s.net.wire, nil
}
