// Package checkkind is the checks of a preflight: their names and order, when each is
// passed, and what it means where it is not. Nodes (agents/preflight) and the orchestrator
// (orchestrator/fleet) make the checks; the table in docs/radios.md follows from the list,
// and the bounds go to the pages with the API.
package checkkind

import (
	"fmt"
	"slices"
	"time"

	"linktrial/internal/unit"
)

// Bounds within which checks of a node are passed.
const (
	MaxClockOffset = 100 * time.Millisecond // to the orchestrator's clock
	// EnoughDiskBytes is the free space for journals below which there is a warning. When
	// no trial starts any more, each agent is told.
	EnoughDiskBytes = int64(1) << 30
	EnoughCharge    = 0.5 // of batteries together, below which there is a warning
	LowCharge       = 0.2 // below which the check fails
	// ListenFor is how long the radio's interface is listened to while it should be idle.
	ListenFor = time.Second
	// A few packets in that time are neighbour or name discovery; more would be a visible
	// share of a narrow-band radio (16 kbit/s is 2000 bytes a second).
	MaxIdlePackets = 10   // a second
	MaxIdleBytes   = 1000 // a second
	// MinRateShare is the share of the radio's rate below which something is wrong: with a
	// relay between and answers on the same air a quarter is what can be had.
	MinRateShare = 1.0 / 20
)

// Kind is one check of a preflight.
type Kind struct {
	Name string // as the API's Check.kind has it: "clock"
	Good string // for documents: when it is passed
	Bad  string // for documents: what it means where it is not
	// Central: the orchestrator alone makes it, and no node may report it.
	Central bool
}

// The checks. Those of a node itself come before those of its way to another.
var (
	Contact = &Kind{Name: "contact", Central: true, Good: "connected to the orchestrator", Bad: "no run can be started on the node"}
	Version = &Kind{Name: "version", Central: true, Good: "the orchestrator's version", Bad: "a different version may interpret calls differently"}
	Clock   = &Kind{Name: "clock", Good: fmt.Sprintf("within %g s of the orchestrator", MaxClockOffset.Seconds()), Bad: "times of different nodes cannot be compared"}
	Time    = &Kind{Name: "time", Good: "chrony follows a clock (`chronyc tracking`), or another service keeps the kernel's clock", Bad: "the clock drifts during the day"}
	Disk    = &Kind{Name: "disk", Good: unit.FormatBytes(EnoughDiskBytes) + " free", Bad: "the run stops"}
	Battery = &Kind{Name: "battery", Good: fmt.Sprintf("on mains, or at least %.0f %%; red below %.0f %%", 100*EnoughCharge, 100*LowCharge), Bad: "the node switches off"}
	Drivers = &Kind{Name: "drivers", Good: "the plan's drivers are installed, in one version on all nodes", Bad: "trials of that protocol cannot run"}
	Radio   = &Kind{Name: "radio", Good: "the interface is up with carrier, the radio's MTU and its address, which can be used (not tentative, not dadfailed)", Bad: "nothing leaves the node"}
	Attach  = &Kind{Name: "attach", Good: "as the profile's `attach` states", Bad: "packets take another path, or none"}
	// Telemetry is of internal/telemetrysource's sources.
	Telemetry = &Kind{Name: "telemetry", Good: "every source answers", Bad: "the source is not recorded; trials run all the same"}
	Channel   = &Kind{Name: "channel", Central: true, Good: "no other attached radio on these frequencies", Bad: "transmissions collide"}
	Traffic   = &Kind{Name: "traffic", Good: fmt.Sprintf("nothing on the radio's interface for %g s; red above %d packets or %d bytes a second", ListenFor.Seconds(), MaxIdlePackets, MaxIdleBytes), Bad: "others take airtime from the trials"}
	Address   = &Kind{Name: "address", Good: "the radio addresses are of one IP version, and none is link-local; no other machine on the link has a node's (three questions by ARP or ND)",
		Bad: "runs are not started: drivers get no such addresses; packets reach the other machine"}
	Reach = &Kind{Name: "reach", Good: "the route to the peer leads through the radio, and probes are answered; shows median round trip and loss. Of a peer without contact to the orchestrator 3 probes instead of 10, and neither mtu nor rate. A peer that answers no ICMP is asked by TCP, and a warning says that ICMP is dropped",
		Bad: "no trial between the two can succeed"}
	MTU       = &Kind{Name: "mtu", Good: "packets of the radio's MTU pass unfragmented in both directions", Bad: "connections hang after they are established"}
	Rate      = &Kind{Name: "rate", Good: fmt.Sprintf("1/%.0f of the radio's rate, in both directions", 1/MinRateShare), Bad: "trials take far longer than planned"}
	Treatment = &Kind{Name: "treatment", Central: true, Good: "with `--plan`: a small transfer of the treatment passes, of a probe packets both ways", Bad: "every trial of it would fail in the same way"}
)

// list is every kind, in the order in which a node's checks are shown.
var list = []*Kind{Contact, Version, Clock, Time, Disk, Battery, Drivers, Radio, Attach, Telemetry, Channel, Traffic, Address, Reach, MTU, Rate, Treatment}

// Kinds is every kind, in the order in which a node's checks are shown.
func Kinds() []*Kind { return slices.Clone(list) }

// Of is the kind of that name; nil: this version does not know it.
func Of(name string) *Kind {
	if i := Place(name); i < len(list) {
		return list[i]
	}
	return nil
}

// Place is where checks of that name are shown among a node's; those that this version does
// not know come last.
func Place(name string) int {
	if i := slices.IndexFunc(list, func(k *Kind) bool { return k.Name == name }); i >= 0 {
		return i
	}
	return len(list)
}
