package radioset

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/agents/netif"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/backoff"
	"linktrial/internal/radiomark"
)

// carrierWait is for how long an interface that was down is waited for: an adapter of
// Ethernet agrees with its peer within about 3 s.
const carrierWait = 4 * time.Second

// held is a radio that is kept, with what its interface was before.
type held struct {
	Setting
	// Trying: an order is under way. What is left of one that was interrupted is taken back.
	Trying bool `json:"trying,omitempty"`
	// Forwarding: packets that arrive at it were not passed on before, see [forward].
	Forwarding bool   `json:"forwarding,omitempty"`
	Before     before `json:"before"`
}

// before is what an interface was before a radio was set up on it.
type before struct {
	Boot    string  `json:"boot"` // of the kernel, which numbers interfaces
	Index   int     `json:"index"`
	Up      bool    `json:"up"`
	MTU     int     `json:"mtu"`
	Address bool    `json:"address,omitempty"` // it had the radio's
	Routes  []Route `json:"routes,omitempty"`  // that it had
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func (r *Route) netlink(index int) *netlink.Route {
	return &netlink.Route{LinkIndex: index, Dst: ipNet(r.To), Gw: r.Via.AsSlice()}
}

// look reads what an interface is before a radio is set up on it.
func (s *Setting) look(l netlink.Link, boot string) (before, error) {
	a := l.Attrs()
	out := before{Boot: boot, Index: a.Index, Up: a.Flags&net.FlagUp != 0, MTU: a.MTU}
	addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return out, fmt.Errorf("addresses of %s: %w", s.Interface, err)
	}
	out.Address = slices.ContainsFunc(addresses, func(x netlink.Addr) bool { p, ok := prefixOf(x.IPNet); return ok && p == s.Address })
	routes, err := netlink.RouteList(l, netlink.FAMILY_ALL)
	if err != nil {
		return out, fmt.Errorf("routes of %s: %w", s.Interface, err)
	}
	for _, r := range s.Routes {
		if slices.ContainsFunc(routes, func(x netlink.Route) bool {
			to, ok := prefixOf(x.Dst)
			via, _ := netip.AddrFromSlice(x.Gw)
			return ok && to == r.To && via.Unmap() == r.Via
		}) {
			out.Routes = append(out.Routes, r)
		}
	}
	return out, nil
}

// denied says of an error of the kernel what people can do about it.
func denied(what string, err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%s: this agent may not change interfaces (it lacks CAP_NET_ADMIN): start it by its service, or as root", what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// apply gives the interface what the setting says. try: another machine with the address
// is looked for first. It changes nothing that is so already.
func (s *Setting) apply(ctx context.Context, try bool) error {
	l, err := netlink.LinkByName(s.Interface)
	if err != nil {
		return fmt.Errorf("interface %s: %w", s.Interface, err)
	}
	a := l.Attrs()
	// First, so that this machine's orchestrator announces nothing on it from then on.
	if err := radiomark.Set(l, true); err != nil {
		return denied(s.Interface+" is not marked as a radio", err)
	}
	if s.MTU != 0 && a.MTU != s.MTU { // before it is up: some drivers take it only while the interface is down
		if err := netlink.LinkSetMTU(l, s.MTU); err != nil {
			return denied(fmt.Sprintf("%s does not take an MTU of %d bytes (it has %d)", s.Interface, s.MTU, a.MTU), err)
		}
	}
	if a.Flags&net.FlagUp == 0 {
		if err := netlink.LinkSetUp(l); err != nil {
			return denied(s.Interface+" does not come up", err)
		}
	}
	if try {
		s.awaitCarrier(ctx)
		mac, err := netif.Taken(ctx, &netif.Radio{Device: s.Interface, Address: s.Address.Addr()})
		if err != nil {
			return fmt.Errorf("whether another machine has %s is not known: %w", s.Address.Addr(), err)
		}
		if mac != "" {
			return fmt.Errorf("another machine on the link of %s has the address %s (%s): take another one", s.Interface, s.Address.Addr(), mac)
		}
	}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: ipNet(s.Address)}); err != nil && !errors.Is(err, unix.EEXIST) {
		return denied(fmt.Sprintf("%s does not take the address %s", s.Interface, s.Address), err)
	}
	for _, r := range s.Routes {
		if err := netlink.RouteAdd(r.netlink(a.Index)); err != nil && !errors.Is(err, unix.EEXIST) {
			return denied(fmt.Sprintf("the route to %s over %s", r.To, r.Via), err)
		}
	}
	return nil
}

