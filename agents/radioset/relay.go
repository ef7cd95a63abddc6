package radioset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"linktrial/agents/netif"
	"linktrial/internal/radio"
)

// between returns the two radios of a relay between which packets are passed on; nil: the
// node is none, or has one radio, which reaches both sides by itself. IPv6 has no such
// setting of one interface over netlink.
func between(radios []*held) (out []*held) {
	for _, h := range radios {
		if !h.Trying && h.Role == radio.RoleRelay && h.Address.Addr().Is4() {
			out = append(out, h)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// forward has the kernel pass on packets that arrive at the two radios of a relay, and at
// others no longer, where this was switched on here. It saves before it changes anything, so
// that whatever happens it is given back.
func forward(radios []*held, boot string, save func() error) error {
	both := between(radios)
	var failed []error
	for _, h := range radios {
		l, err := netlink.LinkByName(h.Interface)
		if err != nil || l.Attrs().Index != h.Before.Index || h.Before.Boot != boot {
			continue // it is not connected
		}
		if !slices.Contains(both, h) {
			failed = append(failed, h.forwardNoMore(l))
			continue
		}
		if netif.Forwards(h.Interface) {
			continue
		}
		h.Forwarding = true
		if err = save(); err == nil {
			err = setForwarding(l, true)
		}
		if err != nil {
			failed = append(failed, denied("packets that arrive at "+h.Interface+" are not passed on", err))
		}
	}
	return errors.Join(failed...)
}

// forwarded says between which radios packets are passed on; empty: none are.
func forwarded(radios []*held) string {
	both := between(radios)
	if both == nil {
		return ""
	}
	return fmt.Sprintf("; packets are passed on between %s and %s", both[0].Interface, both[1].Interface)
}
