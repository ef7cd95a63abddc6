package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"linktrial/agents/netif"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/nodesensor"
)

// Bounds within which a check is passed.
const (
	maxClockOffset = 100 * time.Millisecond
	enoughDisk     = int64(1) << 30
	enoughCharge   = 0.5
	lowCharge      = 0.2
	listenFor      = time.Second // to the radio's interface, while it should be idle
	// A few packets in that time are neighbour or name discovery; more would be
	// a visible share of a narrow-band radio (16 kbit/s is 2000 bytes a second).
	trafficPackets = 10
	trafficBytes   = 1000
)

func (c Config) checkClock(ctx context.Context) *linktrialv1.Check {
	return judgeClock(c.Clock(ctx))
}

func judgeClock(o journal.ClockOffset) *linktrialv1.Check {
	check := &linktrialv1.Check{Kind: KindClock, State: ok, Expected: fmt.Sprintf("within %g s of the orchestrator", maxClockOffset.Seconds()),
		Meaning: "times of different nodes in one chart do not fit together, and flows of several nodes do not start together; figures of single transfers are not touched",
		Remedy:  "run a time service on both machines ('timedatectl set-ntp true', or chrony against the orchestrator's laptop or a GPS receiver)"}
	if o.Unknown != "" {
		check.State, check.Found = unknown, "could not be measured: "+o.Unknown
		check.Remedy = "see that the node's control link carries more than single packets, and start the preflight again"
		return check
	}
	// The offset is the orchestrator's clock minus the node's.
	word, by := "behind", o.Offset
	if by < 0 {
		word, by = "ahead of", -by
	}
	check.Found = fmt.Sprintf("%s %s the orchestrator, to within %s", formatDuration(by), word, formatDuration(o.Error))
	if by > 24*time.Hour { // a battery of the machine's clock that ran out
		check.Found = fmt.Sprintf("%.0f days %s the orchestrator", by.Hours()/24, word)
		check.Meaning = "its certificates look expired or not yet valid, and nothing that it records can be put beside others"
	}
	switch {
	case by > maxClockOffset:
		check.State = failed
	case by+o.Error > maxClockOffset:
		check.State = warning
		check.Remedy = "the control link is slow, so the clock cannot be read better: compare it by hand, or see the link"
	}
	return check
}

func (c Config) checkDisk() *linktrialv1.Check {
	free, err := journal.FreeBytes(c.StateDir)
	return judgeDisk(free, err, c.FloorBytes)
}

func judgeDisk(free int64, err error, floor int64) *linktrialv1.Check {
	check := &linktrialv1.Check{Kind: KindDisk, State: ok, Expected: fmt.Sprintf("at least %s free for journals", formatBytes(enoughDisk)),
		Meaning: fmt.Sprintf("no trial starts with less than %s free: the run stops there", formatBytes(max(0, floor))),
		Remedy:  "remove what is not needed from the node's disk, or give the agent another state folder (--state)"}
	if err != nil {
		check.State, check.Found = unknown, "could not be found out: "+err.Error()
		return check
	}
	check.Found = formatBytes(free) + " free"
	switch {
	case free < 2*max(0, floor):
		check.State = failed
	case free < enoughDisk:
		check.State = warning
	}
	return check
}

