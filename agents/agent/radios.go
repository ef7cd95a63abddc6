package agent

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"

	"linktrial/agents/netif"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// findRadios are the node's radios that this run uses: that of --device, the second one
// of a topology that has them, those of --more-radio, and on a relay those that lead to the
// other nodes. Nil without --device.
func (x *execution) findRadios() (out []netif.Radio) {
	cfg, peers := &x.run.node.cfg, x.run.peers()
	if cfg.Device == "" {
		return nil
	}
	recorded := x.recordedInterfaces()
	neighbours := addresses(x.neighbours(), func(r radio.Role) string { return executor.AddressOf(x.sheet, peers, r) })
	own, _ := netip.ParseAddr(cmp.Or(cfg.RadioAddress, executor.AddressOf(x.sheet, peers, cfg.Role)))
	first := netif.Radio{Device: cfg.Device, Address: own, Peers: neighbours}
	if cfg.Role == radio.RoleRelay { // which may have a radio on either side
		first.Peers, first.Near = nil, neighbours
	}
	out = append(out, first)
	if second, _ := executor.SecondRadio(x.sheet, cfg.Role, cfg.Place); second.Device != "" {
		address, _ := netip.ParseAddr(second.Address) // the zero value where the profile has none
		out = append(out, netif.Radio{Device: second.Device, Address: address, Peers: addresses(x.sheet.Neighbours(cfg.Role), func(r radio.Role) string {
			path, _ := executor.SecondRadio(x.sheet, r, cfg.Place)
			return path.Address
		})})
	}
	for _, m := range cfg.More {
		address, _ := netip.ParseAddr(m.Address) // checked with the flag
		out = append(out, netif.Radio{Device: m.Device, Address: address, Near: neighbours})
	}
	if cfg.Role == radio.RoleRelay && !cfg.emulated() {
		for _, to := range neighbours {
			if r, found := netif.Toward(to, out, recorded); found {
				r.Near = neighbours
				out = append(out, r)
			}
		}
	}
	for i := range out {
		out[i].MTU = x.mtu(i, out[i].Device, recorded)
	}
	return out
}

// neighbours are the nodes to which packets of the run leave this one. A relay that
// forwards packets sends them to all others.
func (x *execution) neighbours() []radio.Role {
	role := x.run.node.cfg.Role
	if !x.forwards() {
		return x.sheet.Neighbours(role)
	}
	return slices.DeleteFunc([]radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer}, func(r radio.Role) bool { return r == role })
}

// forwards reports whether the node's kernel forwards packets of others over its radios.
func (x *execution) forwards() bool {
	cfg := &x.run.node.cfg
	return cfg.Role == radio.RoleRelay && !cfg.emulated() && netif.Forwards(cfg.interfaces()...)
}

// addresses are those of roles that no driver would refuse.
func addresses(roles []radio.Role, of func(radio.Role) string) (out []netip.Addr) {
	for _, r := range roles {
		if a, err := netip.ParseAddr(of(r)); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// devices are the interfaces of the node's radios that this run uses.
func (x *execution) devices() (out []string) {
	for i := range x.radios {
		out = append(out, x.radios[i].Device)
	}
	return out
}

// mtu is that of a radio's interface, in bytes: in a lab the emulated radio's, and on real
// radios, where nobody states it, the one that it had when this node's part in the run
// began; 0 where it begins now.
func (x *execution) mtu(index int, device string, recorded []netif.Recorded) int {
	if n := x.sheet.Network; n != nil && x.run.node.cfg.emulated() {
		if index > 0 && n.Second != nil {
			return n.Second.MTUBytes
		}
		return n.MTUBytes
	}
	for _, r := range recorded {
		if r.Device == device {
			return r.MTU
		}
	}
	return 0
}

// recordedInterfaces are the node's interfaces as they were when its part in the run began;
// nil where it begins now.
func (x *execution) recordedInterfaces() (out []netif.Recorded) {
	err := x.journal.Records(func(r journal.Record) error {
		if r.Type != journal.TypeProvenance || out != nil {
			return nil
		}
		var p journal.Provenance
		if err := json.Unmarshal(r.Body, &p); err != nil {
			return err
		}
		for _, i := range p.Interfaces {
			one := netif.Recorded{Device: i.Name, MTU: i.MTU}
			for _, a := range i.Addresses {
				if prefix, err := netip.ParsePrefix(a); err == nil {
					one.Addresses = append(one.Addresses, prefix)
				}
			}
			out = append(out, one)
		}
		return nil
	})
	if err != nil {
		x.run.log.Warn("what the radios' interfaces were when the run began cannot be read from the journal", "error", err)
	}
	return out
}
