package radioset

import (
	"errors"
	"net"
	"slices"

	"github.com/vishvananda/netlink"

	"linktrial/internal/radiomark"
)

// Name marks the interfaces of radios that came with the agent's configuration, for the other
// programs of the machine, and takes the mark off those that came with an earlier one. They
// are changed in no other way.
func (k *Keeper) Name(names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" })
	var failed []error
	for _, n := range k.kept.Named {
		setUp := slices.ContainsFunc(k.kept.Radios, func(h *held) bool { return h.Interface == n })
		if !slices.Contains(names, n) && !setUp {
			failed = append(failed, mark(n, false))
		}
	}
	if !slices.Equal(k.kept.Named, names) {
		k.kept.Named = names
		failed = append(failed, k.save())
	}
	for _, n := range names {
		failed = append(failed, mark(n, true))
	}
	// Not by news, which is of the radios that are kept.
	if err := errors.Join(failed...); err != nil {
		k.log.Warn("radios are not marked as such, so that an orchestrator on this machine may announce itself over them", "reason", err)
	}
}

// mark marks an interface as a radio's, or no longer; one that is not connected is neither.
func mark(name string, radio bool) error {
	l, err := netlink.LinkByName(name)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.Attrs().Flags&net.FlagLoopback != 0 { // of an agent that tries things on one machine
		return nil
	}
	return radiomark.Set(l, radio)
}
