package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/backoff"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// Plain is radios that nothing emulates: the radio interface of each node is one end of a
// cable (veth) to a bridge that stands for the air, and sends at the rate of the radio.
// Agents know such an interface by its name alone, as they know that of a real radio.
type Plain struct {
	BitsPerSecond float64 // at which each node sends
	Loss          float64 // the probability with which the air loses a packet; 0: it loses none
}

// What the queue of a plain radio holds: the burst that its token bucket lets through at
// once, and how long a packet waits at most. The burst is that of a driver's packets that
// are sent as one, and small against the transfers that are measured.
const (
	plainBurst   = 16 << 10 // bytes
	plainLatency = 0.4      // seconds
)

// airBridge stands for the air, in a namespace of its own.
const airBridge = "air0"

func airNamespace(lab string) string { return prefix + lab + "-air" }

// radioMAC is the link-layer address of a node's radio interface. It stays when the
// interface goes and comes back, as a device's does.
func radioMAC(index int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0, 10, 77, 0, byte(index + 1)}
}

func airPort(index int) string { return fmt.Sprintf("port%d", index) }

// Plain reports whether the lab's radios are plain ones.
func (l *Lab) Plain() bool { return l.plain != nil }

// Device is the name of every node's radio interface.
const Device = device

// makeAir makes the air and every node's radio.
func (l *Lab) makeAir() error {
	if err := MakeNamespace(l.State.Air); err != nil {
		return err
	}
	err := onNamespace(l.State.Air, func(c *netlink.Handle) error {
		air := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: airBridge, HardwareAddr: radioMAC(0xfe)}}
		if err := c.LinkAdd(air); err != nil {
			return err
		}
		return c.LinkSetUp(air)
	})
	if err != nil {
		return fmt.Errorf("the air of plain radios: %w", err)
	}
	if l.plain.Loss > 0 {
		if err := loseInAir(l.State.Air, l.plain.Loss); err != nil {
			return err
		}
	}
	for _, n := range l.State.Nodes {
		if err := l.makeRadio(n.Role, 0); err != nil {
			return err
		}
	}
	return nil
}

// makeRadio makes a node's plain radio interface, with the index given, or one that the
// kernel chooses where it is 0.
func (l *Lab) makeRadio(role radio.Role, index int) error {
	i, n, err := l.State.place(role)
	if err != nil {
		return err
	}
	node, err := netns.GetFromName(n.Namespace)
	if err != nil {
		return fmt.Errorf("namespace of %s: %w", role, err)
	}
	defer node.Close()
	err = onNamespace(l.State.Air, func(c *netlink.Handle) error {
		air, err := c.LinkByName(airBridge)
		if err != nil {
			return err
		}
		// The kernel makes the first end in the caller's namespace under the index, so the
		// node's end is made there, by a handle of its own.
		err = onNamespace(n.Namespace, func(h *netlink.Handle) error {
			ns, err := netns.GetFromName(l.State.Air)
			if err != nil {
				return err
			}
			defer ns.Close()
			return h.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: device, Index: index, HardwareAddr: radioMAC(i)},
				PeerName:  airPort(i), PeerNamespace: netlink.NsFd(ns),
			})
		})
		if err != nil {
			return err
		}
		port, err := c.LinkByName(airPort(i))
		if err != nil {
			return err
		}
		return errors.Join(c.LinkSetGSOMaxSegs(port, 1), c.LinkSetMaster(port, air), c.LinkSetUp(port))
	})
	if err != nil {
		return fmt.Errorf("radio of %s: %w", role, err)
	}
	return onRadio(&l.State, role, func(c *netlink.Handle, link netlink.Link) error {
		if err := errors.Join(l.shape(c, link), c.AddrAdd(link, radioAddress(n))); err != nil {
			return err
		}
		return l.raiseRadio(c, role, link)
	})
}

// raiseRadio brings a radio interface up, unless a fault keeps it down.
func (l *Lab) raiseRadio(c *netlink.Handle, role radio.Role, link netlink.Link) error {
	l.downMu.Lock()
	defer l.downMu.Unlock()
	if l.down[nodeInterface{role: role}] > 0 {
		return nil
	}
	return c.LinkSetUp(link)
}

// shape has a plain radio send at the radio's rate, packet by packet: a radio
// does not take several segments as one.
func (l *Lab) shape(c *netlink.Handle, link netlink.Link) error {
	bytesPerSecond := l.plain.BitsPerSecond / 8
	// tc_calc_xmittime of iproute2: the time of the burst, in ticks of the scheduler.
	buffer := plainBurst / bytesPerSecond * netlink.TIME_UNITS_PER_SEC * netlink.TickInUsec()
	tbf := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(bytesPerSecond),
		Limit:      uint32(plainBurst + bytesPerSecond*plainLatency),
		Buffer:     uint32(min(buffer, math.MaxUint32)),
	}
	return errors.Join(c.LinkSetGSOMaxSegs(link, 1), c.QdiscAdd(tbf))
}

