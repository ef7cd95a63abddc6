//go:build kernels

package inside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/emulator/tun"
	"linktrial/internal/namespace"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
)

// conditions are what a way does to packets in either direction.
type conditions struct {
	bitsPerSecond float64
	delay         time.Duration
	loss          float64
	queue         uint32 // packets, of netem alone; 0: [queuePackets]
}

func (c conditions) String() string {
	return fmt.Sprintf("%g kbit/s, %s, loss %g %%", c.bitsPerSecond/1000, c.delay, c.loss*100)
}

// way is a client's and a server's namespace with something between them that
// imposes conditions. It ends with the test.
type way struct {
	client, server string // names of the namespaces
	// begin draws the losses anew from a seed, where the way can do that.
	begin func(ctx context.Context, seed uint64) error
}

const (
	packetBytes  = 1500
	headerBytes  = 28 // IPv4 and UDP
	ethernetHead = 14
	device       = "radio0"
)

var (
	clientAddress = radio.Addresses[radio.RoleClient]
	serverAddress = radio.Addresses[radio.RoleServer]
)

func newWay(t *testing.T) *way {
	t.Helper()
	w := &way{client: "client", server: "server", begin: func(context.Context, uint64) error { return nil }}
	for _, n := range []string{w.client, w.server} {
		if err := namespace.Make(n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := namespace.Remove(n); err != nil {
				t.Error(err)
			}
		})
	}
	return w
}

// emulated is a way over the project's emulated radios.
func emulated(t *testing.T, c conditions) *way {
	t.Helper()
	w := newWay(t)
	channel := radio.Channel{Model: radio.ChannelPerfect}
	if c.loss > 0 {
		channel = radio.Channel{Model: radio.ChannelUniform, Loss: c.loss}
	}
	n := &radio.Network{
		MTUBytes: packetBytes, Medium: radio.MediumFullDuplex, Queue: radio.Queue{Packets: queuePackets},
		Nodes: []radio.Node{{Role: radio.RoleClient, Address: clientAddress}, {Role: radio.RoleServer, Address: serverAddress}},
		Links: []radio.Link{{A: radio.RoleClient, B: radio.RoleServer, RateBitsPerSecond: c.bitsPerSecond, Delay: c.delay, Channel: channel}},
	}
	socket := filepath.Join(t.TempDir(), "control")
	e, err := tun.Start(tun.Config{Network: n, ControlSocket: socket, Device: device, Nodes: []tun.NodeConfig{
		{Role: radio.RoleClient, NetNS: w.client, Address: clientAddress}, {Role: radio.RoleServer, NetNS: w.server, Address: serverAddress},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	control, err := client.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	w.begin = func(ctx context.Context, seed uint64) error {
		return control.Begin(ctx, radiocontrol.Begin{Trial: "kernels", Seed: seed})
	}
	if err := w.begin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return w
}

const queuePackets = 1000

// netem is a way over a pair of veth devices on which the kernel's netem imposes
// the conditions. It counts the Ethernet header, which the radios do not have: its
// rate is so much higher that packets of [packetBytes] take the same time.
func netem(t *testing.T, c conditions) *way {
	t.Helper()
	w := newWay(t)
	ends := []struct{ ns, address, peer string }{{w.client, clientAddress, serverAddress}, {w.server, serverAddress, clientAddress}}
	if err := connect(device, ends[0].ns, ends[1].ns); err != nil {
		t.Fatal(err)
	}
	for _, e := range ends {
		if err := at(e.ns, func(h *netlink.Handle) error { return prepare(h, device, e.address, e.peer, c) }); err != nil {
			t.Fatalf("netem in %s: %v", e.ns, err)
		}
	}
	return w
}

func at(ns string, f func(*netlink.Handle) error) error {
	file, err := netns.GetFromName(ns)
	if err != nil {
		return err
	}
	defer file.Close()
	h, err := netlink.NewHandleAt(file)
	if err != nil {
		return err
	}
	defer h.Close()
	return f(h)
}

// connect makes a veth device in one namespace, and its other end of the same name in
// another one.
func connect(name, a, b string) error {
	other, err := netns.GetFromName(b)
	if err != nil {
		return err
	}
	defer other.Close()
	return at(a, func(h *netlink.Handle) error {
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: name, PeerNamespace: netlink.NsFd(other)}
		veth.Name = name
		return h.LinkAdd(veth)
	})
}

// prepare gives a veth device its addresses and conditions, and tells it the other
// end's: what waits for a question to it would be lost or late.
func prepare(h *netlink.Handle, name, address, peer string, c conditions) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(24, 32)}}
	if err := errors.Join(h.LinkSetHardwareAddr(l, hardwareAddress(address)), h.AddrAdd(l, a), h.LinkSetUp(l)); err != nil {
		return err
	}
	if err := h.NeighSet(&netlink.Neigh{
		LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: net.ParseIP(peer).To4(), HardwareAddr: hardwareAddress(peer),
	}); err != nil {
		return err
	}
	if c == (conditions{}) {
		return nil
	}
	if c.queue == 0 {
		c.queue = queuePackets
	}
	return h.QdiscAdd(netlink.NewNetem(
		netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		netlink.NetemQdiscAttrs{
			Latency: uint32(c.delay.Microseconds()), Loss: float32(c.loss * 100), Limit: c.queue,
			Rate64: uint64(c.bitsPerSecond / 8 * (packetBytes + ethernetHead) / packetBytes),
		}))
}

// dropped is how many packets netem has dropped that an end sent.
func dropped(ns string) (n int, err error) {
	err = at(ns, func(h *netlink.Handle) error {
		l, err := h.LinkByName(device)
		if err != nil {
			return err
		}
		all, err := h.QdiscList(l)
		if err != nil {
			return err
		}
		for _, q := range all {
			if s := q.Attrs().Statistics; q.Type() == "netem" && s != nil && s.Queue != nil {
				n = int(s.Queue.Drops)
				return nil
			}
		}
		return errors.New("netem has no statistics")
	})
	return n, err
}

// hardwareAddress is a locally administered one with the IP address in it.
func hardwareAddress(address string) net.HardwareAddr {
	return append(net.HardwareAddr{2, 0}, net.ParseIP(address).To4()...)
}
