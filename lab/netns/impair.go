package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/backoff"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// Impairment is what a node's control link does to packets while it is impaired.
type Impairment struct {
	Delay time.Duration // of every packet, each way
	// Loss is the probability with which a packet is lost, each way. What the kernel
	// hands over as one (several TCP segments, say) is lost as one.
	Loss float64
	// Silent: no packet from the node passes; those to it do.
	Silent bool
	Seed   uint64 // of the losses
}

// ImpairControlLink has a node's control link lose or delay packets until restore is
// called. The kernel need not know how: the node's port is taken out of the bridge,
// and this process carries the packets between them. When it dies, nothing passes
// any more, and [Sweep] removes the namespace with all that is in it.
func (l *Lab) ImpairControlLink(role radio.Role, how Impairment) (restore func() error, err error) {
	for i, n := range l.State.Nodes {
		if n.Role != role {
			continue
		}
		p := &pump{control: l.State.Control, port: fmt.Sprintf("node%d", i), tap: fmt.Sprintf("impaired%d", i), how: how}
		if err := p.start(); err != nil {
			return nil, errors.Join(fmt.Errorf("impair control link of %s: %w", role, err), p.stop())
		}
		return p.stop, nil
	}
	return nil, fmt.Errorf("the lab has no node %s", role)
}

// pump carries packets between a bridge port that is taken out of the bridge, and a
// TAP device that takes its place there.
type pump struct {
	control, port, tap string
	how                Impairment

	node, bridge *os.File // packet socket at the port; the TAP device
	end          context.CancelFunc
	carrying     sync.WaitGroup
}

// inControl runs f with the links of the control namespace.
func (p *pump) inControl(f func(h *netlink.Handle, port, bridge netlink.Link) error) error {
	ns, err := netns.GetFromName(p.control)
	if err != nil {
		return fmt.Errorf("control namespace: %w", err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	port, err := h.LinkByName(p.port)
	if err != nil {
		return err
	}
	bridge, err := h.LinkByName(controlBridge)
	if err != nil {
		return err
	}
	return f(h, port, bridge)
}

func (p *pump) start() error {
	err := process.InNamespace(NamespacePath(p.control), func() error {
		var err error
		p.bridge, err = openTap(p.tap)
		return err
	})
	if err != nil {
		return err
	}
	err = p.inControl(func(h *netlink.Handle, port, bridge netlink.Link) error {
		tap, err := h.LinkByName(p.tap)
		if err != nil {
			return err
		}
		// Outside the bridge the port would answer for this namespace's addresses.
		if err := errors.Join(h.LinkSetARPOff(port), h.LinkSetNoMaster(port)); err != nil {
			return err
		}
		if err := process.InNamespace(NamespacePath(p.control), func() error {
			var err error
			p.node, err = openPort(port.Attrs().Index)
			return err
		}); err != nil {
			return err
		}
		return errors.Join(h.LinkSetMaster(tap, bridge), h.LinkSetUp(tap))
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.end = cancel
	p.carry(ctx, p.node, p.bridge, p.how.Silent, 1)
	p.carry(ctx, p.bridge, p.node, false, 2)
	return nil
}

// stop puts the port into the bridge again.
func (p *pump) stop() error {
	for _, f := range []*os.File{p.node, p.bridge} {
		if f != nil {
			_ = f.Close() // the device goes with it
		}
	}
	if p.end != nil {
		p.end()
	}
	p.carrying.Wait()
	return p.inControl(func(h *netlink.Handle, port, bridge netlink.Link) error {
		return errors.Join(h.LinkSetARPOn(port), h.LinkSetMaster(port, bridge))
	})
}

// Bounds of what is under way between a port and the bridge.
const (
	maxCarried = 1000        // packets
	maxPacket  = 10 + 65_550 // bytes: the kernel's header, and what it hands over as one packet
)

type carried struct {
	due    time.Time
	packet []byte
}

// carry takes packets from one end to the other, until ctx has ended and both ends
// are closed.
func (p *pump) carry(ctx context.Context, from, to *os.File, none bool, way uint64) {
	under := make(chan carried, maxCarried)
	p.carrying.Go(func() {
		defer close(under)
		rng := rand.New(rand.NewPCG(p.how.Seed, way))
		b := make([]byte, maxPacket)
		for {
			n, err := from.Read(b)
			switch {
			case errors.Is(err, os.ErrClosed):
				return
			case err != nil: // ENETDOWN, once, of a port that a power cut takes down
				if !backoff.Sleep(ctx, time.Millisecond) {
					return
				}
				continue
			}
			if none || rng.Float64() < p.how.Loss {
				continue
			}
			select {
			case under <- carried{time.Now().Add(p.how.Delay), append([]byte(nil), b[:n]...)}:
			default: // lost, as in any queue that is full
			}
		}
	})
	p.carrying.Go(func() {
		for c := range under {
			if backoff.Sleep(ctx, time.Until(c.due)) {
				_, _ = to.Write(c.packet) // what the other end does not take is lost
			}
		}
	})
}

// openTap makes a TAP device, which goes when it is closed. Packets have the kernel's
// header of offloads (virtio_net.h) before them, as those of [openPort] have: checksums
// that a veth pair never computes stay uncomputed.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was made
		return nil, fmt.Errorf("make the TAP device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openPort opens a packet socket that gets what comes in at an interface, and sends
// there.
func openPort(index int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
	)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index})
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was sent
		return nil, fmt.Errorf("packet socket at the port: %w", err)
	}
	return os.NewFile(uintptr(fd), "port"), nil
}
