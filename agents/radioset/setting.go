package radioset

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
)

// Setting is one radio of a node, as a person set it up.
type Setting struct {
	Interface string       `json:"interface"`
	Address   netip.Prefix `json:"address"` // of the node, with the length of the radio's network
	MTU       int          `json:"mtu,omitempty"`
	Routes    []Route      `json:"routes,omitempty"`
	Role      radio.Role   `json:"role"`
	Profile   string       `json:"profile,omitempty"` // empty: the radio has no name
}

// Route is a network that is reached over another node.
type Route struct {
	To  netip.Prefix `json:"to"`
	Via netip.Addr   `json:"via"`
}

// Bounds of a setting. The smallest MTU is that of RFC 791, the largest what an interface
// of Ethernet's kind takes.
const (
	minMTU    = 68
	maxMTU    = 65535
	maxRoutes = 16
	maxName   = 128 // of a profile
)

// parse reads a setting, and refuses what cannot be right on any node.
func parse(r *linktrialv1.NodeRadio) (s Setting, err error) {
	s = Setting{Interface: r.GetInterface(), MTU: int(r.GetMtuBytes()), Role: radio.Role(r.GetRole()), Profile: r.GetProfile()}
	if s.Interface == "" || strings.ContainsAny(s.Interface, "/ \t\n\x00") || len(s.Interface) >= unix.IFNAMSIZ {
		return s, fmt.Errorf("interface %.100q, expected the name of a network interface of at most %d characters", s.Interface, unix.IFNAMSIZ-1)
	}
	if s.Address, err = netip.ParsePrefix(r.GetAddress()); err != nil || !usable(s.Address) {
		return s, fmt.Errorf("address %.100q, expected an address of one node with the length of its network, such as 10.77.0.1/24", r.GetAddress())
	}
	if s.MTU != 0 && (s.MTU < minMTU || s.MTU > maxMTU) {
		return s, fmt.Errorf("MTU %d, expected %d to %d bytes, or 0 to leave it as it is", s.MTU, minMTU, maxMTU)
	}
	if !slices.Contains(radio.Roles, s.Role) {
		return s, fmt.Errorf("role %.40q, expected client, relay or server", s.Role)
	}
	if len(s.Profile) > maxName {
		return s, fmt.Errorf("a profile's name of %d bytes, expected at most %d", len(s.Profile), maxName)
	}
	if len(r.GetRoutes()) > maxRoutes {
		return s, fmt.Errorf("%d routes, expected at most %d", len(r.GetRoutes()), maxRoutes)
	}
	for _, x := range r.GetRoutes() {
		one, err := s.parseRoute(x)
		if err != nil {
			return s, err
		}
		s.Routes = append(s.Routes, one)
	}
	return s, nil
}

func (s *Setting) parseRoute(x *linktrialv1.RadioRoute) (r Route, err error) {
	if r.To, err = netip.ParsePrefix(x.To); err != nil {
		a, aerr := netip.ParseAddr(x.To)
		if aerr != nil {
			return r, fmt.Errorf("route to %.100q, expected a network such as 10.78.0.0/24", x.To)
		}
		r.To = netip.PrefixFrom(a, a.BitLen())
	}
	r.To = r.To.Masked()
	if r.To.Bits() == 0 || r.To.Addr().Is4() != s.Address.Addr().Is4() {
		return r, fmt.Errorf("route to %s, expected a network of the same version of IP as %s, and not all addresses", r.To, s.Address)
	}
	if r.Via, err = netip.ParseAddr(x.Via); err != nil || !s.Address.Masked().Contains(r.Via) || r.Via == s.Address.Addr() {
		return r, fmt.Errorf("route over %.100q, expected another node's address in %s", x.Via, s.Address.Masked())
	}
	return r, nil
}

// usable reports whether a node can have an address: it is no group's, and neither the
// first nor the last of its network, which are the network's own and the broadcast address
// (RFC 1122, section 3.2.1.3; RFC 3021 for networks of two addresses).
func usable(p netip.Prefix) bool {
	a := p.Addr()
	if a.Zone() != "" || a.Is4In6() || !a.IsGlobalUnicast() || p.Bits() < 8 {
		return false
	}
	if !a.Is4() || p.Bits() >= 31 {
		return true
	}
	last := a.As4()
	for bit := p.Bits(); bit < 32; bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	return a != p.Masked().Addr() && a != netip.AddrFrom4(last)
}

// proto is the setting as it is reported.
func (s *Setting) proto() *linktrialv1.NodeRadio {
	out := &linktrialv1.NodeRadio{Interface: s.Interface, Address: s.Address.String(), MtuBytes: int32(s.MTU), Role: string(s.Role), Profile: s.Profile}
	for _, r := range s.Routes {
		out.Routes = append(out.Routes, &linktrialv1.RadioRoute{To: r.To.String(), Via: r.Via.String()})
	}
	return out
}
