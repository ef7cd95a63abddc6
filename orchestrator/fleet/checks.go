package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/campaign/nodes"
)

// sortChecks sorts a preflight's checks by node, kind and peer.
func sortChecks(p *preflight) {
	slices.SortStableFunc(p.checks, func(a, b *linktrialv1.Check) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(checkkind.Place(a.Kind), checkkind.Place(b.Kind)), cmp.Compare(a.Peer, b.Peer))
	})
}

func contact(n *nodes.Node, now time.Time) *linktrialv1.Check {
	c := &linktrialv1.Check{Node: n.Name, Kind: checkkind.Contact.Name, State: linktrialv1.CheckState_CHECK_STATE_OK, Found: "connected", Expected: "connected to the orchestrator",
		Meaning: "no run can be started on the node, and nothing on it can be checked"}
	if !n.Connected {
		c.State = linktrialv1.CheckState_CHECK_STATE_FAILED
		c.Found = fmt.Sprintf("no contact for %s, since %s", now.Sub(n.LastContact).Round(time.Second), unit.Moment(n.LastContact))
		c.Remedy = remedy(n.Name, radio.Role(n.Role))
	}
	return c
}

// remedy for a node that does not answer.
func remedy(name string, role radio.Role) string {
	return fmt.Sprintf("check that the laptop is on and that its control link works (the orchestrator's address must answer from it), and that its agent runs ('linktrial agent --name %s --role %s …'); in a lab: 'linktrial lab control-link %s up'", name, role, role)
}

// noReport is the check of a node that is connected and does not report.
func noReport(n *nodes.Node, limit time.Duration) *linktrialv1.Check {
	return &linktrialv1.Check{Node: n.Name, Kind: checkkind.Contact.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED,
		Found: fmt.Sprintf("did not report within %s, although it is connected", limit), Expected: "a report of its preflight",
		Meaning: "not everything on the node could be checked", Remedy: "see the agent's log on the node; an agent of an older version cannot make a preflight: install the orchestrator's"}
}

// silentNode is the check of a node whose connection has not ended and that does not
// answer, as after the loss of its cable or power.
func silentNode(n *nodes.Node, after time.Duration) *linktrialv1.Check {
	return &linktrialv1.Check{Node: n.Name, Kind: checkkind.Contact.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED,
		Found: fmt.Sprintf("has not answered for %s, although its connection has not ended", after.Round(time.Second)), Expected: "connected to the orchestrator",
		Meaning: "no run can be started on the node, and nothing on it can be checked", Remedy: remedy(n.Name, radio.Role(n.Role))}
}

func noNode(role radio.Role, topology string) *linktrialv1.Check {
	return &linktrialv1.Check{Node: string(role), Kind: checkkind.Contact.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED, Found: fmt.Sprintf("no %s has been connected", role),
		Expected: fmt.Sprintf("a node with the role %s, for topology %s", role, topology), Meaning: "no run can be started there",
		Remedy: fmt.Sprintf("start one on its laptop with 'linktrial agent --role %s …', or bring a lab up with 'linktrial lab up --agents'", role)}
}

func version(n *nodes.Node, orchestrator string) *linktrialv1.Check {
	c := &linktrialv1.Check{Node: n.Name, Kind: checkkind.Version.Name, State: linktrialv1.CheckState_CHECK_STATE_OK, Found: cmp.Or(n.Version, "not reported"), Expected: orchestrator,
		Meaning: "agent and orchestrator may mean different things by the same word", Remedy: "install the orchestrator's version of linktrial on the node"}
	if n.Version != orchestrator {
		c.State = linktrialv1.CheckState_CHECK_STATE_WARNING
	}
	return c
}

