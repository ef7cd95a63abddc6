package radioset

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
)

// refuse says why a setting is not tried on a node with these interfaces, which has the
// radios that are kept; empty: it is.
func refuse(s *Setting, all []*linktrialv1.NodeInterface, kept []Setting, orchestrator []netip.Addr) string {
	at := slices.IndexFunc(all, func(i *linktrialv1.NodeInterface) bool { return i.Name == s.Interface })
	if at < 0 {
		var names []string
		for _, i := range all {
			names = append(names, i.Name)
		}
		return fmt.Sprintf("this machine has no interface %s; it has %s: connect the radio, or point at another one", s.Interface, strings.Join(names, ", "))
	}
	i := all[at]
	switch {
	case i.Kind == kindLoopback:
		return s.Interface + " is the loopback, which leads to this machine alone: point at another interface"
	case i.Control:
		return fmt.Sprintf("the way to the orchestrator goes over %s: as a radio it would cut this node off; point at another interface", s.Interface)
	case i.ConfiguredBy != "":
		return fmt.Sprintf("%s configures %s, and would change what is set here: have it leave the interface alone (%s), then try again", i.ConfiguredBy, s.Interface, release(i.ConfiguredBy, s.Interface))
	}
	for _, k := range kept {
		if k.Interface != s.Interface && k.Role != s.Role {
			return fmt.Sprintf("%s is the radio of a %s, and a node has one role: remove that radio, or set this one for a %[2]s", k.Interface, k.Role)
		}
	}
	for _, o := range all {
		if why := overlaps(s, o); why != "" {
			return why
		}
	}
	for _, r := range s.Routes {
		for _, a := range orchestrator {
			if r.To.Contains(a) {
				return fmt.Sprintf("the route to %s would lead packets to the orchestrator (%s) over the radio: leave it out", r.To, a)
			}
		}
	}
	return ""
}

// overlaps says that another interface has a network of a setting; empty: it does not.
func overlaps(s *Setting, o *linktrialv1.NodeInterface) string {
	if o.Name == s.Interface {
		return ""
	}
	for _, text := range o.Addresses {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().IsLinkLocalUnicast() || p.Addr().IsLoopback() {
			continue
		}
		if p.Overlaps(s.Address) {
			return fmt.Sprintf("%s is in the network of %s (%s), so packets to the radio would leave there: take an address of another network", s.Address, o.Name, text)
		}
		for _, r := range s.Routes {
			if p.Overlaps(r.To) {
				return fmt.Sprintf("the route to %s covers the network of %s (%s): leave it out", r.To, o.Name, text)
			}
		}
	}
	return ""
}

// maxRadios is how many radios a node of a role has: a relay one to either side.
func maxRadios(role radio.Role) int {
	if role == radio.RoleRelay {
		return 2
	}
	return 1
}
