package agent

import (
	"cmp"
	"errors"
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

// fault is something on the node that it cannot mend by itself.
type fault struct {
	run  string // that cannot go on because of it; empty: none
	text string // what it is, and what to do
}

// addFault reports a fault to the orchestrator, at once and with every poll.
func (a *agent) addFault(f fault) {
	a.mu.Lock()
	known := slices.Contains(a.faults, f)
	if !known {
		a.faults = append(a.faults, f)
	}
	s := a.session
	a.mu.Unlock()
	if !known && s != nil {
		s.PollNow()
	}
}

func (a *agent) addFaults(r *linktrialv1.PollRequest) {
	radio := a.checkRadio()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := append(a.faults[:len(a.faults):len(a.faults)], a.refused...)
	for _, text := range []string{radio, a.profileFault, a.labFault, a.waiting} {
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
func (a *agent) noteWaiting(why string) {
	if why != "" {
		why = "the run waits: " + why
	}
	a.mu.Lock()
	changed := a.waiting != why
	a.waiting = why
	s := a.session
	a.mu.Unlock()
	if changed && s != nil {
		s.PollNow()
	}
}

// checkRadio says why the radios cannot be used as they are now, and logs it once.
func (a *agent) checkRadio() string {
	fault := radioFault(a.cfg.Device, a.cfg.RadioAddress)
	for _, m := range a.cfg.More {
		fault = cmp.Or(fault, radioFault(m.Device, m.Address))
	}
	if fault == "" && a.cfg.RadioControl == "" { // a lab looks after its radios itself
		fault = a.interfaceFault()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if fault != a.radioFault && fault != "" {
		a.cfg.Logger.Warn("the radio cannot be used", "reason", fault)
	}
	a.radioFault = fault
	return fault
}

// interfaceFault says what is not in order with the radios' interfaces, which are there:
// as the run that is executed needs them, or else as they are by themselves.
func (a *agent) interfaceFault() string {
	a.mu.Lock()
	watch := a.iface
	a.mu.Unlock()
	var faults []executor.InterfaceFault
	if watch != nil {
		faults, _ = watch.State()
	} else {
		faults = a.radioFaults()
	}
	var out []string
	for _, f := range faults {
		out = append(out, fmt.Sprintf("the radio's interface %s is not in order: %s", f.Device, f.Text))
	}
	return strings.Join(out, "; ")
}

// radioFaults are those of the interfaces of the agent's radios by themselves.
func (a *agent) radioFaults() (out []executor.InterfaceFault) {
	for _, x := range append([]preflight.Radio{{Device: a.cfg.Device, Address: a.cfg.RadioAddress}}, a.cfg.More...) {
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
// may be plugged in later, so the agent starts without it.
func radioFault(device, address string) string {
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
	return fmt.Sprintf("interface %s does not have the address %s, which --radio-address or --more-radio names; %s: add it with %s, or start the agent with another one", device, address, have, netif.HowToAdd(want, device))
}

// noteProfile notes whether the orchestrator knows the radio's profile; refused is why
// what it sent of it is not used, nil where it is.
func (a *agent) noteProfile(known bool, refused error) {
	text := ""
	if refused != nil {
		text = fmt.Sprintf("the radio is not read between runs: %v", refused)
	} else if a.cfg.Radio != "" && !known {
		text = fmt.Sprintf("the orchestrator has no radio profile %q, which --radio names: no plan can use this node; 'linktrial profiles' lists the profiles", a.cfg.Radio)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if text != a.profileFault && text != "" {
		a.cfg.Logger.Warn("the radio has no profile that this node can use", "reason", text)
	}
	a.profileFault = text
}

// cannotGoOn reports that a file of the run's folder is damaged or missing, so that
// the node can do nothing more in the run.
func (r *run) cannotGoOn(what string, err error) error {
	text := fmt.Sprintf("%s: %v; the node does nothing more in this run, and what it has delivered stays. Look into %s on the node, and start the run anew with 'linktrial run start'", what, err, r.dir)
	r.a.addFault(fault{r.id, text})
	return errors.New(text)
}

// setAsideAll sets aside the files of the state folder that cannot be read, names
// them in the log, and has the orchestrator told.
func (a *agent) setAsideAll(bad []badFile) {
	for _, b := range bad {
		to, err := atomicfile.SetAside(b.path)
		if err != nil {
			a.cfg.Logger.Error("file of the state folder cannot be read, nor be renamed", "file", b.path, "reason", b.err, "error", err)
			a.addFault(fault{text: fmt.Sprintf("%v; it cannot be renamed either (%v): remove it", b.err, err)})
			continue
		}
		a.cfg.Logger.Error("file of the state folder cannot be read and is set aside", "file", b.path, "now", to, "reason", b.err)
		a.addFault(fault{text: fmt.Sprintf("%v; it is now %s, and the agent works without it", b.err, filepath.Base(to))})
	}
}

// badFile is a file of the state folder that cannot be read.
type badFile struct {
	path string
	err  error // names the file
}
