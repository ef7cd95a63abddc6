package fleet

import (
	"cmp"
	"net/netip"
	"slices"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
)

// radioNetworks are the networks that are proposed for radios, the first that no node uses
// otherwise: private ones (RFC 1918) that sites seldom have.
var radioNetworks = func() (out []netip.Prefix) {
	for third := range 100 {
		out = append(out, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(third), 0}), 24))
	}
	for third := range 100 {
		out = append(out, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(third), 0}), 24))
	}
	return out
}()

// hostOf is the number of a role's node in the radio's network.
var hostOf = map[radio.Role]byte{radio.RoleClient: 1, radio.RoleRelay: 2, radio.RoleServer: 3}

// NodeRadios is what of a node a proposal depends on.
type NodeRadios struct {
	Name, Role, RadioAddress string
	Interfaces               []*linktrialv1.NodeInterface
	Radios                   []*linktrialv1.NodeRadio
}

// role is that of the node's radio; empty: it has none.
func (n *NodeRadios) role() string {
	if len(n.Radios) > 0 {
		return n.Radios[0].Role
	}
	if n.RadioAddress != "" {
		return n.Role
	}
	return ""
}

// Propose proposes a radio for a node: a role that no other node's radio has, an address
// in the network of the radios that there are, and routes past a relay that has a radio to
// either side. What is given, role and interface, stays.
func Propose(all []NodeRadios, node, role, iface string) *linktrialv1.NodeRadio {
	at := slices.IndexFunc(all, func(n NodeRadios) bool { return n.Name == node })
	if at < 0 {
		return &linktrialv1.NodeRadio{Interface: iface, Role: role}
	}
	n := &all[at]
	role = cmp.Or(role, proposedRole(all, n))
	first, second := networks(all, node)
	out := &linktrialv1.NodeRadio{Interface: iface, Role: role}
	from, other := first, second
	relay := relayOf(all)
	switch {
	case role == string(radio.RoleRelay) && isSecond(n, iface),
		role == string(radio.RoleServer) && relay != nil && len(relay.Radios) == 2 && relay.Name != node:
		from, other = second, first
	}
	out.Address = netip.PrefixFrom(freeHost(all, node, from, hostOf[radio.Role(role)]), from.Bits()).String()
	if relay == nil || relay.Name == node || len(relay.Radios) < 2 || role == string(radio.RoleRelay) {
		return out
	}
	for _, r := range relay.Radios {
		if p, err := netip.ParsePrefix(r.Address); err == nil && p.Masked() == from {
			out.Routes = append(out.Routes, &linktrialv1.RadioRoute{To: other.String(), Via: p.Addr().String()})
		}
	}
	return out
}

// isSecond reports whether an interface is that of a second radio of the node.
func isSecond(n *NodeRadios, iface string) bool {
	return iface != "" && len(n.Radios) > 0 && n.Radios[0].Interface != iface
}

func relayOf(all []NodeRadios) *NodeRadios {
	for i := range all {
		if all[i].role() == string(radio.RoleRelay) {
			return &all[i]
		}
	}
	return nil
}

// proposedRole is the node's own where no other node's radio has that, else the first that
// none has: a link has a client and a server before it has a relay.
func proposedRole(all []NodeRadios, n *NodeRadios) string {
	taken := func(role string) bool {
		return slices.ContainsFunc(all, func(o NodeRadios) bool { return o.Name != n.Name && o.role() == role })
	}
	for _, role := range []string{n.role(), n.Role, string(radio.RoleClient), string(radio.RoleServer), string(radio.RoleRelay)} {
		if role != "" && !taken(role) {
			return role
		}
	}
	return cmp.Or(n.Role, string(radio.RoleClient))
}

// networks are that of the radios and, for the other side of a relay, a second one.
func networks(all []NodeRadios, node string) (first, second netip.Prefix) {
	var there []netip.Prefix
	add := func(n *NodeRadios) {
		for _, r := range n.Radios {
			if p, err := netip.ParsePrefix(r.Address); err == nil && p.Addr().Is4() && p.Bits() <= 30 && !slices.Contains(there, p.Masked()) {
				there = append(there, p.Masked())
			}
		}
	}
	if relay := relayOf(all); relay != nil && (relay.Name == node || len(relay.Radios) == 2) {
		add(relay) // it has both, in their order
	}
	for i := range all {
		if all[i].Name != node {
			add(&all[i])
		}
	}
	for _, p := range radioNetworks {
		if len(there) >= 2 {
			break
		}
		if !used(all, p) && !slices.ContainsFunc(there, p.Overlaps) {
			there = append(there, p)
		}
	}
	if len(there) < 2 { // every network that could be proposed is in use: the person takes another one
		there = append(there, radioNetworks[0], radioNetworks[1])
	}
	return there[0], there[1]
}

// used reports whether an interface of a node that is no radio's is in a network.
func used(all []NodeRadios, p netip.Prefix) bool {
	for i := range all {
		for _, x := range all[i].Interfaces {
			if slices.ContainsFunc(all[i].Radios, func(r *linktrialv1.NodeRadio) bool { return r.Interface == x.Name }) {
				continue
			}
			for _, a := range x.Addresses {
				if o, err := netip.ParsePrefix(a); err == nil && o.Overlaps(p) {
					return true
				}
			}
		}
	}
	return false
}

// freeHost is the address with a number in a network, or the first after all roles' that no
// other node's radio has.
func freeHost(all []NodeRadios, node string, in netip.Prefix, number byte) netip.Addr {
	taken := func(a netip.Addr) bool {
		return slices.ContainsFunc(all, func(n NodeRadios) bool {
			own := n.RadioAddress == a.String()
			return n.Name != node && (own || slices.ContainsFunc(n.Radios, func(r *linktrialv1.NodeRadio) bool {
				p, err := netip.ParsePrefix(r.Address)
				return err == nil && p.Addr() == a
			}))
		})
	}
	base := in.Addr().As4()
	at := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{base[0], base[1], base[2], base[3] + n}) }
	if a := at(number); in.Contains(a) && !taken(a) {
		return a
	}
	for n := byte(4); n < 255; n++ {
		if a := at(n); in.Contains(a) && !taken(a) {
			return a
		}
	}
	return at(number)
}
