package netif

import (
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Recorded is an interface of the node as it was at an earlier moment, with addresses and
// their networks.
type Recorded struct {
	Device    string
	MTU       int
	Addresses []netip.Prefix
}

// Toward is the radio that leads to another node where none of those that are known does:
// the interface that has, or had when it was recorded, an address in the network of the
// node, else that of the route to it. Nothing was recorded where recorded is nil.
func Toward(to netip.Addr, known []Radio, recorded []Recorded) (r Radio, found bool) {
	to = to.Unmap()
	if to.IsLinkLocalUnicast() {
		return r, false // every interface has their network
	}
	if recorded == nil {
		recorded = interfaces()
	}
	r, found = inNetwork(to, recorded)
	if !found {
		r, found = ByRoute(to)
	}
	isKnown := slices.ContainsFunc(known, func(k Radio) bool { return k.Device == r.Device })
	return r, found && !isKnown
}

// inNetwork finds the interface with the narrowest network that an address is in.
func inNetwork(to netip.Addr, all []Recorded) (r Radio, found bool) {
	bits := 0 // an address without a network leads nowhere
	for _, i := range all {
		for _, a := range i.Addresses {
			if a.Contains(to) && a.Bits() > bits && a.Addr() != to {
				r, found, bits = Radio{Device: i.Device, Address: a.Addr()}, true, a.Bits()
			}
		}
	}
	return r, found
}

// ByRoute finds the interface by which the kernel sends to an address, and the address
// that it sends from; not where the address is this node's own.
func ByRoute(to netip.Addr) (r Radio, found bool) {
	routes, err := netlink.RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 || routes[0].Src == nil {
		return r, false
	}
	i, err := net.InterfaceByIndex(routes[0].LinkIndex)
	if err != nil || i.Flags&net.FlagLoopback != 0 {
		return r, false
	}
	from, _ := netip.AddrFromSlice(routes[0].Src)
	return Radio{Device: i.Name, Address: from.Unmap()}, true
}

// interfaces are the node's as they are now.
func interfaces() (out []Recorded) {
	all, _ := net.Interfaces() // without any, none
	for _, i := range all {
		r := Recorded{Device: i.Name, MTU: i.MTU}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				r.Addresses = append(r.Addresses, p)
			}
		}
		out = append(out, r)
	}
	return out
}
