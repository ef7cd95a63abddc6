package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/protocols/contract"
)

// Cell is one run of a plan, with the nodes that would run it now.
type Cell struct {
	Sheet *runsheet.Sheet
	Nodes map[radio.Role]string
	// Missing is why no nodes would; where it is not empty, there are no Nodes.
	Missing []string
}

// The transfers that a preflight carries.
const (
	maxTransfer  = 16 << 10         // bytes
	minTransfer  = 512              // on the slowest radios
	transferTime = 5 * time.Second  // at the radio's rate, at most
	probeTime    = 2 * time.Second  // of a probe
	connectTime  = 5 * time.Second  // for a connection, at most
	slowConnect  = 20 * time.Second // on radios below slowRate
	slowRate     = 64e3             // bit/s
	maxTransfers = 12               // sheets of transfers of one preflight: plans with sweeps have many variants
	// Of the steps beside the transfers themselves: listeners may take as long as a driver
	// has to get ready, and a node that reports is near its end.
	listenTime = contract.ReadyPatience + 10*time.Second
	closeTime  = 20 * time.Second
	reportTime = 10 * time.Second // for a report, beyond what the node may take
)

// transfers is one sheet of small transfers, and the nodes that carry them.
type transfers struct {
	sheet   *runsheet.Sheet
	encoded []byte
	nodes   map[radio.Role]*nodes.Node
	prints  map[string]string // by treatment, see [fingerprint]
}

// carried returns the sheets of the transfers that a plan's preflight carries: one
// transfer of each treatment with its options, on each set of nodes. What cannot be
// carried has a check that says why.
func carried(cells []Cell, all []nodes.Node) (out []*transfers, checks []*linktrialv1.Check, err error) {
	known, told := map[string]bool{}, map[string]bool{}
	not := func(t *runsheet.Treatment, node, why, remedy string) {
		if !told[t.Name+why] {
			told[t.Name+why] = true
			checks = append(checks, notCarried(t, node, why, remedy))
		}
	}
	for i := range cells {
		c := &cells[i]
		x := &transfers{nodes: map[radio.Role]*nodes.Node{}, prints: map[string]string{}}
		for role, name := range c.Nodes {
			if k := slices.IndexFunc(all, func(n nodes.Node) bool { return n.Name == name }); k >= 0 {
				x.nodes[role] = &all[k]
			}
		}
		var these []runsheet.Treatment
		for _, t := range c.Sheet.Treatments {
			switch {
			case t.Missing != "":
				not(&t, clientOf(c), "the plan has it as missing: "+t.Missing, "")
				continue
			case len(c.Missing) > 0:
				not(&t, string(radio.RoleClient), c.Missing[0], "mend what is said, and start the preflight again")
				continue
			}
			print := fingerprint(c.Sheet, &t, x.nodes)
			if known[print] {
				continue
			}
			if len(out) == maxTransfers {
				not(&t, clientOf(c), fmt.Sprintf("the plan has more variants of its treatments than %d sheets of transfers hold; this one was left out", maxTransfers), "")
				continue
			}
			known[print] = true
			x.prints[t.Name] = print
			these = append(these, t)
		}
		if len(these) == 0 {
			continue
		}
		x.sheet = transferSheet(c.Sheet, these, x.emulated())
		if x.encoded, err = x.sheet.Encode(); err != nil {
			return nil, nil, err
		}
		out = append(out, x)
	}
	return out, checks, nil
}

func clientOf(c *Cell) string {
	if n := c.Nodes[radio.RoleClient]; n != "" {
		return n
	}
	return string(radio.RoleClient)
}

func (x *transfers) emulated() bool {
	n := x.nodes[radio.RoleClient]
	return n != nil && n.Emulated
}

// transferSheet is a sheet with one small transfer, or probes both ways, of each of some
// treatments of a run, and all else as in the run.
func transferSheet(s *runsheet.Sheet, these []runsheet.Treatment, emulated bool) *runsheet.Sheet {
	rate := s.Radio.NominalRate(emulated)
	size, took := transferSize(rate)
	out := *s
	out.Cell.SizeBytes = size
	out.Treatments, out.Mixes, out.Trials, out.Valid, out.Capture = these, nil, nil, nil, false
	connect := connectTime
	if rate > 0 && rate < slowRate {
		connect = slowConnect
	}
	out.Limits = runsheet.Limits{Connect: min(s.Limits.Connect, connect), Transfer: min(s.Limits.Transfer, 10*time.Second+4*took), Attempts: 1}
	seed := uint64(0)
	if len(s.Trials) > 0 {
		seed = s.Trials[0].ChannelSeed
	}
	for i, t := range these {
		trial := runsheet.Trial{Index: i, Iteration: 1, Treatment: t.Name, ChannelSeed: seed}
		there := runsheet.Flow{Treatment: t.Name, From: radio.RoleClient, To: radio.RoleServer}
		if t.Probe {
			there.Duration = probeTime
			back := there
			back.From, back.To = there.To, there.From
			trial.Probes = []runsheet.Flow{there, back}
		} else {
			there.SizeBytes, there.PayloadSeed = size, uint64(i)
			trial.Flows = []runsheet.Flow{there}
		}
		out.Trials = append(out.Trials, trial)
	}
	return &out
}

// transferSize is how much a radio of a rate (bit/s, 0: not known) carries in a
// preflight, and how long that takes.
func transferSize(rate float64) (size int64, took time.Duration) {
	if rate <= 0 {
		return maxTransfer, transferTime
	}
	size = min(maxTransfer, max(minTransfer, int64(rate/8*transferTime.Seconds())))
	return size, time.Duration(float64(size) * 8 / rate * float64(time.Second))
}

