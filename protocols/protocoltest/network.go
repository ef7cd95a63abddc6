package protocoltest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// network is where the drivers run: a client and a server namespace with a
// router between, whose forwarding can be cut without either end noticing
// anything but silence. The namespaces have no names: they vanish with this
// process, whatever its end. Where making them is not permitted it is the
// loopback interface, which cannot be cut.
type network struct {
	client, server, router *os.File   // nil on the loopback interface
	link                   *link.Link // in the place of the router, where the suite carries the packets
	loopback               string     // why there are no namespaces
	at                     addresses  // but for those of the loopback interface
}

// ports counts those that servers of this process got: several suites may run at once,
// and on the loopback interface beside those of other processes.
var ports atomic.Uint32

// port gives a server one that no other of this process has, below those that the kernel
// gives to clients.
func (n *network) port() int {
	const first, most = 20_000, 12_000
	return first + (os.Getpid()*97+int(ports.Add(1)))%most
}

const device = link.Device

// newNetwork makes one whose ends have these addresses.
func newNetwork(at addresses, loopback bool) (*network, error) {
	reason := ""
	switch {
	case loopback:
		reason = "the suite was asked to run there"
	case os.Geteuid() != 0:
		reason = "making network namespaces needs root"
	}
	if reason != "" {
		return &network{loopback: reason, at: at}, nil
	}
	n := &network{at: at}
	for _, f := range []**os.File{&n.client, &n.server, &n.router} {
		ns, err := namespace.Unnamed()
		if err != nil {
			n.close()
			return nil, fmt.Errorf("make a network namespace: %w", err)
		}
		*f = ns
	}
	if err := n.connect(); err != nil {
		n.close()
		return nil, fmt.Errorf("connect the network namespaces: %w", err)
	}
	return n.used()
}

func (n *network) connect() error {
	router, err := netlink.NewHandleAt(netns.NsHandle(n.router.Fd()))
	if err != nil {
		return err
	}
	defer router.Close()
	for _, side := range []struct {
		ns                    *os.File
		address, gateway, far string
		port                  string
	}{
		{n.client, n.at.client, n.at.clientRouter, n.at.server, "client"},
		{n.server, n.at.server, n.at.serverRouter, n.at.client, "server"},
	} {
		end, err := netlink.NewHandleAt(netns.NsHandle(side.ns.Fd()))
		if err != nil {
			return err
		}
		defer end.Close()
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: device, PeerNamespace: netlink.NsFd(int(side.ns.Fd()))}
		veth.Name = side.port
		if err := router.LinkAdd(veth); err != nil {
			return fmt.Errorf("veth to the %s: %w", side.port, err)
		}
		// Both sides are of one network: the router has a route to each end alone.
		port, err := up(router, side.port, side.gateway, 32)
		if err != nil {
			return err
		}
		if err := router.RouteAdd(&netlink.Route{LinkIndex: port.Attrs().Index, Dst: hostOf(side.address), Scope: netlink.SCOPE_LINK}); err != nil {
			return fmt.Errorf("route to the %s: %w", side.port, err)
		}
		if _, err := up(end, device, side.address, 24); err != nil {
			return err
		}
		if _, err := up(end, "lo", "", 0); err != nil {
			return err
		}
		if err := end.RouteAdd(&netlink.Route{Dst: hostOf(side.far), Gw: net.ParseIP(side.gateway)}); err != nil {
			return fmt.Errorf("route of the %s: %w", side.port, err)
		}
	}
	return n.restore()
}

// hostOf is an IPv4 address alone, as a network.
func hostOf(ip string) *net.IPNet {
	return &net.IPNet{IP: net.ParseIP(ip).To4(), Mask: net.CIDRMask(32, 32)}
}

// up gives an interface an address (empty: none) of a network of so many bits, and sets it up.
func up(h *netlink.Handle, name, ip string, bits int) (netlink.Link, error) {
	l, err := h.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	if ip != "" {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(ip).To4(), Mask: net.CIDRMask(bits, 32)}}
		if err := h.AddrAdd(l, a); err != nil {
			return nil, fmt.Errorf("address of %s: %w", name, err)
		}
	}
	if err := h.LinkSetUp(l); err != nil {
		return nil, fmt.Errorf("bring up %s: %w", name, err)
	}
	return l, nil
}

// forward lets packets through or drops them silently: a host that does not
// forward sends no ICMP (RFC 1812, section 5.2.1).
func (n *network) forward(on bool) error {
	value := []byte("0")
	if on {
		value = []byte("1")
	}
	return process.InNamespace(nsPath(n.router), func() error {
		// /proc/sys/net shows the namespace of the thread that opens it.
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", value, 0)
	})
}

func (n *network) cut() error     { return n.forward(false) }
func (n *network) restore() error { return n.forward(true) }

func (n *network) close() {
	if n.link != nil {
		n.link.Close() // and its namespaces
		return
	}
	for _, f := range []*os.File{n.client, n.server, n.router} {
		if f != nil {
			f.Close()
		}
	}
}

func (n *network) kind() string {
	if n.loopback != "" {
		return "loopback"
	}
	return "namespaces"
}

// end is the file of the namespace of a role, nil on the loopback interface.
func (n *network) end(r contract.Role) *os.File {
	switch {
	case n.loopback != "":
		return nil
	case r == contract.RoleServer:
		return n.server
	default:
		return n.client
	}
}

// namespace is the path of that file, "" on the loopback interface.
func (n *network) namespace(r contract.Role) string {
	f := n.end(r)
	if f == nil {
		return ""
	}
	return nsPath(f)
}

func nsPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// address of a role, and the interface it is on.
func (n *network) address(r contract.Role) (ip, dev string) {
	switch {
	case n.loopback != "":
		return "127.0.0.1", ""
	case r == contract.RoleServer:
		return n.at.server, device
	default:
		return n.at.client, device
	}
}

// inhabitants are the processes inside the namespaces.
func (n *network) inhabitants() []process.Identity {
	if n.loopback != "" {
		return nil
	}
	ours := map[string]bool{}
	for _, f := range []*os.File{n.client, n.server, n.router} {
		if f == nil {
			continue
		}
		if l, err := os.Readlink(nsPath(f)); err == nil {
			ours[l] = true
		}
	}
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process.Identity
	for _, e := range dir {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		l, err := os.Readlink("/proc/" + e.Name() + "/ns/net")
		if err != nil || !ours[l] {
			continue
		}
		if id, err := process.Identify(pid); err == nil {
			out = append(out, id)
		}
	}
	return out
}
