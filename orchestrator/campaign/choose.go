package campaign

import (
	"fmt"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
)

// candidate is a node that could take part in a run.
type candidate struct {
	name      string
	role      radio.Role
	radio     string // empty: emulated, and can be any
	emulated  bool
	virtual   bool
	connected bool
	busy      bool
	drivers   []nodes.Driver
}

// choose finds a node for each role of a sheet's topology. Where it cannot, it
// returns everything that is missing, for people. The nodes of a run all have
// emulated radios, or all real ones; virtual asks for those of the virtual-time
// lab, which are chosen for nothing else.
func choose(s *runsheet.Sheet, all []candidate, virtual bool) (map[radio.Role]string, []string) {
	var roles []radio.Role
	for _, st := range s.Topology.Stations {
		roles = append(roles, st.Role)
	}
	var fewest []string
	for _, emulated := range []bool{true, false} {
		var these []candidate
		for _, c := range all {
			if c.emulated == emulated && c.virtual == virtual && c.connected {
				these = append(these, c)
			}
		}
		if len(these) == 0 {
			continue
		}
		chosen, problems := chooseAmong(s, roles, these)
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
		problems = append(problems, noNode(role))
	}
	return nil, problems
}

func noNode(role radio.Role) string {
	return fmt.Sprintf("no %s node is connected: start one with 'linktrial agent --role %s', or bring up a lab with 'linktrial lab up'", role, role)
}

// chooseAmong prefers, for each role, the node on which the fewest of the
// sheet's treatments are unavailable, and of those one that is idle.
func chooseAmong(s *runsheet.Sheet, roles []radio.Role, these []candidate) (map[radio.Role]string, []string) {
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
	return chosen, problems
}

// obstacles returns why a node cannot take part in a run of the sheet.
func obstacles(s *runsheet.Sheet, c *candidate) []string {
	var out []string
	switch {
	case c.emulated && s.Network == nil:
		out = append(out, fmt.Sprintf("node %s has an emulated radio, and radio %s cannot be emulated", c.name, s.Cell.Radio))
	case !c.emulated && c.radio != s.Cell.Radio:
		out = append(out, fmt.Sprintf("node %s has radio %s, the plan asks for %s", c.name, c.radio, s.Cell.Radio))
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