// limit is how long the client may take for all of a sheet's transfers.
func (x *transfers) limit() time.Duration {
	each := x.sheet.Limits.Connect + x.sheet.Limits.Transfer + 2*time.Second
	return 15*time.Second + time.Duration(len(x.sheet.Trials))*each
}

// expected is how long they take where all of them work.
func (x *transfers) expected() time.Duration {
	_, took := transferSize(x.sheet.Radio.NominalRate(x.emulated()))
	return 3*time.Second + time.Duration(len(x.sheet.Trials))*(took+300*time.Millisecond)
}

// others are the nodes that listen, in the order of roles.
func (x *transfers) others() (out []nodes.Node) {
	for _, role := range radio.Roles {
		if n := x.nodes[role]; n != nil && role != radio.RoleClient {
			out = append(out, *n)
		}
	}
	return out
}

// carry has the nodes carry the transfers of one sheet, and adds a check of each
// treatment.
func (f *Fleet) carry(ctx context.Context, p *preflight, x *transfers, number int) {
	name := fmt.Sprintf("%s-t%d", p.id, number)
	addresses := map[string]string{}
	for role, n := range x.nodes {
		if n.RadioAddress != "" {
			addresses[string(role)] = n.RadioAddress
		}
	}
	f.mu.Lock()
	p.transfers = map[string]*transferReport{}
	f.mu.Unlock()
	// A node ends its part by itself after its limit, and has some time to report.
	step := func(step linktrialv1.PreflightTransfers_Step, word string, limit, patience time.Duration, to ...nodes.Node) {
		f.ask(ctx, p, patience, func(*nodes.Node) *linktrialv1.PreflightRequest {
			return &linktrialv1.PreflightRequest{Id: name + "." + word, Transfers: &linktrialv1.PreflightTransfers{
				Step: step, Sheet: x.encoded, RadioAddresses: addresses, LimitMs: limit.Milliseconds(), Name: name}}
		}, to...)
	}
	carry, others := x.limit(), x.others()
	f.mu.Lock()
	missing := false
	for _, n := range x.nodes {
		if !hasContact(p, n.Name) {
			missing = true
			p.transfers[n.Name] = &transferReport{failure: "there is no contact with it"}
		}
	}
	f.mu.Unlock()
	if !missing {
		step(linktrialv1.PreflightTransfers_STEP_LISTEN, "listen", listenTime+carry+closeTime+3*reportTime, listenTime+reportTime, others...)
		step(linktrialv1.PreflightTransfers_STEP_CARRY, "carry", carry, carry+reportTime, *x.nodes[radio.RoleClient])
		step(linktrialv1.PreflightTransfers_STEP_CLOSE, "close", closeTime, closeTime+reportTime, others...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range x.sheet.Treatments {
		t := &x.sheet.Treatments[i]
		check := x.judge(t, p.transfers)
		p.checks = append(p.checks, check)
		if works, known := checkWorks(check); known {
			p.works[x.prints[t.Name]] = works
		}
	}
}

// transferReport is what a node reported of a sheet's transfers last.
type transferReport struct {
	failure string // why it could not do its part, or all of it
	seen    map[string]*linktrialv1.TransferSeen
}

// takeTransfers keeps what a node reports of transfers.
func (p *preflight) takeTransfers(node string, m *linktrialv1.ReportPreflightRequest) {
	if p.transfers == nil {
		return
	}
	r := &transferReport{failure: clean(m.TransferError), seen: map[string]*linktrialv1.TransferSeen{}}
	for _, t := range m.Transfers {
		r.seen[t.Treatment] = cleanTransfer(t)
	}
	if old := p.transfers[node]; old != nil && len(r.seen) == 0 {
		r.seen = old.seen // of its listeners, as it reported them before
	}
	p.transfers[node] = r
}

// Bounds of what is reported of a treatment: far beyond what an agent sends.
const maxSeen = 20

func checkTransfers(m *linktrialv1.ReportPreflightRequest) error {
	if len(m.Transfers) > maxChecks {
		return fmt.Errorf("report of transfers of %d treatments %w: expected at most %d", len(m.Transfers), ErrBad, maxChecks)
	}
	for _, t := range m.Transfers {
		if t == nil || len(t.Listeners) > maxSeen || len(t.Flows) > maxSeen {
			return fmt.Errorf("report of a treatment with %d listeners and %d flows %w: expected at most %d", len(t.GetListeners()), len(t.GetFlows()), ErrBad, maxSeen)
		}
		for _, l := range t.Listeners {
			if l == nil || min(l.ToReceived, l.ToSent, l.FromReceived, l.FromSent, l.Fragments) < 0 || len(l.Interfaces) > maxSeen {
				return fmt.Errorf("report of a listener %w: %v", ErrBad, l)
			}
		}
		for _, s := range t.Flows {
			if s == nil || s.Bytes < 0 || s.SizeBytes < 0 || !(s.Seconds >= 0 && s.Seconds < 1e6) {
				return fmt.Errorf("report of a flow %w: %v", ErrBad, s)
			}
		}
	}
	return nil
}

// cleanTransfer is a copy with texts that can be stored; the message stays its sender's.
func cleanTransfer(t *linktrialv1.TransferSeen) *linktrialv1.TransferSeen {
	t = proto.CloneOf(t)
	for _, l := range t.Listeners {
		l.Code, l.Message = clean(l.Code), clean(l.Message)
		for i := range l.Interfaces {
			l.Interfaces[i] = clean(l.Interfaces[i])
		}
	}
	for _, s := range t.Flows {
		s.Reason, s.Message, s.Log = clean(s.Reason), clean(s.Message), clean(s.Log)
	}
	return t
}
