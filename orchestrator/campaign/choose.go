package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/campaign/nodes"
)

// candidate is a node that could take part in a run.
type candidate struct {
	name      string
	role      radio.Role
	radio     string // empty: emulated, and can be any, or real and not named
	emulated  bool
	lab       string // that vouches for it; empty: real
	problem   string // why none does for a node that was started for a lab
	bare      bool   // it has no radio yet, and perhaps no role
	virtual   bool
	connected bool
	contact   time.Time // the last one
	busy      bool
	address   string // on the radio network; empty: the emulated network's
	drivers   []nodes.Driver
}

// choose finds a node for each role of a sheet's topology. Where it cannot, it
// returns everything that is missing, for people. The nodes of a run all have
// emulated radios of one lab, or all real ones with a name, or all real ones without;
// virtual asks for those of the virtual-time lab, which are chosen for nothing else.
func choose(s *runsheet.Sheet, all []candidate, virtual bool) (map[radio.Role]string, []string) {
	var roles []radio.Role
	for _, st := range s.Topology.Stations {
		roles = append(roles, st.Role)
	}
	var fewest []string
	for _, these := range groups(all, virtual) {
		chosen, problems := chooseAmong(s, roles, these, func(role radio.Role) string { return noNode(role, all, virtual) })
		if len(problems) == 0 {
			return chosen, nil
		}
		if fewest == nil || len(problems) < len(fewest) {
			fewest = problems
		}
	}
	if fewest != nil {
		return nil, fewest
	}
	var problems []string
	for _, role := range roles {
		problems = append(problems, noNode(role, all, virtual))
	}
	return nil, problems
}

// groups are the connected nodes that can be in one run together: those of each lab, then
// those with a real radio that has a name, then those whose radio has none.
func groups(all []candidate, virtual bool) [][]candidate {
	of := map[string][]candidate{}
	for _, c := range all {
		if c.virtual == virtual && c.connected && !c.bare {
			of[c.group()] = append(of[c.group()], c)
		}
	}
	var out [][]candidate
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, of[name])
	}
	return out
}

// group names the nodes that can be in a run with this one; names are in the order in
// which groups are preferred.
func (c *candidate) group() string {
	switch {
	case c.emulated:
		return "1 lab " + c.lab
	case c.unnamed():
		return "3 unnamed"
	}
	return "2 named"
}

// unnamed reports whether the node has a real radio that nobody has named.
func (c *candidate) unnamed() bool { return !c.emulated && c.radio == "" }

// maxAbsent is how many nodes without contact a sentence names.
const maxAbsent = 3

// noNode says that no node of a role is connected, and which one is and has no radio yet, or
// which ones were: those without contact, the last ones first.
func noNode(role radio.Role, all []candidate, virtual bool) string {
	var absent []candidate
	for _, c := range all {
		if c.bare && c.connected && !virtual && (c.role == role || c.role == "") {
			return fmt.Sprintf("no %s node with a radio is connected: node %s has no radio yet: set it up on that laptop with 'linktrial start --role %s --radio INTERFACE --radio-address ADDRESS'", role, c.name, role)
		}
		if c.role == role && c.virtual == virtual && !c.connected {
			absent = append(absent, c)
		}
	}
	if len(absent) == 0 {
		return fmt.Sprintf("no %s node is connected: start one with 'linktrial agent --role %s', or bring up a lab with 'linktrial lab up'", role, role)
	}
	slices.SortStableFunc(absent, func(a, b candidate) int { return b.contact.Compare(a.contact) })
	var names []string
	for _, c := range absent[:min(len(absent), maxAbsent)] {
		names = append(names, fmt.Sprintf("%s (last contact %s)", c.name, unit.Moment(c.contact)))
	}
	return fmt.Sprintf("no %s node is connected; known and without contact: %s: check that it is on, that its agent runs and that it reaches the orchestrator", role, strings.Join(names, ", "))
}

