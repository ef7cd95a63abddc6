package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"linktrial/agents/netif"
	"linktrial/agents/preflight"
	"linktrial/agents/radioset"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
)

// errOtherRadio ends one start of an agent whose radios have become others: nothing of the
// configuration changes while an agent works by it.
var errOtherRadio = errors.New("the node has other radios")

// changesApart is the pause between two looks at the interfaces: whoever changes them again
// and again keeps this agent from working otherwise.
const changesApart = 500 * time.Millisecond

// openRadios reads the radios that people set up on the node, sets them up again, and has
// the configuration name them, where none came with it.
func (a *agent) openRadios(ctx context.Context) (err error) {
	if a.cfg.Orchestrator == "" || a.cfg.RadioControl != "" { // nobody is asked, or a lab looks after its radios
		return nil
	}
	a.radios, err = radioset.Open(radioset.Config{Dir: a.cfg.StateDir, Orchestrator: a.cfg.Orchestrator, Logger: a.cfg.Logger})
	if err != nil {
		return err
	}
	kept := a.radios.Radios()
	if !a.cfg.withoutRadio() {
		a.fixed = a.cfg.fixed()
		a.radios.Name(a.cfg.interfaces())
		if len(kept) > 0 {
			a.cfg.Logger.Warn("a radio that was set up is not used", "interface", kept[0].Interface, "reason", a.fixed)
		}
		return nil
	}
	a.radios.Name(nil)
	a.radios.Restore(ctx)
	a.cfg.adopt(kept)
	return nil
}

// fixed says why no radio can be set up on a node that was started with one.
func (c *Config) fixed() string {
	var flags []string
	for _, f := range [][2]string{{"--device", c.Device}, {"--radio-address", c.RadioAddress}, {"--radio", c.Radio}} {
		if f[1] != "" {
			flags = append(flags, f[0]+" "+f[1])
		}
	}
	return fmt.Sprintf("this agent was started with %s, which counts: change it there (on a laptop with the package in /etc/linktrial/agent.env), or start it without to set the radio up here", strings.Join(flags, ", "))
}

// adopt has a configuration without a radio name those that were set up.
func (c *Config) adopt(radios []radioset.Setting) {
	for i, s := range radios {
		if i > 0 {
			c.More = append(c.More, preflight.Radio{Device: s.Interface, Address: s.Address.Addr().String()})
			continue
		}
		c.Device, c.RadioAddress, c.Role, c.Radio = s.Interface, s.Address.Addr().String(), s.Role, s.Profile
		c.setUp = true
		if c.Place == journal.PlaceUnnamed && s.Profile != "" {
			c.Place = journal.PlaceReal
		}
	}
}

// orderRadio carries out an order of the orchestrator, each one once.
func (a *agent) orderRadio(ctx context.Context, o *linktrialv1.RadioOrder) {
	if o == nil || a.radios == nil || a.radios.Known(o.Id) {
		return
	}
	a.mu.Lock()
	known := a.orderID == o.Id
	a.orderID = o.Id
	a.mu.Unlock()
	if known {
		return
	}
	a.running.Go(func() {
		changed := a.radios.Carry(ctx, o, a.refusesRadio())
		if changed {
			a.again(errOtherRadio)
			return
		}
		a.radios.Look(ctx)
		a.pollNow()
	})
}

// refusesRadio says why the node's radios stay as they are; empty: they need not.
func (a *agent) refusesRadio() string {
	if a.fixed != "" {
		return a.fixed
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if runs := slices.Sorted(maps.Keys(a.runs)); len(runs) > 0 {
		return fmt.Sprintf("run %s is under way on this node, or is not delivered yet: wait for its end, then try again", runs[0])
	}
	return ""
}

// watchRadios sets the node's radios up again when their interfaces come back, and has the
// orchestrator told of interfaces that are others than before, until ctx ends.
func (a *agent) watchRadios(ctx context.Context) {
	netif.Follow(ctx, a.cfg.Logger, func() {
		if a.fixed == "" {
			a.radios.Restore(ctx)
		} else {
			a.radios.Name(a.cfg.interfaces())
		}
		if a.radios.Look(ctx) && a.session.Gate().Unrestricted() {
			a.pollNow()
		}
		backoff.Sleep(ctx, changesApart)
	})
}

// addInterfaces adds to a poll the node's radios, and its interfaces where they are others
// than the orchestrator has.
func (a *agent) addInterfaces(r *linktrialv1.PollRequest) {
	a.shown = nil
	if a.radios == nil || !a.session.Gate().Unrestricted() {
		return
	}
	r.Radios, r.Interfaces = a.radios.State(a.fixed), a.radios.News()
	a.shown = r.Interfaces
}

// registerInterfaces adds all of them to a registration.
func (a *agent) registerInterfaces(ctx context.Context, r *linktrialv1.RegisterRequest) {
	if a.radios == nil {
		return
	}
	a.radios.Look(ctx)
	r.Radios, r.Interfaces = a.radios.State(a.fixed), a.radios.All()
	a.shown = r.Interfaces
}

// interfacesTold notes that the orchestrator has answered a call with the interfaces.
func (a *agent) interfacesTold() {
	if a.radios != nil {
		a.radios.Has(a.shown)
	}
}
