package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// The control network is the same in every lab: no packet of it leaves the
// lab's own namespaces.
const (
	controlPrefix    = 24
	controlGateway   = "10.213.0.254" // the forwarder, in the control namespace
	controlPort      = 7700
	controlInterface = "control0"
)

var controlAddresses = map[radio.Role]string{radio.RoleClient: "10.213.0.1", radio.RoleRelay: "10.213.0.2", radio.RoleServer: "10.213.0.3"}

// prepareNamespaces makes /run/netns a mount of its own, shared, as ip-netns(8)
// does at its first use. Made later, that mount would hide the namespaces that
// exist already, and they could no longer be removed.
func prepareNamespaces() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	err := unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if !errors.Is(err, unix.EINVAL) { // it is a mount already
		return err
	}
	if err := unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s on itself: %w", netnsDir, err)
	}
	return unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
}

// MakeNamespace makes a named namespace with its loopback up.
func MakeNamespace(name string) error {
	if err := prepareNamespaces(); err != nil {
		return fmt.Errorf("folder of network namespaces: %w", err)
	}
	// netns.NewNamed moves the calling thread into the new namespace, so it
	// runs where the thread is brought back afterwards.
	return process.InNamespace("/proc/self/ns/net", func() error {
		h, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("make network namespace %s: %w", name, err)
		}
		defer h.Close()
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return fmt.Errorf("namespace %s: loopback: %w", name, err)
		}
		// Addresses of our own making; router solicitations and duplicate
		// address detection would only be noise on the radio.
		for _, key := range []string{"all", "default"} {
			err := os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", key, "disable_ipv6"), []byte("1"), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("namespace %s: disable IPv6: %w", name, err)
			}
		}
		return nil
	})
}

// RemoveNamespace removes a namespace of [MakeNamespace] that nobody uses any
// more; one that is not there is no error.
func RemoveNamespace(name string) error {
	if err := netns.DeleteNamed(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

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
	bridge, err := c.LinkByName("bridge0")
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
	if err := c.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge0"}}); err != nil {
		return fmt.Errorf("control bridge: %w", err)
	}
	return raise(c, "bridge0", controlGateway)
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