// awaitCarrier waits until the interface has a carrier, for a moment.
func (s *Setting) awaitCarrier(ctx context.Context) {
	for end := time.Now().Add(carrierWait); time.Now().Before(end) && !s.carrier(); {
		if !backoff.Sleep(ctx, 50*time.Millisecond) {
			return
		}
	}
}

func (s *Setting) carrier() bool {
	l, err := netlink.LinkByName(s.Interface)
	return err == nil && l.Attrs().Flags&net.FlagRunning != 0
}

// takeBack makes the interface what it was before. One that has gone, or another one with
// its name, has nothing to give back.
func (h *held) takeBack(boot string) error {
	l, err := netlink.LinkByIndex(h.Before.Index)
	if err != nil || h.Before.Boot != boot {
		return nil
	}
	var failed []error
	note := func(what string, err error) {
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EADDRNOTAVAIL) { // it has gone already
			failed = append(failed, denied(what, err))
		}
	}
	failed = append(failed, h.forwardNoMore(l))
	for _, r := range h.Routes {
		if !slices.Contains(h.Before.Routes, r) {
			note(fmt.Sprintf("the route to %s is not removed", r.To), netlink.RouteDel(r.netlink(h.Before.Index)))
		}
	}
	if !h.Before.Address {
		note(fmt.Sprintf("the address %s is not removed", h.Address), netlink.AddrDel(l, &netlink.Addr{IPNet: ipNet(h.Address)}))
	}
	if !h.Before.Up {
		note(h.Interface+" is not set down", netlink.LinkSetDown(l))
	}
	if h.MTU != 0 && h.Before.MTU != h.MTU {
		note(fmt.Sprintf("the MTU is not %d bytes again", h.Before.MTU), netlink.LinkSetMTU(l, h.Before.MTU))
	}
	note(h.Interface+" is marked as a radio still", radiomark.Set(l, false))
	return errors.Join(failed...)
}

// forwardNoMore gives back what forward has switched on.
func (h *held) forwardNoMore(l netlink.Link) error {
	if !h.Forwarding {
		return nil
	}
	if err := setForwarding(l, false); err != nil {
		return denied("packets that arrive at "+h.Interface+" are passed on still", err)
	}
	h.Forwarding = false
	return nil
}

// words says what was done.
func (s *Setting) words() string {
	out := fmt.Sprintf("%s has the address %s", s.Interface, s.Address)
	if s.MTU != 0 {
		out += fmt.Sprintf(", an MTU of %d bytes", s.MTU)
	}
	for _, r := range s.Routes {
		out += fmt.Sprintf(", a route to %s over %s", r.To, r.Via)
	}
	if out += fmt.Sprintf(", and is the radio of this %s", s.Role); !s.carrier() {
		out += "; it has no carrier, so no other machine could be asked for the address"
	}
	return out
}

// without are interfaces as they are when radios are given back.
func without(all []*linktrialv1.NodeInterface, replaced []*held) []*linktrialv1.NodeInterface {
	for _, i := range all {
		for _, h := range replaced {
			if h.Interface == i.Name && !h.Before.Address {
				i.Addresses = slices.DeleteFunc(i.Addresses, func(a string) bool { return a == h.Address.String() })
			}
		}
	}
	return all
}
