package netns

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/namespace"
	"linktrial/internal/radio"
)

// The control network is the same in every lab: no packet of it leaves the
// lab's own namespaces.
const (
	controlPrefix    = 24
	controlGateway   = "10.213.0.254" // the forwarder, in the control namespace
	controlPort      = 7700
	controlInterface = "control0"
	controlBridge    = "bridge0"
)

// bridgeAddress is the link-layer address of the control bridge. Without one of its
// own it has that of one of its ports, and another one whenever a port comes or goes.
var bridgeAddress = net.HardwareAddr{0x02, 0, 10, 213, 0, 254}

var controlAddresses = map[radio.Role]string{radio.RoleClient: "10.213.0.1", radio.RoleRelay: "10.213.0.2", radio.RoleServer: "10.213.0.3"}

// MakeNamespace makes a named namespace with its loopback up.
func MakeNamespace(name string) error { return namespace.Make(name) }

// RemoveNamespace removes a namespace of [MakeNamespace] that is no longer in use;
// one that does not exist is no error.
func RemoveNamespace(name string) error { return namespace.Remove(name) }

// joinControl lays a veth pair from a node's namespace to the control bridge.
func joinControl(control, node, address string, index int) error {
	ch, err := netns.GetFromName(control)
	if err != nil {
		return err
	}
	defer ch.Close()
	nh, err := netns.GetFromName(node)
	if err != nil {
		return err
	}
	defer nh.Close()
	c, err := netlink.NewHandleAt(ch)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := netlink.NewHandleAt(nh)
	if err != nil {
		return err
	}
	defer n.Close()

	port := fmt.Sprintf("node%d", index)
	bridge, err := c.LinkByName(controlBridge)
	if err != nil {
		return err
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port}, PeerName: controlInterface, PeerNamespace: netlink.NsFd(nh)}
	if err := c.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth to %s: %w", node, err)
	}
	link, err := c.LinkByName(port)
	if err != nil {
		return err
	}
	if err := errors.Join(c.LinkSetMaster(link, bridge), c.LinkSetUp(link)); err != nil {
		return fmt.Errorf("bridge port of %s: %w", node, err)
	}
	return raise(n, controlInterface, address)
}

// makeBridge makes the control bridge with the forwarder's address.
func makeBridge(control string) error {
	h, err := netns.GetFromName(control)
	if err != nil {
		return err
	}
	defer h.Close()
	c, err := netlink.NewHandleAt(h)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: controlBridge, HardwareAddr: bridgeAddress}}); err != nil {
		return fmt.Errorf("control bridge: %w", err)
	}
	return raise(c, controlBridge, controlGateway)
}

func raise(h *netlink.Handle, device, address string) error {
	link, err := h.LinkByName(device)
	if err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(controlPrefix, 32)}}
	if err := h.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("address %s on %s: %w", address, device, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("raise %s: %w", device, err)
	}
	return nil
}
