// Package preflight checks a node and its peers before a run:
// clock and who keeps it, disk, battery, drivers, the radio's interface and how
// it is attached, what the radio reports of itself, what else uses the radio, and,
// over the radio, who answers, how fast, up to which packet size and rate.
//
// Comes in: what the orchestrator wants checked ([linktrialv1.PreflightRequest]).
// Goes out: checks in words for a technician, and links.
package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"linktrial/agents/runner"
	"linktrial/agents/telemetry"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
)

// Config is what a node checks.
type Config struct {
	Node       string  // its name
	Device     string  // the radio's interface
	Address    string  // the node's IP address on the radio network
	More       []Radio // further radios, as a relay between two has
	StateDir   string  // where journals are written
	FloorBytes int64   // free disk space below which no trial starts

	// Drivers lists what can run here; Clock measures the orchestrator's clock.
	Drivers interface {
		List(ctx context.Context) ([]runner.State, error)
	}
	Clock func(ctx context.Context) journal.ClockOffset

	Role     radio.Role
	Emulated bool           // the node's radio is
	Profile  *radio.Profile // of the radio; nil: not known
	// Telemetry reads every source of the radio now; nil: there is none.
	Telemetry func(ctx context.Context) []telemetry.State

	spread, last time.Duration // of the probes, for tests; zero: probeSpread, probeLast
}

// Radio is a network interface that leads to a radio, with the node's IP address there.
type Radio struct{ Device, Address string }

// each is a configuration for each of the node's radios, in which it is the only one.
func (c Config) each() []Config {
	first := c
	first.More = nil
	out := []Config{first}
	for _, m := range c.More {
		one := first
		one.Device, one.Address = m.Device, m.Address
		out = append(out, one)
	}
	return out
}

// Report is what was found.
type Report struct {
	Checks []*linktrialv1.Check
	Links  []*linktrialv1.Link
	// Of the transfers of a plan's treatments (agents/preflight/transfer), which the
	// orchestrator judges: it knows both ends.
	Transfers     []*linktrialv1.TransferSeen
	TransferError string // why the node could not do its part, or all of it; empty: it could
}

// Short names for the states of a check.
const (
	notChecked = linktrialv1.CheckState_CHECK_STATE_UNSPECIFIED
	ok         = linktrialv1.CheckState_CHECK_STATE_OK
	warning    = linktrialv1.CheckState_CHECK_STATE_WARNING
	failed     = linktrialv1.CheckState_CHECK_STATE_FAILED
	unknown    = linktrialv1.CheckState_CHECK_STATE_UNKNOWN
)

// nodeCheck looks at the node itself. What it returns is nil where the check does not
// apply.
type nodeCheck struct {
	kind *checkkind.Kind
	look func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check
	// ofRadio is set where it looks at a radio: without one there is nothing to look at.
	ofRadio bool
}

// nodeChecks are made in this order: traffic first, while the other nodes do not probe yet
// either.
var nodeChecks = []nodeCheck{trafficCheck, radioCheck, clockCheck, timeCheck, diskCheck, batteryCheck, driversCheck, attachCheck, telemetryCheck}

func one(c *linktrialv1.Check) []*linktrialv1.Check { return []*linktrialv1.Check{c} }

// Run carries a preflight out. The checks of the node itself take some seconds,
// those of the peers up to a minute and a half each where no answer comes back.
// It ends early, with what it has, when ctx does.
func Run(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) Report {
	var r Report
	if !w.PairsOnly {
		for _, n := range nodeChecks {
			if n.ofRadio && c.Device == "" {
				continue
			}
			for _, check := range n.look(ctx, c, w) {
				check.Kind = n.kind.Name
				r.add(check)
			}
		}
	}
	if slices.ContainsFunc(w.Peers, func(p *linktrialv1.PreflightPeer) bool { return !p.Away }) {
		// The questions are traffic: not while nodes count that.
		for _, one := range c.each() {
			if check := one.checkDuplicate(ctx); check != nil {
				r.add(check)
			}
		}
	}
	for _, p := range w.Peers {
		if ctx.Err() != nil {
			break
		}
		c.checkPeer(ctx, &r, p, int(w.MtuBytes))
	}
	for _, check := range r.Checks {
		check.Node = c.Node
	}
	return r
}

