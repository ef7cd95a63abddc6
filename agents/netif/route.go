package netif

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// readRoutes looks which way packets to the other nodes take from the radio's address. A
// driver that does not bind its sockets to the interface sends as the kernel chooses, by
// routes and rules of the whole node: over a wired network beside the radio where one of
// them says so, and no value tells.
func (s *State) readRoutes(h *netlink.Handle, r *Radio, addresses []netlink.Addr) {
	for _, to := range r.Peers {
		if d := detour(h, r, s.Index, to); d != "" {
			s.Detours = append(s.Detours, d)
		}
	}
	for _, to := range r.Near {
		if !near(addresses, to) {
			continue
		}
		if d := detour(h, r, s.Index, to); d != "" {
			s.Detours = append(s.Detours, d)
		}
	}
}

// near reports whether an address is in a network of one of the interface's addresses.
func near(addresses []netlink.Addr, to netip.Addr) bool {
	for _, a := range addresses {
		if a.IPNet != nil && a.Contains(net.IP(to.AsSlice())) {
			return true
		}
	}
	return false
}

// routed reports whether the node's routes decide how packets to a node leave: who sends
// to a link-local address names the interface, and to one of the other version of IP no
// packet can be sent.
func routed(r *Radio, to netip.Addr) bool {
	return !to.IsLinkLocalUnicast() && to.Is4() == r.Address.Unmap().Is4()
}

// detour says how packets to a node leave otherwise than through the interface with an
// index; empty: they do not.
func detour(h *netlink.Handle, r *Radio, index int, to netip.Addr) string {
	if to = to.Unmap(); !routed(r, to) {
		return ""
	}
	asked := fmt.Sprintf("ip route get %s from %s", to, r.Address.WithZone(""))
	found, err := h.RouteGetWithOptions(to.AsSlice(), &netlink.RouteGetOptions{SrcAddr: r.Address.WithZone("").AsSlice()})
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return "" // the interface goes at this moment, which there is a notice of
	case err != nil:
		return fmt.Sprintf("there is no route to %s (%s: %s): add one through %s", to, asked, err, r.Device)
	}
	for _, f := range found {
		switch {
		case f.LinkIndex == index:
		case f.Type == unix.RTN_LOCAL:
			return fmt.Sprintf("packets to %s stay on this node, which has that address, too (%s: local)", to, asked)
		default:
			other := fmt.Sprintf("the interface with index %d", f.LinkIndex)
			if l, err := h.LinkByIndex(f.LinkIndex); err == nil {
				other = l.Attrs().Name
			}
			way := "dev " + other
			if f.Gw != nil {
				way = fmt.Sprintf("via %s %s", f.Gw, way)
			}
			return fmt.Sprintf("packets to %s leave through %s, not %s (%s: %s): change this node's routes so that it says dev %s", to, other, r.Device, asked, way, r.Device)
		}
	}
	return ""
}
