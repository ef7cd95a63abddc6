package preflight

import (
	"context"
	"fmt"
	"net/netip"

	"linktrial/agents/netif"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
)

// way is how packets to a peer leave this node.
type way struct {
	device, from string
	detour       string // why they do not leave as those of a run must; empty: they do
}

// wayTo is the way that drivers' packets to a peer take: through the radio's interface, and
// on a relay, which may have several radios, by the route.
func (c Config) wayTo(peer string) way {
	w := way{device: c.Device, from: c.Address}
	r, to, ok := c.radio(peer)
	if !ok || c.Emulated || c.Device == "" {
		return w
	}
	if c.Role == radio.RoleRelay {
		r.Near = []netip.Addr{to}
	} else {
		r.Peers = []netip.Addr{to}
	}
	s, err := netif.Read(&r)
	if err != nil || !s.There {
		return w // the check of the interface says so
	}
	if len(s.Detours) > 0 {
		w.detour = s.Detours[0]
		return w
	}
	if c.Role == radio.RoleRelay {
		w.takeRoute(to)
	}
	return w
}

// takeRoute takes the interface of the route to a peer, and the address that the kernel
// sends from there.
func (w *way) takeRoute(to netip.Addr) {
	if to.IsLinkLocalUnicast() {
		return // only the interface's own link has it
	}
	if r, found := netif.ByRoute(to); found && r.Device != w.device {
		w.device, w.from = r.Device, r.Address.String()
	}
}

// radio is the node's, with the address of a peer.
func (c Config) radio(peer string) (r netif.Radio, to netip.Addr, ok bool) {
	own, err := netip.ParseAddr(c.Address)
	to, err2 := netip.ParseAddr(peer)
	return netif.Radio{Device: c.Device, Address: own}, to.Unmap().WithZone(""), err == nil && err2 == nil
}

// checkUse adds to the check of the interface why its address cannot be used.
func (c Config) checkUse(check *linktrialv1.Check) {
	r, _, ok := c.radio(c.Address)
	if !ok {
		return
	}
	s, err := netif.Read(&r)
	if err != nil || s.Unusable == "" {
		return
	}
	check.State = failed
	check.Found = fmt.Sprintf("the address %s cannot be used: %s; %s", c.Address, s.Unusable, check.Found)
	check.Remedy = fmt.Sprintf("where the kernel still looks (tentative), start the preflight again after some seconds; where another machine has the address (dadfailed), give one of them another one, and this interface its address anew ('ip address' on %s)", c.Device)
}

// checkDuplicate asks on the radio's link whether another machine has the node's address.
// It takes 0.6 s.
func (c Config) checkDuplicate(ctx context.Context) *linktrialv1.Check {
	r, _, ok := c.radio(c.Address)
	if !ok || c.Emulated || c.Device == "" {
		return nil
	}
	mac, err := netif.Duplicate(ctx, &r)
	return judgeDuplicate(c.Address, mac, err)
}

func judgeDuplicate(address, mac string, err error) *linktrialv1.Check {
	check := &linktrialv1.Check{Kind: checkkind.Address.Name, State: ok, Found: "no other machine on the radio's link has " + address, Expected: "no other machine has the node's address",
		Meaning: "packets for this node reach the other machine, now or when it is switched on"}
	switch {
	case err != nil:
		check.State, check.Found = unknown, err.Error()
		check.Remedy = "give the agent CAP_NET_RAW, and see the check of the radio's interface"
	case mac != "":
		check.State, check.Found = failed, fmt.Sprintf("another machine on the radio's link has %s, too: hardware address %s", address, mac)
		check.Remedy = "find the machine by its hardware address, and give one of the two another address"
	}
	return check
}
