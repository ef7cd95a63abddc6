package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"linktrial/agents/netif"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
)

var radioCheck = nodeCheck{checkkind.Radio, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	return c.checkRadios(int(w.MtuBytes))
}, true}

// checkRadios checks the interface of each radio. want is the MTU of the first one in
// bytes, 0 where it is not known.
func (c Config) checkRadios(want int) (out []*linktrialv1.Check) {
	for _, one := range c.each() {
		out = append(out, one.checkRadio(want))
		want = 0
	}
	return out
}

// checkRadio checks the radio's interface. want is the MTU of the radio in
// bytes, 0 where it is not known.
func (c Config) checkRadio(want int) *linktrialv1.Check {
	check := &linktrialv1.Check{State: ok, Expected: fmt.Sprintf("interface %s is up and has %s", c.Device, c.Address),
		Meaning: "nothing of a trial leaves this node, or it leaves by another way"}
	if want > 0 {
		check.Expected += fmt.Sprintf(" and an MTU of %d bytes", want)
	}
	l, err := netlink.LinkByName(c.Device)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		check.State, check.Found = failed, fmt.Sprintf("there is no interface %s; there are %s", c.Device, strings.Join(interfaceNames(), ", "))
		check.Remedy = "connect the radio and switch it on, or name its interface to the agent (--device, --more-radio)"
		return check
	}
	if err != nil {
		check.State, check.Found, check.Remedy = unknown, err.Error(), "look at 'ip link' on the node"
		return check
	}
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		check.State, check.Found, check.Remedy = unknown, err.Error(), "look at 'ip address' on the node"
		return check
	}
	var ips []net.IP
	for _, a := range addrs {
		ips = append(ips, a.IP)
	}
	a := l.Attrs()
	judgeRadio(check, radioInterface{device: c.Device, up: a.Flags&net.FlagUp != 0, running: a.Flags&net.FlagRunning != 0, mtu: a.MTU, addresses: ips}, c.Address, want)
	c.checkUse(check)
	return check
}

// radioInterface is what matters of the radio's interface.
type radioInterface struct {
	device      string
	up, running bool // switched on; and something is at its other end
	mtu         int
	addresses   []net.IP
}

func judgeRadio(check *linktrialv1.Check, f radioInterface, address string, want int) {
	var found, remedies []string
	raise := func(s linktrialv1.CheckState) {
		if check.State != failed {
			check.State = s
		}
	}
	switch {
	case !f.up:
		raise(failed)
		found, remedies = append(found, f.device+" is down"), append(remedies, "'ip link set dev "+f.device+" up'")
	case !f.running:
		raise(failed)
		found, remedies = append(found, f.device+" has no carrier"), append(remedies, "see that the radio is on and its cable is in")
	default:
		found = append(found, f.device+" is up")
	}
	wanted, _ := netip.ParseAddr(address)
	if slices.ContainsFunc(f.addresses, net.IP(wanted.AsSlice()).Equal) {
		found = append(found, "has "+address)
	} else {
		raise(failed)
		var have []string
		for _, a := range f.addresses {
			have = append(have, a.String())
		}
		found = append(found, "has not the address "+address+" but "+orNone(have))
		remedies = append(remedies, "give the interface the address ("+netif.HowToAdd(wanted, f.device)+"), or tell the agent the right one (--radio-address, --more-radio)")
	}
	found = append(found, fmt.Sprintf("MTU %d bytes", f.mtu))
	switch {
	case want == 0 || f.mtu == want:
	case f.mtu < want:
		raise(failed)
		check.Meaning = "packets are smaller than the radio could carry, so values do not compare with those of other trials"
		remedies = append(remedies, fmt.Sprintf("'ip link set dev %s mtu %d', or correct the MTU in the radio's profile", f.device, want))
	default:
		raise(warning)
		check.Meaning = "packets larger than the radio carries are fragmented or lost on the way"
		remedies = append(remedies, fmt.Sprintf("'ip link set dev %s mtu %d', or correct the MTU in the radio's profile", f.device, want))
	}
	check.Found, check.Remedy = strings.Join(found, ", "), strings.Join(remedies, "; ")
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

// interfaceNames are those of the node's interfaces, without the loopback.
func interfaceNames() []string {
	links, err := netlink.LinkList()
	if err != nil {
		return []string{"none that can be listed"}
	}
	var out []string
	for _, l := range links {
		if l.Attrs().Flags&net.FlagLoopback == 0 {
			out = append(out, l.Attrs().Name)
		}
	}
	if len(out) == 0 {
		return []string{"none"}
	}
	return out
}

// interfaceMTU in bytes; 0 where it is not known.
func interfaceMTU(device string) int {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return 0
	}
	return l.Attrs().MTU
}