// RemoveRadio removes a node's plain radio interface, as when the plug of a USB radio is
// drawn. Restore makes it again, under its old index or another one.
func (l *Lab) RemoveRadio(role radio.Role) (restore func(sameIndex bool) error, err error) {
	index := 0
	err = onRadio(&l.State, role, func(c *netlink.Handle, link netlink.Link) error {
		index = link.Attrs().Index
		return c.LinkDel(link)
	})
	return func(sameIndex bool) error {
		if sameIndex {
			return l.makeRadio(role, index)
		}
		// A veth's indexes are the lowest free ones of the namespace, so the old one would
		// come back by itself.
		return l.makeRadio(role, index+1+int(l.indexes.Add(1)))
	}, err
}

// otherName is what a renamed radio interface is called.
const otherName = "radio0renamed"

// RenameRadio gives a node's plain radio interface another name, until restore is called.
func (l *Lab) RenameRadio(role radio.Role) (restore func() error, err error) {
	rename := func(from, to string) error {
		n, err := l.State.Node(role)
		if err != nil {
			return err
		}
		return onNamespace(n.Namespace, func(c *netlink.Handle) error {
			link, err := c.LinkByName(from)
			if err != nil {
				return err
			}
			// The kernel renames only what is down; routes go and are made anew.
			if err := errors.Join(c.LinkSetDown(link), c.LinkSetName(link, to)); err != nil {
				return err
			}
			return l.raiseRadio(c, role, link)
		})
	}
	return func() error { return rename(otherName, device) }, rename(device, otherName)
}

// CutAir takes the carrier from a node's plain radio interface, which stays up, until
// restore is called.
func (l *Lab) CutAir(role radio.Role) (restore func() error, err error) {
	set := func(up bool) error {
		return l.onPort(role, func(c *netlink.Handle, port netlink.Link) error {
			if up {
				return c.LinkSetUp(port)
			}
			return c.LinkSetDown(port)
		})
	}
	return func() error { return set(true) }, set(false)
}

// NarrowAir has the air drop every larger IP packet from and to a node, without a word of
// ICMP, until restore is called: a bridge forwards nothing that its port cannot carry.
func (l *Lab) NarrowAir(role radio.Role, bytes int) (restore func() error, err error) {
	set := func(to int) (before int, err error) {
		err = l.onPort(role, func(c *netlink.Handle, port netlink.Link) error {
			before = port.Attrs().MTU
			return c.LinkSetMTU(port, to)
		})
		return before, err
	}
	before, err := set(bytes)
	return func() error { _, err := set(before); return err }, err
}

// DropAddress takes the address from a node's radio interface, until restore is called.
func (l *Lab) DropAddress(role radio.Role) (restore func() error, err error) {
	n, err := l.State.Node(role)
	if err != nil {
		return nil, err
	}
	err = onRadio(&l.State, role, func(c *netlink.Handle, link netlink.Link) error { return c.AddrDel(link, radioAddress(n)) })
	return func() error {
		return onRadio(&l.State, role, func(c *netlink.Handle, link netlink.Link) error { return c.AddrAdd(link, radioAddress(n)) })
	}, err
}

// AddAddress gives a node's radio interface a further address, until remove is called.
// It is no error then if the interface has been made anew without it.
func (l *Lab) AddAddress(role radio.Role, ip net.IP) (remove func() error, err error) {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}}
	err = onRadio(&l.State, role, func(c *netlink.Handle, link netlink.Link) error { return c.AddrAdd(link, addr) })
	return func() error {
		err := onRadio(&l.State, role, func(c *netlink.Handle, link netlink.Link) error { return c.AddrDel(link, addr) })
		if errors.Is(err, unix.EADDRNOTAVAIL) || errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil
		}
		return err
	}, err
}

// RouteAround has what a node sends to the radios of the other nodes take the control
// network, as a wired network with the better metric does, until end is called.
func (l *Lab) RouteAround(role radio.Role) (end func() error, err error) {
	n, err := l.State.Node(role)
	if err != nil {
		return nil, err
	}
	each := func(c *netlink.Handle, f func(r *netlink.Route) error) error {
		wired, err := c.LinkByName(controlInterface)
		if err != nil {
			return err
		}
		var errs []error
		for _, o := range l.State.Nodes {
			if o.Role != role {
				errs = append(errs, f(&netlink.Route{
					LinkIndex: wired.Attrs().Index, Gw: net.ParseIP(o.ControlAddress),
					Dst: &net.IPNet{IP: net.ParseIP(o.RadioAddress).To4(), Mask: net.CIDRMask(32, 32)},
				}))
			}
		}
		return errors.Join(errs...)
	}
	on := func(do func(c *netlink.Handle, r *netlink.Route) error) error {
		err := onNamespace(n.Namespace, func(c *netlink.Handle) error {
			return each(c, func(r *netlink.Route) error { return do(c, r) })
		})
		if err != nil {
			return fmt.Errorf("routes of the %s: %w", role, err)
		}
		return nil
	}
	err = on(func(c *netlink.Handle, r *netlink.Route) error { return c.RouteAdd(r) })
	return func() error {
		return on(func(c *netlink.Handle, r *netlink.Route) error {
			if err := c.RouteDel(r); !errors.Is(err, unix.ESRCH) {
				return err
			}
			return nil // it went with its interface
		})
	}, err
}