// Busy is the report of a node that is in a run: nothing was checked.
func Busy(node string, w *linktrialv1.PreflightRequest) Report {
	var r Report
	why := func(kind, peer string) {
		r.add(&linktrialv1.Check{Node: node, Peer: peer, Kind: kind, State: notChecked, Found: "a run uses this node: nothing was looked at",
			Expected: "no run", Meaning: "a look would disturb the trials", Remedy: "wait for the run's end, or abort it, and start the preflight again"})
	}
	if !w.PairsOnly {
		why(checkkind.Radio.Name, "")
	}
	for _, p := range w.Peers {
		why(checkkind.Reach.Name, p.Name)
	}
	return r
}

func (r *Report) add(cs ...*linktrialv1.Check) { r.Checks = append(r.Checks, cs...) }

// The probes that find out whether a peer answers.
const (
	probes        = 10
	probeBytes    = 84                    // IP packet, as ping(8) sends it by default
	probePause    = 50 * time.Millisecond // at least, between two
	probeInterval = time.Second           // at most, where no answer comes
	lastProbeWait = 5 * time.Second       // for answers after the last one
	// Of a peer without contact to the orchestrator, which may be off.
	awayProbes    = 3
	awayProbeWait = 2 * time.Second
)

// checkPeer checks one peer: reachability, round trip, packet size and rate.
func (c Config) checkPeer(ctx context.Context, r *Report, p *linktrialv1.PreflightPeer, mtu int) {
	reach := &linktrialv1.Check{Peer: p.Name, Kind: checkkind.Reach.Name, Expected: "answers over the radio",
		Meaning: "no trial between the two nodes can succeed",
		Remedy: fmt.Sprintf("see that the radio of %s is on, on the same network and key as this one's, in range, and that its interface has the address %s",
			p.Name, p.RadioAddress)}
	size := &linktrialv1.Check{Peer: p.Name, Kind: checkkind.MTU.Name, Expected: "packets of the radio's MTU pass whole", Meaning: "larger packets would be fragmented or lost, and connections hang after they are made"}
	speed := newRateCheck()
	speed.Peer = p.Name
	r.add(reach, size, speed)
	skip := func(state linktrialv1.CheckState, found string) {
		reach.State, reach.Found = state, found
		size.State, size.Found = notChecked, "not looked at, because "+p.Name+" was not reached"
		speed.State, speed.Found = notChecked, size.Found
	}
	by := c.wayTo(p.RadioAddress)
	if by.detour != "" {
		reach.Expected, reach.Remedy = "packets leave through "+c.Device, "change the routes of this node so that 'ip route get "+p.RadioAddress+"' says dev "+c.Device
		skip(failed, by.detour)
		return
	}
	ping, err := newPinger(by.device, by.from, p.RadioAddress)
	if err != nil {
		reach.Remedy = "give the agent the right to send ICMP (root, CAP_NET_RAW, or its group in net.ipv4.ping_group_range), and see the check of the radio's interface"
		skip(unknown, err.Error())
		return
	}
	defer ping.close()
	ping.count, ping.spread, ping.last = probes, cmp.Or(c.spread, probeInterval), cmp.Or(c.last, lastProbeWait)
	if p.Away {
		ping.count, ping.last = awayProbes, cmp.Or(c.last, awayProbeWait)
	}
	rtts, sent, err := ping.probe(ctx)
	if len(rtts) == 0 && err == nil && !p.Away && by.answersTCP(ctx, p.RadioAddress) {
		reach.Meaning = "a packet filter at one of the nodes, or between them, drops ICMP: what is measured with it is not known before a run. Transfers need none"
		reach.Remedy = "let ICMP echo pass on the radios' interfaces ('nft list ruleset' on the nodes shows what drops it), or go on with a preflight of the plan, which carries a transfer of each treatment"
		skip(warning, fmt.Sprintf("no answer to %d probes (ICMP echo), while TCP is answered", sent))
		size.Found = "not looked at, because " + p.Name + " answers no ICMP echo"
		speed.Found = size.Found
		return
	}
	link := &linktrialv1.Link{From: c.Node, To: p.Name, Probes: int32(sent), At: timestamppb.Now(), Network: "radio"}
	if sent > 0 {
		link.Loss = 1 - float64(len(rtts))/float64(sent)
		r.Links = append(r.Links, link)
	}
	switch {
	case len(rtts) == 0 && err != nil:
		skip(failed, "probes cannot be sent: "+err.Error())
		return
	case len(rtts) == 0:
		skip(failed, fmt.Sprintf("no answer to %d probes", sent))
		return
	}
	link.Reachable, link.RttSeconds = true, median(rtts).Seconds()
	reach.State = ok
	reach.Found = fmt.Sprintf("%d of %d probes answered, round trip %s", len(rtts), sent, formatDuration(median(rtts)))
	if 2*len(rtts) < sent {
		reach.State, reach.Expected = warning, "answers most probes over the radio"
		reach.Meaning = "most packets are lost: trials will be slow, and many will fail"
		reach.Remedy = "see antennas, power and distance, and whether somebody else transmits; where the link is meant to be that bad, start the run anyway"
	}
	if p.Away { // what else passes it says itself, when it has contact again
		size.State, size.Found = notChecked, "not looked at, because "+p.Name+" has no contact to the orchestrator"
		speed.State, speed.Found = notChecked, size.Found
		return
	}
	passes := c.checkSize(ctx, ping, size, mtu, median(rtts))
	if passes == 0 {
		speed.State, speed.Found = notChecked, "not looked at, because no large packet passed"
		return
	}
	var nominal float64
	if c.Profile != nil {
		nominal = c.Profile.NominalRate(c.Emulated)
	}
	c.checkRate(ctx, ping, speed, passes, median(rtts), nominal)
}