// chooseAmong prefers, for each role, the node on which the fewest of the
// sheet's treatments are unavailable, and of those one that is idle. noNode says that
// none has a role.
func chooseAmong(s *runsheet.Sheet, roles []radio.Role, these []candidate, noNode func(radio.Role) string) (map[radio.Role]string, []string) {
	chosen := map[radio.Role]string{}
	var problems []string
	for _, role := range roles {
		var best *candidate
		fewest := 0
		var why []string
		found := false
		for i := range these {
			c := &these[i]
			if c.role != role {
				continue
			}
			found = true
			if p := obstacles(s, c); len(p) > 0 {
				why = append(why, p...)
				continue
			}
			n := countUnavailable(s, c)
			if best == nil || n < fewest || n == fewest && best.busy && !c.busy {
				best, fewest = c, n
			}
		}
		switch {
		case best != nil:
			chosen[role] = best.name
		case found:
			problems = append(problems, why...)
		default:
			problems = append(problems, noNode(role))
		}
	}
	return chosen, append(problems, mixedFamilies(roles, chosen, these)...)
}

// mixedFamilies returns which of the chosen nodes cannot reach each other because their
// radio addresses are of different IP versions.
func mixedFamilies(roles []radio.Role, chosen map[radio.Role]string, these []candidate) (problems []string) {
	address := func(name string) string {
		i := slices.IndexFunc(these, func(c candidate) bool { return c.name == name })
		if i < 0 {
			return ""
		}
		return these[i].address
	}
	for _, role := range roles {
		lead, other := chosen[leader], chosen[role]
		if why := radio.FamilyProblem(lead, address(lead), other, address(other)); why != "" {
			problems = append(problems, why)
		}
	}
	return problems
}

// obstacles returns why a node cannot take part in a run of the sheet.
func obstacles(s *runsheet.Sheet, c *candidate) []string {
	var out []string
	switch {
	case c.emulated && s.Network == nil:
		out = append(out, fmt.Sprintf("node %s has an emulated radio, and radio %s cannot be emulated", c.name, s.Cell.Radio))
	case c.problem != "":
		out = append(out, fmt.Sprintf("node %s was started for a lab and does not count as emulated: %s", c.name, c.problem))
	case c.unnamed(): // it is measured, and every result says that its radio has no name
	case !c.emulated && c.radio != s.Cell.Radio:
		out = append(out, fmt.Sprintf("node %s has radio %s, the plan asks for %s", c.name, c.radio, s.Cell.Radio))
	}
	if why := radio.AddressProblem(c.name, c.address); why != "" {
		out = append(out, why)
	}
	for _, u := range s.Uses(c.role) {
		if why := driverObstacle(&u, c); why != "" {
			out = append(out, why)
		}
	}
	return out
}

// driverObstacle returns why a node is not set up for a treatment: what an
// operator has to mend before the plan can be run. For what a node's kernel
// does not have see [missingSupport].
func driverObstacle(u *runsheet.Use, c *candidate) string {
	d := c.driver(u.Protocol)
	if d == nil {
		return fmt.Sprintf("treatment %s: node %s has no driver %s", u.Treatment.Name, c.name, u.Protocol)
	}
	if d.Unsupported == "" && d.Version != u.DriverVersion {
		return fmt.Sprintf("treatment %s: node %s has version %s of driver %s, the plan was checked against %s", u.Treatment.Name, c.name, d.Version, u.Protocol, u.DriverVersion)
	}
	// Where the node has not reported a digest, its agent checks it before it starts anything.
	if d.Unsupported == "" && d.Digest != "" && len(u.Digests) > 0 && !slices.Contains(u.Digests, d.Digest) {
		return fmt.Sprintf("treatment %s: driver %s on node %s is %s, and accepted is %s: put the orchestrator's driver on the node, or accept this one with 'linktrial protocol approve %s@%s'",
			u.Treatment.Name, u.Protocol, c.name, d.Digest, strings.Join(u.Digests, " and "), u.Protocol, d.Digest)
	}
	return ""
}

func (c *candidate) driver(protocol string) *nodes.Driver {
	i := slices.IndexFunc(c.drivers, func(d nodes.Driver) bool { return d.Name == protocol })
	if i < 0 {
		return nil
	}
	return &c.drivers[i]
}