// TakeAddress has a second host in the air with the address of a node's radio, which
// announces it again and again, until end is called. What reaches it, it refuses.
func (l *Lab) TakeAddress(role radio.Role) (end func() error, err error) {
	n, err := l.State.Node(role)
	if err != nil {
		return nil, err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(n.RadioAddress).To4(), Mask: net.CIDRMask(32, 32)}}
	onAir := func(f func(c *netlink.Handle, air netlink.Link) error) error {
		err := onNamespace(l.State.Air, func(c *netlink.Handle) error {
			air, err := c.LinkByName(airBridge)
			if err != nil {
				return err
			}
			return f(c, air)
		})
		if err != nil {
			return fmt.Errorf("second host of the address of the %s: %w", role, err)
		}
		return nil
	}
	if err := onAir(func(c *netlink.Handle, air netlink.Link) error { return c.AddrAdd(air, addr) }); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := announce(l.State.Air, airBridge, addr.IP)
		for err == nil && backoff.Sleep(ctx, announceEvery) {
			err = announce(l.State.Air, airBridge, addr.IP)
		}
		done <- err
	}()
	return func() error {
		cancel()
		err := errors.Join(<-done, onAir(func(c *netlink.Handle, air netlink.Link) error { return c.AddrDel(air, addr) }))
		// The others have the stranger's link-layer address for up to a minute otherwise.
		if own := announce(n.Namespace, device, addr.IP); !errors.As(own, &netlink.LinkNotFoundError{}) {
			err = errors.Join(err, own)
		}
		return err
	}, nil
}

// announceEvery is how often a second host of an address announces it: the kernel
// ignores announcements within the first second of an entry (locktime, arp(7)).
const announceEvery = 300 * time.Millisecond

// announce sends a gratuitous ARP of an address from an interface (RFC 5227, section 3):
// who knows the address has its new link-layer address then.
func announce(namespace, name string, ip net.IP) error {
	return process.InNamespace(NamespacePath(namespace), func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }() // what was sent is sent
		arp := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ARP))
		to := &unix.SockaddrLinklayer{Protocol: arp, Ifindex: link.Attrs().Index, Halen: 6, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
		if err := unix.Sendto(fd, gratuitous(link.Attrs().HardwareAddr, ip), 0, to); err != nil && !errors.Is(err, unix.ENETDOWN) {
			return fmt.Errorf("announce %s on %s: %w", ip, name, err)
		}
		return nil
	})
}

// gratuitous is an ARP request of an address for itself (RFC 826).
func gratuitous(mac net.HardwareAddr, ip net.IP) []byte {
	const ethernet, request = 1, 1
	b := binary.BigEndian.AppendUint16(nil, ethernet)
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
	b = append(b, byte(len(mac)), net.IPv4len)
	b = binary.BigEndian.AppendUint16(b, request)
	b = append(append(b, mac...), ip.To4()...)
	return append(append(b, make([]byte, len(mac))...), ip.To4()...)
}

// onPort runs f on the air's end of a node's plain radio.
func (l *Lab) onPort(role radio.Role, f func(*netlink.Handle, netlink.Link) error) error {
	i, _, err := l.State.place(role)
	if err != nil {
		return err
	}
	err = onNamespace(l.State.Air, func(c *netlink.Handle) error {
		port, err := c.LinkByName(airPort(i))
		if err != nil {
			return err
		}
		return f(c, port)
	})
	if err != nil {
		return fmt.Errorf("the air at the %s: %w", role, err)
	}
	return nil
}

// radioAddress is the address of a node's radio with its network.
func radioAddress(n *NodeState) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(n.RadioAddress).To4(), Mask: net.CIDRMask(radio.PrefixBits, 32)}}
}

// onNamespace runs f with the interfaces of a named namespace.
func onNamespace(name string, f func(*netlink.Handle) error) error {
	h, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	defer h.Close()
	c, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// Suspend stops every process on a node, as a lid that is closed does, until restore is
// called; what its kernel does by itself, it goes on doing.
func (l *Lab) Suspend(role radio.Role) (restore func() error, err error) {
	n, err := l.State.Node(role)
	if err != nil {
		return nil, err
	}
	var stopped []process.Identity
	restore = func() error {
		var errs []error
		for _, id := range stopped {
			if err := id.Signal(unix.SIGCONT); err != nil && !process.Ended(err) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	// One that is not stopped yet may start another one meanwhile.
	for more := true; more; {
		all, err := processesIn(n.Namespace)
		if err != nil {
			return nil, errors.Join(err, restore())
		}
		more = false
		for _, id := range all {
			if slices.Contains(stopped, id) {
				continue
			}
			more = true
			stopped = append(stopped, id)
			if err := id.Signal(unix.SIGSTOP); err != nil && !process.Ended(err) {
				return nil, errors.Join(err, restore())
			}
		}
	}
	return restore, nil
}
