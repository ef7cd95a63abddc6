package preflight

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// cable adds a cable of which both ends are up.
func cable(h *netlink.Handle, l *netlink.Veth) error {
	if err := h.LinkAdd(l); err != nil {
		return err
	}
	far, err := h.LinkByName(l.PeerName)
	if err != nil {
		return err
	}
	return errors.Join(h.LinkSetUp(far), h.LinkSetUp(l))
}

// insideOf is how to do something inside one of the namespaces of [wire].
func insideOf(t *testing.T, node int) func(func()) {
	return func(f func()) {
		t.Helper()
		name := fmt.Sprintf("ltpf-%d-%d", os.Getpid(), node)
		if err := process.InNamespace(namespace.Path(name), func() error { f(); return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// A peer without contact is asked by few probes, and for nothing else.
func TestAwayPeer(t *testing.T) {
	inside, _ := wire(t)
	for address, state := range map[string]linktrialv1.CheckState{"10.99.0.2": ok, "10.99.0.7": failed} {
		r := look(t, inside, &linktrialv1.PreflightRequest{PairsOnly: true, MtuBytes: 1500, Peers: []*linktrialv1.PreflightPeer{{Name: "server", RadioAddress: address, Away: true}}})
		expect(t, of(t, r, checkkind.Reach.Name), state)
		expect(t, of(t, r, checkkind.MTU.Name), notChecked)
		if l := r.Links[0]; l.Probes != 3 || l.Reachable != (state == ok) {
			t.Errorf("link %v", l)
		}
	}
}

func TestJudgeDuplicate(t *testing.T) {
	expect(t, judgeDuplicate("10.77.0.1", "", nil), ok, "no other machine")
	expect(t, judgeDuplicate("10.77.0.1", "02:00:00:00:00:aa", nil), failed, "10.77.0.1, too: hardware address 02:00:00:00:00:aa")
	expect(t, judgeDuplicate("10.77.0.1", "", errors.New("it may not")), unknown, "it may not")
}

// The way to a peer past the radio is named, before a probe says that all is well. A relay
// reaches a peer of its other radio by the route.
func TestWayToPeer(t *testing.T) {
	inside, set := wire(t)
	pairs := &linktrialv1.PreflightRequest{Peers: peer, PairsOnly: true, MtuBytes: 1500}
	other := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "wired0"}, PeerName: "wired1"}
	set(0, func(h *netlink.Handle, _ netlink.Link) error {
		err := cable(h, other)
		if err == nil {
			_, dst, _ := net.ParseCIDR("10.99.0.2/32")
			err = h.RouteAdd(&netlink.Route{LinkIndex: other.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK})
		}
		return err
	})
	expect(t, of(t, look(t, inside, pairs), checkkind.Reach.Name), failed, "leave through wired0, not radio0", "ip route get 10.99.0.2")
	set(0, func(h *netlink.Handle, _ netlink.Link) error { return h.LinkDel(other) })
	expect(t, of(t, look(t, inside, pairs), checkkind.Reach.Name), ok)

	// The agent knows its first radio; the peer is at the second one.
	set(0, func(h *netlink.Handle, _ netlink.Link) error {
		first := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "first0", MTU: 1500}, PeerName: "first1"}
		return errors.Join(cable(h, first), h.AddrAdd(first, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("10.88.0.1"), Mask: net.CIDRMask(24, 32)}}))
	})
	for role, state := range map[radio.Role]linktrialv1.CheckState{radio.RoleRelay: ok, radio.RoleClient: failed} {
		r := look(t, inside, pairs, func(c *Config) { c.Device, c.Address, c.Role = "first0", "10.88.0.1", role })
		expect(t, of(t, r, checkkind.Reach.Name), state)
	}
}

// An IPv6 address that another machine on the link has as well cannot be used, and the
// check of the interface says so.
func TestUnusableAddress(t *testing.T) {
	inside, set := wire(t)
	for i, in := range []func(func()){inside, insideOf(t, 1)} {
		in(func() {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/radio0/disable_ipv6", []byte("0"), 0); err != nil {
				t.Error(i, err)
			}
		})
	}
	for _, i := range []int{1, 0} { // the other one had it before
		set(i, func(h *netlink.Handle, l netlink.Link) error {
			return h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("fd99::1"), Mask: net.CIDRMask(64, 128)}, Flags: i * unix.IFA_F_NODAD})
		})
	}
	expect(t, of(t, look(t, inside, &linktrialv1.PreflightRequest{}, func(c *Config) { c.Address = "fd99::1" }), checkkind.Radio.Name), failed, "fd99::1 cannot be used", "another machine")
}

// Each radio of a relay is checked: its interface, who else uses it, who else has its address.
func TestMoreRadios(t *testing.T) {
	inside, set := wire(t)
	set(0, func(h *netlink.Handle, _ netlink.Link) error {
		second := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "second0", MTU: 1200}, PeerName: "second1"}
		return errors.Join(cable(h, second), h.AddrAdd(second, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("10.88.0.2"), Mask: net.CIDRMask(24, 32)}}))
	})
	all := func(r Report, kind string) (out []*linktrialv1.Check) {
		for _, c := range r.Checks {
			if c.Kind == kind {
				out = append(out, c)
			}
		}
		return out
	}
	for address, state := range map[string]linktrialv1.CheckState{"10.88.0.2": ok, "10.88.0.7": failed} {
		r := look(t, inside, &linktrialv1.PreflightRequest{Peers: peer, MtuBytes: 1500}, func(c *Config) { c.Role, c.More = radio.RoleRelay, []Radio{{"second0", address}} })
		interfaces := all(r, checkkind.Radio.Name)
		if len(interfaces) != 2 || len(all(r, checkkind.Traffic.Name)) != 2 || len(all(r, checkkind.Address.Name)) != 2 {
			t.Fatalf("checks: %v", r.Checks)
		}
		expect(t, interfaces[0], ok, "radio0 is up")
		expect(t, interfaces[1], state, "second0 is up", "MTU 1200 bytes")
	}
}