func formatBytes(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

func checkBattery() *linktrialv1.Check {
	b, there := nodesensor.ReadBattery(nodesensor.PowerSupplies)
	return judgeBattery(b, there)
}

func judgeBattery(b nodesensor.Battery, there bool) *linktrialv1.Check {
	check := &linktrialv1.Check{Kind: KindBattery, State: ok, Expected: fmt.Sprintf("on mains, or at least %.0f %%", 100*enoughCharge),
		Meaning: "the node may go off in the middle of a run", Remedy: "connect the laptop to a supply, or change its battery"}
	if !there {
		check.State, check.Found = notChecked, "the node has no battery that reports its charge"
		return check
	}
	state := "not discharging"
	if b.Discharging {
		state = "discharging"
	}
	check.Found = fmt.Sprintf("%.0f %%, %s", 100*b.Charge, state)
	switch {
	case !b.Discharging:
	case b.Charge < lowCharge:
		check.State = failed
	case b.Charge < enoughCharge:
		check.State = warning
	}
	return check
}

// checkDrivers checks those that a plan needs, or all of the node.
func (c Config) checkDrivers(ctx context.Context, wanted []string) []*linktrialv1.Check {
	one := func(state linktrialv1.CheckState, found, remedy string) *linktrialv1.Check {
		expected := "every driver here can run"
		if len(wanted) > 0 {
			expected = "can run " + strings.Join(wanted, ", ")
		}
		return &linktrialv1.Check{Kind: KindDrivers, State: state, Found: found, Expected: expected,
			Meaning: "a plan's trials of that protocol cannot run on this node", Remedy: remedy}
	}
	states, err := c.Drivers.List(ctx)
	if err != nil {
		return []*linktrialv1.Check{one(unknown, "could not be found out: "+err.Error(), "see that the agent's folder of drivers is there (--drivers)")}
	}
	var can, cannot, without []string
	there := map[string]bool{}
	for _, s := range states {
		there[s.Driver.Name] = true
		if len(wanted) > 0 && !slices.Contains(wanted, s.Driver.Name) {
			continue
		}
		switch {
		case s.Runs():
			can = append(can, strings.TrimSpace(s.Driver.Name+" "+s.Driver.Version))
		case len(wanted) == 0 && s.Manifest != nil && s.Manifest.External != "":
			without = append(without, fmt.Sprintf("%s would need %s", s.Driver.Name, s.Manifest.External))
		default:
			cannot = append(cannot, s.Driver.Name+": "+s.Driver.Unsupported)
		}
	}
	var missing []string
	for _, w := range wanted {
		if !there[w] {
			missing = append(missing, w)
		}
	}
	var out []*linktrialv1.Check
	if len(missing) > 0 {
		out = append(out, one(failed, "not here: "+strings.Join(missing, ", "), "install the driver on the node, in the agent's folder of drivers, and start the agent again"))
	}
	if len(cannot) > 0 {
		state := warning // it may not be needed
		if len(wanted) > 0 {
			state = failed
		}
		out = append(out, one(state, strings.Join(cannot, "; "), "give the node what the driver asks for, or leave the protocol out of the plan"))
	}
	switch {
	case len(out) > 0:
	case len(can) == 0:
		out = append(out, one(failed, "no driver", "install drivers on the node, in the agent's folder of drivers, and start the agent again"))
	default:
		out = append(out, one(ok, strings.Join(append([]string{strings.Join(can, ", ")}, without...), "; "), ""))
	}
	return out
}

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
	check := &linktrialv1.Check{Kind: KindRadio, State: ok, Expected: fmt.Sprintf("interface %s is up and has %s", c.Device, c.Address),
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
		check.Meaning = "packets are smaller than the radio could carry, so figures do not compare with those of other trials"
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

// checkTraffic counts whether anything else uses the radios, all of them at once.
func (c Config) checkTraffic(ctx context.Context) (out []*linktrialv1.Check) {
	each := c.each()
	before := make([]traffic, len(each))
	some := false
	began := time.Now()
	for i := range each {
		before[i] = countTraffic(each[i].Device)
		some = some || before[i].known
	}
	if some {
		backoff.Sleep(ctx, listenFor)
	}
	for i := range each {
		now, b := countTraffic(each[i].Device), before[i]
		if !now.known || !b.known {
			out = append(out, judgeTraffic(each[i].Device, 0, 0, 0))
			continue
		}
		out = append(out, judgeTraffic(each[i].Device, now.packets-b.packets, now.bytes-b.bytes, time.Since(began)))
	}
	return out
}

// traffic is what an interface has counted since it exists.
type traffic struct {
	packets, bytes uint64
	known          bool
}

func countTraffic(device string) traffic {
	l, err := netlink.LinkByName(device)
	if err != nil || l.Attrs().Statistics == nil {
		return traffic{}
	}
	s := l.Attrs().Statistics
	return traffic{s.RxPackets + s.TxPackets, s.RxBytes + s.TxBytes, true}
}

// judgeTraffic judges what an interface counted in a time; 0: nothing could be counted.
func judgeTraffic(device string, packets, bytes uint64, in time.Duration) *linktrialv1.Check {
	check := &linktrialv1.Check{Kind: KindTraffic, State: ok, Expected: "nothing on " + device + " while no trial runs",
		Meaning: "other traffic takes airtime from the trials, and more from one than from another",
		Remedy:  fmt.Sprintf("find what it is ('tcpdump -n -i %s' on the node) and stop it: name and time services, updates, a control link that shares the radio (then say so in the plan: control: in-band)", device)}
	if in <= 0 {
		check.State, check.Found, check.Remedy = unknown, "the interface's counters cannot be read", "see the check of the radio's interface"
		return check
	}
	check.Found = fmt.Sprintf("%d packets, %d bytes in %.1f s", packets, bytes, in.Seconds())
	perSecond := func(n uint64) float64 { return float64(n) / in.Seconds() }
	switch {
	case packets == 0:
		check.Found = fmt.Sprintf("nothing in %.1f s", in.Seconds())
	case perSecond(packets) > trafficPackets || perSecond(bytes) > trafficBytes:
		check.State = failed
	default:
		check.State = warning
	}
	return check
}
