package radioset

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// maxInterfaces bounds a list, and maxNeighbours and maxAddresses those of one interface.
const (
	maxInterfaces = 32
	maxNeighbours = 8
	maxAddresses  = 8
)

// resolveLimit bounds the resolution of the orchestrator's name.
const resolveLimit = 2 * time.Second

// lister reads a node's interfaces. Its methods are for one goroutine.
type lister struct {
	root     string // of the files that are read, "/"
	host     string // of the orchestrator
	port     uint16
	received map[string]uint64 // packets by interface, as it looked before
}

func newLister(root, orchestrator string) (*lister, error) {
	u, err := url.Parse(orchestrator)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("orchestrator %q, expected a URL such as https://10.20.0.10:7700", orchestrator)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		port = map[string]uint64{"http": 80, "https": 443}[u.Scheme]
	}
	return &lister{root: root, host: u.Hostname(), port: uint16(port), received: map[string]uint64{}}, nil
}

// list reads the interfaces; radios are those on which a radio was set up.
func (l *lister) list(ctx context.Context, radios []string) (*linktrialv1.InterfaceList, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	control, defaults := l.controlInterfaces(ctx), defaultInterfaces()
	var all []*linktrialv1.NodeInterface
	weight, received := map[string]int{}, map[string]uint64{}
	for _, link := range links {
		a := link.Attrs()
		i := l.read(link)
		i.Control, i.DefaultRoute = control[a.Index], defaults[a.Index]
		if a.Statistics != nil {
			before, known := l.received[a.Name]
			received[a.Name] = a.Statistics.RxPackets
			i.Receiving = known && a.Statistics.RxPackets > before
		}
		weight[a.Name] = Judge(i, slices.Contains(radios, a.Name))
		all = append(all, i)
	}
	l.received = received
	order(all, weight)
	out := &linktrialv1.InterfaceList{Interfaces: all[:min(len(all), maxInterfaces)]}
	out.More = int32(len(all) - len(out.Interfaces))
	return out, nil
}

// read is one interface without what the node's routes say of it.
func (l *lister) read(link netlink.Link) *linktrialv1.NodeInterface {
	a := link.Attrs()
	i := &linktrialv1.NodeInterface{Name: a.Name, Mac: a.HardwareAddr.String(), Up: a.Flags&net.FlagUp != 0, Carrier: a.Flags&net.FlagRunning != 0, MtuBytes: int32(a.MTU)}
	l.readDevice(i, a)
	i.ConfiguredBy = owner(l.root, a.Name, a.Index)
	addresses, _ := netlink.AddrList(link, netlink.FAMILY_ALL) // of an interface that has gone: none
	for _, x := range addresses {
		if p, ok := prefixOf(x.IPNet); ok && len(i.Addresses) < maxAddresses {
			i.Addresses = append(i.Addresses, p.String())
		}
		// The kernel itself limits IPv6 addresses of router advertisements.
		if x.IP.To4() != nil && x.Flags&unix.IFA_F_PERMANENT == 0 && i.ConfiguredBy == "" {
			i.ConfiguredBy = "a DHCP client"
		}
	}
	neighbours, _ := netlink.NeighList(a.Index, netlink.FAMILY_ALL) // without any, none
	for _, n := range neighbours {
		answered := n.State&(netlink.NUD_REACHABLE|netlink.NUD_STALE|netlink.NUD_DELAY|netlink.NUD_PROBE|netlink.NUD_PERMANENT) != 0
		if answered && n.Type == unix.RTN_UNICAST && len(i.Neighbours) < maxNeighbours {
			i.Neighbours = append(i.Neighbours, n.IP.String())
		}
	}
	slices.Sort(i.Neighbours)
	return i
}

// readDevice reads from /sys/class/net (Documentation/ABI/testing/sysfs-class-net) which
// device an interface is.
func (l *lister) readDevice(i *linktrialv1.NodeInterface, a *netlink.LinkAttrs) {
	dir := filepath.Join(l.root, "sys/class/net", a.Name)
	if to, err := os.Readlink(filepath.Join(dir, "device/driver")); err == nil {
		i.Driver = filepath.Base(to)
	}
	if to, err := os.Readlink(filepath.Join(dir, "device/subsystem")); err == nil {
		i.Bus = filepath.Base(to)
	}
	_, noDevice := os.Stat(filepath.Join(dir, "device"))
	_, noWireless := os.Stat(filepath.Join(dir, "wireless"))
	switch {
	case a.Flags&net.FlagLoopback != 0:
		i.Kind = kindLoopback
	case noWireless == nil:
		i.Kind = kindWireless
	case i.Bus == "usb":
		i.Kind = kindUSB
	case noDevice == nil:
		i.Kind = kindWired
	default:
		i.Kind = kindVirtual
	}
	if text, err := os.ReadFile(filepath.Join(dir, "speed")); err == nil && i.Kind != kindVirtual {
		speed, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && speed > 0 { // -1 is not known
			i.SpeedMbit = speed
		}
	}
}

// controlInterfaces are those, by index, over which packets to the orchestrator leave, and
// on the orchestrator's own machine those over which other machines are connected to it.
func (l *lister) controlInterfaces(ctx context.Context) map[int]bool {
	out, own := map[int]bool{}, map[netip.Addr]int{}
	all, _ := netlink.AddrList(nil, netlink.FAMILY_ALL) // without any, none
	for _, a := range all {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			own[ip.Unmap()] = a.LinkIndex
		}
	}
	here := false
	for _, to := range l.addresses(ctx) {
		routes, err := netlink.RouteGet(to.AsSlice())
		if err != nil {
			continue // there is no way to it over any
		}
		_, mine := own[to]
		here = here || mine || to.IsLoopback()
		for _, r := range routes {
			out[r.LinkIndex] = true
		}
	}
	if !here {
		return out
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, _ := netlink.SocketDiagTCP(family) // without any, none
		for _, s := range sockets {
			from, ok := netip.AddrFromSlice(s.ID.Source)
			if index := own[from.Unmap()]; ok && s.State == netlink.TCP_ESTABLISHED && s.ID.SourcePort == l.port && index != 0 {
				out[index] = true
			}
		}
	}
	return out
}

// addresses are those of the orchestrator.
func (l *lister) addresses(ctx context.Context) (out []netip.Addr) {
	if a, err := netip.ParseAddr(l.host); err == nil {
		return []netip.Addr{a.Unmap()}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", l.host) // one without an address has no way to it
	for _, a := range found {
		out = append(out, a.Unmap())
	}
	return out
}

// defaultInterfaces are those, by index, of the node's default routes.
func defaultInterfaces() map[int]bool {
	out := map[int]bool{}
	routes, _ := netlink.RouteList(nil, netlink.FAMILY_ALL) // without any, none
	for _, r := range routes {
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones > 0 {
				continue
			}
		}
		out[r.LinkIndex] = true
	}
	return out
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), ones), ok
}