// attached returns the check that fails because a node has another radio than
// the one asked for, or warns that nobody has named its radio; nil: it has that one, or
// an emulated one, which can be any.
func attached(n *nodes.Node, want string) *linktrialv1.Check {
	switch {
	case n.LabProblem != "":
		return &linktrialv1.Check{Node: n.Name, Kind: checkkind.Radio.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED, Found: "not emulated: " + n.LabProblem, Expected: "an emulated radio, for which its lab vouches",
			Meaning: "runs will not be started on this node", Remedy: "bring the lab up, and start the agent as the lab does, in the lab's network namespace"}
	case n.WithoutRadio():
		return &linktrialv1.Check{Node: n.Name, Kind: checkkind.Radio.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED, Found: "no radio is set up", Expected: "a radio",
			Meaning: "the node takes part in no run", Remedy: "name the radio's interface and the node's address there: 'linktrial start --radio INTERFACE --radio-address ADDRESS' on the laptop, or --device and --radio-address of 'linktrial agent'"}
	case !n.Emulated && n.Radio == "":
		return &linktrialv1.Check{Node: n.Name, Kind: checkkind.Radio.Name, State: linktrialv1.CheckState_CHECK_STATE_WARNING, Found: radio.Unnamed, Expected: "a radio with a name, or the emulated one of a lab",
			Meaning: "results say that the radio is real and has no name; the profile of the plan is only a label of theirs", Remedy: "choose its profile on the page Set up, or start the agent with --radio and that profile"}
	case want == "" || n.Emulated || n.Radio == want:
		return nil
	}
	return &linktrialv1.Check{Node: n.Name, Kind: checkkind.Radio.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED, Found: "radio " + n.Radio, Expected: "radio " + want,
		Meaning: "runs with the other radio will not be started on this node", Remedy: "attach the other radio and start the agent with --radio " + want + ", or choose radio " + n.Radio}
}

// addresses returns checks of the radio addresses that drivers cannot use, alone or with
// those of the other nodes on the same radio network.
func addresses(all []nodes.Node) (out []*linktrialv1.Check) {
	add := func(node, peer, why string) {
		if found, remedy, _ := strings.Cut(why, "; "); why != "" {
			out = append(out, &linktrialv1.Check{Node: node, Peer: peer, Kind: checkkind.Address.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED, Found: found,
				Expected: "addresses of one IP version on all nodes, none of them link-local", Meaning: "no treatment can be run, and runs are not started", Remedy: remedy})
		}
	}
	for i, n := range all {
		add(n.Name, "", radio.AddressProblem(n.Name, n.RadioAddress))
		for _, o := range all[:i] {
			if o.Emulated == n.Emulated && o.Lab == n.Lab && o.Radio == n.Radio {
				add(n.Name, o.Name, radio.FamilyProblem(n.Name, n.RadioAddress, o.Name, o.RadioAddress))
			}
		}
	}
	return out
}

// drivers compares the versions of the drivers that the nodes have.
func drivers(all []nodes.Node, wanted []string) []*linktrialv1.Check {
	versions := map[string]map[string][]string{} // driver → version → nodes
	for _, n := range all {
		for _, d := range n.Drivers {
			if len(wanted) > 0 && !slices.Contains(wanted, d.Name) || d.Unsupported != "" {
				continue
			}
			if versions[d.Name] == nil {
				versions[d.Name] = map[string][]string{}
			}
			versions[d.Name][d.Version] = append(versions[d.Name][d.Version], n.Name)
		}
	}
	var out []*linktrialv1.Check
	for name, by := range versions {
		if len(by) < 2 {
			continue
		}
		var found []string
		for v, on := range by {
			found = append(found, fmt.Sprintf("%s on %s", v, strings.Join(on, ", ")))
		}
		slices.Sort(found)
		for _, on := range by {
			for _, node := range on {
				out = append(out, &linktrialv1.Check{Node: node, Kind: checkkind.Drivers.Name, State: linktrialv1.CheckState_CHECK_STATE_FAILED,
					Found: fmt.Sprintf("driver %s has different versions: %s", name, strings.Join(found, "; ")), Expected: "one version of each driver on all nodes",
					Meaning: "a run needs the same on both ends, and is not started", Remedy: "install the same version on all nodes and start their agents again"})
			}
		}
	}
	return out
}