// plateaus are the packet sizes that are tried where the wanted one does not
// pass: Ethernet's tunnels, IPv6's least, and those of RFC 1191, section 7.1.
var plateaus = []int{1492, 1400, 1280, 1006, 576, 296}

// sizeLimit bounds the search for the packet size that passes.
const sizeLimit = time.Minute

// checkSize finds out whether packets of the radio's MTU pass unfragmented, both ways, and
// returns the largest size that passed, 0: none.
func (c Config) checkSize(ctx context.Context, ping *pinger, check *linktrialv1.Check, want int, rtt time.Duration) int {
	if want == 0 {
		want = interfaceMTU(c.Device)
	}
	if want < minMTU {
		check.State, check.Found = unknown, "the MTU of the radio is not known"
		check.Remedy = "name the radio, or see the check of its interface"
		return 0
	}
	check.Expected = fmt.Sprintf("packets of %d bytes pass whole", want)
	check.Remedy = fmt.Sprintf("set the MTU of the radio and of both nodes' interfaces to %d bytes ('ip link set dev %s mtu %d'), or correct it in the radio's profile", want, c.Device, want)
	ctx, cancel := context.WithTimeout(ctx, sizeLimit)
	defer cancel()
	// The same link carries a large packet at most so much slower than a small one.
	patience := min(max(time.Duration(float64(rtt)*float64(want)/probeBytes), 2*time.Second), 20*time.Second)
	passed, why := ping.fits(ctx, want, 3, patience)
	if passed {
		check.State, check.Found = ok, fmt.Sprintf("packets of %d bytes pass whole", want)
		return want
	}
	check.State = failed
	least := want
	for _, s := range plateaus {
		if s >= want {
			continue
		}
		passed, _ := ping.fits(ctx, s, 2, patience)
		if passed {
			check.Found = fmt.Sprintf("packets of %d bytes pass, of %d bytes do not: %s", s, least, why)
			return s
		}
		if ctx.Err() != nil {
			break
		}
		least = s
	}
	check.Found = fmt.Sprintf("packets of %d bytes do not pass: %s", least, why)
	return 0
}
