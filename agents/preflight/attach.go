package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/agents/netif"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
)

var attachCheck = nodeCheck{checkkind.Attach, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	if c.Emulated { // the emulator attaches its own
		return nil
	}
	return one(c.checkAttach())
}, true}

// checkAttach compares the node with the attach section of the radio's profile.
func (c Config) checkAttach() *linktrialv1.Check {
	check := &linktrialv1.Check{Expected: "as the profile of the radio says",
		Meaning: "the node is set up otherwise than the radio needs it: packets take another way, or none"}
	p := c.Profile
	if p == nil || p.Attach == nil {
		name := "this node"
		if p != nil {
			name = "radio " + p.Name
		}
		check.State, check.Found = notChecked, "the profile does not state how "+name+" is attached"
		check.Remedy = "add an attach section to the radio's profile"
		return check
	}
	want := p.Attach.For(c.Role)
	if want.Interface == "" {
		want.Interface = c.Device
	}
	found, err := readAttachment(want.Interface, want.Routes)
	if err != nil {
		check.State, check.Found, check.Remedy = unknown, err.Error(), "look at 'ip address' and 'ip route' on the node"
		return check
	}
	found.agent = c.Device
	return judgeAttach(check, p.Attach, want, found)
}

// attachment is how a node is set up.
type attachment struct {
	agent      string // interface that the agent is configured with
	there      bool   // the radio's interface is
	mtu        int
	addresses  []string        // with their prefixes
	routes     map[string]bool // by [radio.Route.To], those that lead as wanted
	forwarding bool
}

func readAttachment(device string, routes []radio.Route) (*attachment, error) {
	f := &attachment{routes: map[string]bool{}, forwarding: netif.Forwards(device)}
	l, err := netlink.LinkByName(device)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.there, f.mtu = true, l.Attrs().MTU
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		f.addresses = append(f.addresses, a.IPNet.String())
	}
	for _, r := range routes {
		_, dst, err := net.ParseCIDR(r.To)
		if err != nil {
			continue // the profile's reader refuses it
		}
		family := netlink.FAMILY_V4
		if dst.IP.To4() == nil {
			family = netlink.FAMILY_V6
		}
		have, err := netlink.RouteListFiltered(family, &netlink.Route{Dst: dst, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_DST|netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, err
		}
		for _, h := range have {
			if h.LinkIndex == l.Attrs().Index && (r.Via == "" || h.Gw.Equal(net.ParseIP(r.Via))) {
				f.routes[r.To] = true
			}
		}
	}
	return f, nil
}

func judgeAttach(check *linktrialv1.Check, a *radio.Attach, want radio.AttachRole, f *attachment) *linktrialv1.Check {
	var good, bad, remedies []string
	wrong := func(found, remedy string) { bad, remedies = append(bad, found), append(remedies, remedy) }
	if !f.there {
		check.State, check.Found = failed, fmt.Sprintf("there is no interface %s; the radio is reached so: %s", want.Interface, a.Reach)
		check.Remedy = "connect the radio as said, switch it on, and give its interface that name"
		return check
	}
	good = append(good, "interface "+want.Interface)
	if f.agent != want.Interface {
		wrong("the agent uses interface "+f.agent+", the radio is at "+want.Interface, "start the agent with --device "+want.Interface)
	}
	if p, err := netip.ParsePrefix(want.Address); err == nil {
		if hasAddress(f.addresses, p) {
			good = append(good, p.String())
		} else {
			wrong("address "+p.String()+" is missing, there is "+orNone(f.addresses), fmt.Sprintf("'ip address add %s dev %s'", p, want.Interface))
		}
	}
	switch {
	case a.MTUBytes == 0:
	case f.mtu == a.MTUBytes:
		good = append(good, fmt.Sprintf("MTU %d bytes", f.mtu))
	default:
		wrong(fmt.Sprintf("MTU %d bytes, not %d", f.mtu, a.MTUBytes), fmt.Sprintf("'ip link set dev %s mtu %d'", want.Interface, a.MTUBytes))
	}
	for _, r := range want.Routes {
		way := "to " + r.To
		command := fmt.Sprintf("'ip route add %s dev %s'", r.To, want.Interface)
		if r.Via != "" {
			way += " by " + r.Via
			command = fmt.Sprintf("'ip route add %s via %s dev %s'", r.To, r.Via, want.Interface)
		}
		if f.routes[r.To] {
			good = append(good, "route "+way)
		} else {
			wrong("no route "+way, command)
		}
	}
	if w := want.Forwarding; w != nil {
		word, value := "off", 0
		if *w {
			word, value = "on", 1
		}
		if f.forwarding == *w {
			good = append(good, "forwarding "+word)
		} else {
			wrong("forwarding is not "+word, fmt.Sprintf("'sysctl net.ipv4.ip_forward=%d'", value))
		}
	}
	check.State, check.Found, check.Remedy = ok, strings.Join(good, ", "), strings.Join(remedies, "; ")
	if len(bad) > 0 {
		check.State, check.Found = failed, strings.Join(bad, "; ")
	}
	return check
}

func hasAddress(addresses []string, want netip.Prefix) bool {
	for _, s := range addresses {
		if p, err := netip.ParsePrefix(s); err == nil && p == want {
			return true
		}
	}
	return false
}
