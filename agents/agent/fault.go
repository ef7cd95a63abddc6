package agent

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/agents/netif"
	"linktrial/agents/preflight"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/internal/atomicfile"
)

// addFault reports a fault to the orchestrator, at once and with every poll.
func (n *node) addFault(f fault) {
	n.mu.Lock()
	known := slices.Contains(n.faults, f)
	if !known {
		n.faults = append(n.faults, f)
	}
	n.mu.Unlock()
	if !known {
		n.pollNow()
	}
}

// removeFault takes back a fault that is mended; the zero value was none.
func (n *node) removeFault(f fault) {
	if f == (fault{}) {
		return
	}
	n.mu.Lock()
	n.faults = slices.DeleteFunc(slices.Clone(n.faults), func(g fault) bool { return f == g })
	n.mu.Unlock()
	n.pollNow()
}

// setFault sets a fault to what is wrong now, empty: nothing, and reports whether that is
// news.
func (n *node) setFault(fault *string, now string) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	news = *fault != now
	*fault = now
	return news
}

// pollNow has the orchestrator, where there is one, told at once.
func (n *node) pollNow() {
	if n.session != nil {
		n.session.PollNow()
	}
}

func (n *node) addFaults(r *linktrialv1.PollRequest) {
	radio := n.checkRadio()
	n.mu.Lock()
	defer n.mu.Unlock()
	all := append(n.faults[:len(n.faults):len(n.faults)], n.refused...)
	for _, text := range []string{radio, n.profileFault, n.labFault, n.waiting} {
		if text != "" {
			all = append(all, fault{text: text})
		}
	}
	for _, f := range all {
		r.Faults = append(r.Faults, &linktrialv1.NodeFault{RunId: f.run, Text: f.text})
	}
}

// noteWaiting notes why the run that this node leads waits, empty where it does not, and
// has the orchestrator told.
func (n *node) noteWaiting(why string) {
	if why != "" {
		why = "the run waits: " + why
	}
	if n.setFault(&n.waiting, why) {
		n.pollNow()
	}
}

// checkRadio says why the radios cannot be used as they are now, and logs it once.
func (n *node) checkRadio() string {
	fault := radioFault(n.cfg.Device, n.cfg.RadioAddress, n.cfg.setUp)
	for _, m := range n.cfg.More {
		fault = cmp.Or(fault, radioFault(m.Device, m.Address, n.cfg.setUp))
	}
	if fault == "" && n.cfg.RadioControl == "" { // a lab looks after its radios itself
		fault = n.interfaceFault()
	}
	if n.setFault(&n.radioFault, fault) && fault != "" {
		n.cfg.Logger.Warn("the radio cannot be used", "reason", fault)
	}
	return fault
}

// noteInterface notes the watch of the run that is executed, until done.
func (n *node) noteInterface(w *netif.Watches) (done func()) {
	set := func(w *netif.Watches) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.iface = w
	}
	set(w)
	return func() { set(nil) }
}

// interfaceFault says what is not in order with the radios' interfaces, which are there:
// as the run that is executed needs them, or else as they are by themselves.
func (n *node) interfaceFault() string {
	n.mu.Lock()
	watch := n.iface
	n.mu.Unlock()
	var faults []executor.InterfaceFault
	if watch != nil {
		faults, _ = watch.State()
	} else {
		faults = n.radioFaults()
	}
	var out []string
	for _, f := range faults {
		out = append(out, fmt.Sprintf("the radio's interface %s is not in order: %s", f.Device, f.Text))
	}
	return strings.Join(out, "; ")
}

// radioFaults are those of the interfaces of the agent's radios by themselves.
func (n *node) radioFaults() (out []executor.InterfaceFault) {
	for _, x := range append([]preflight.Radio{{Device: n.cfg.Device, Address: n.cfg.RadioAddress}}, n.cfg.More...) {
		address, err := netip.ParseAddr(x.Address)
		if err != nil || x.Device == "" {
			continue
		}
		r := netif.Radio{Device: x.Device, Address: address}
		if s, err := netif.Read(&r); err == nil {
			if fault := s.Faults(&r); fault != "" {
				out = append(out, executor.InterfaceFault{Device: x.Device, Text: fault})
			}
		}
	}
	return out
}

// radioFault says why the radio cannot be used as it is now; empty: it can. The radio
// may be plugged in later, so the agent starts without it. setUp: no flag names it.
func radioFault(device, address string, setUp bool) string {
	if device == "" {
		return ""
	}
	l, err := net.InterfaceByName(device)
	if err != nil {
		var names []string
		all, _ := net.Interfaces() // none are named then
		for _, i := range all {
			names = append(names, i.Name)
		}
		if setUp {
			return fmt.Sprintf("the radio's interface %s is gone; there are %s: connect it, and it is set up again, or set up another one", device, strings.Join(names, ", "))
		}
		return fmt.Sprintf("there is no network interface %s, which --device or --more-radio names; there are %s: connect the radio, or start the agent with another one", device, strings.Join(names, ", "))
	}
	want, err := netip.ParseAddr(address)
	if err != nil {
		return "" // taken from the run sheet
	}
	addrs, _ := l.Addrs() // without any, the address is missing
	var found []string
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if p.Addr().Unmap() == want.Unmap().WithZone("") {
			return ""
		}
		found = append(found, p.Addr().String())
	}
	have := "it has none"
	if len(found) > 0 {
		have = "it has " + strings.Join(found, ", ")
	}
	if setUp {
		return fmt.Sprintf("the radio's interface %s does not have its address %s; %s: something has changed it; set the radio up again", device, address, have)
	}
	return fmt.Sprintf("interface %s does not have the address %s, which --radio-address or --more-radio names; %s: add it with %s, or start the agent with another one", device, address, have, netif.HowToAdd(want, device))
}

// noteProfile notes whether the orchestrator knows the radio's profile; refused is why
// what it sent of it is not used, nil where it is.
func (n *node) noteProfile(known bool, refused error) {
	text := ""
	if refused != nil {
		text = fmt.Sprintf("the radio is not read between runs: %v", refused)
	} else if n.cfg.Radio != "" && !known {
		text = fmt.Sprintf("the orchestrator has no radio profile %q, which --radio names: no plan can use this node; 'linktrial profiles' lists the profiles", n.cfg.Radio)
	}
	if n.setFault(&n.profileFault, text) && text != "" {
		n.cfg.Logger.Warn("the radio has no profile that this node can use", "reason", text)
	}
}

// setAsideAll sets aside the files of the state folder that cannot be read, names
// them in the log, and has the orchestrator told.
func (n *node) setAsideAll(bad []badFile) {
	for _, b := range bad {
		to, err := atomicfile.SetAside(b.path)
		if err != nil {
			n.cfg.Logger.Error("file of the state folder cannot be read, nor be renamed", "file", b.path, "reason", b.err, "error", err)
			n.addFault(fault{text: fmt.Sprintf("%v; it cannot be renamed either (%v): remove it", b.err, err)})
			continue
		}
		n.cfg.Logger.Error("file of the state folder cannot be read and is set aside", "file", b.path, "now", to, "reason", b.err)
		n.addFault(fault{text: fmt.Sprintf("%v; it is now %s, and the agent works without it", b.err, filepath.Base(to))})
	}
}
