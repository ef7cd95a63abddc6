package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// Unavailable returns, for each sheet, the treatments that the nodes chosen for
// it cannot run because their kernels do not support them, by name with the
// reason for people. It returns none for a sheet for which no nodes can be
// chosen.
func (e *Engine) Unavailable(sheets []*runsheet.Sheet, virtual bool) []map[string]string {
	all := e.candidates()
	out := make([]map[string]string, len(sheets))
	for i, s := range sheets {
		if chosen, problems := choose(s, all, virtual); problems == nil {
			out[i] = unavailable(s, chosen, all)
		}
	}
	return out
}

func unavailable(s *runsheet.Sheet, chosen map[radio.Role]string, all []candidate) map[string]string {
	var nodes []*candidate
	for i := range all {
		if c := &all[i]; chosen[c.role] == c.name {
			nodes = append(nodes, c)
		}
	}
	out := map[string]string{}
	for i := range s.Treatments {
		t := &s.Treatments[i]
		// One sentence names all nodes for which the same is missing.
		where := map[string][]string{}
		for _, c := range nodes {
			for _, u := range s.Uses(c.role) {
				if u.Treatment != t {
					continue
				}
				if what := missingSupport(&u, c); what != "" && !slices.Contains(where[what], c.name) {
					where[what] = append(where[what], c.name)
				}
			}
		}
		var reasons []string
		for _, what := range slices.Sorted(maps.Keys(where)) {
			reasons = append(reasons, fmt.Sprintf(what, strings.Join(where[what], " and ")))
		}
		if len(reasons) > 0 {
			out[t.Name] = strings.Join(reasons, "; ")
		}
	}
	return out
}

// countUnavailable is how many treatments a node cannot run.
func countUnavailable(s *runsheet.Sheet, c *candidate) int {
	these := map[*runsheet.Treatment]bool{}
	for _, u := range s.Uses(c.role) {
		if missingSupport(&u, c) != "" {
			these[u.Treatment] = true
		}
	}
	return len(these)
}

// notSupported begins a driver's remark on a value that a node does not have
// (docs/driver-contract.md).
const notSupported = "not supported: "

// missingSupport returns what a treatment needs and the node does not have, as a format for the node's name; empty where nothing is missing.
func missingSupport(u *runsheet.Use, c *candidate) string {
	literal := func(s string) string { return strings.ReplaceAll(s, "%", "%%") }
	if u.Treatment.CompleteKnowledge && c.unnamed() {
		return "it is to know the link (complete_knowledge), and nobody has named the real radio of %s: start the agent with --radio"
	}
	d := c.driver(u.Protocol)
	if d == nil {
		return ""
	}
	if d.Unsupported != "" {
		return "%s cannot run " + literal(u.Protocol+": "+d.Unsupported)
	}
	for _, option := range slices.Sorted(maps.Keys(d.Choices)) {
		want, ok := u.Options[option].(string)
		if !ok {
			continue
		}
		there := strings.Split(d.Choices[option], ",")
		for k := range there {
			there[k] = strings.TrimSpace(there[k])
		}
		if slices.Contains(there, want) {
			continue
		}
		why, remarked := strings.CutPrefix(d.Remarks[option+"="+want], notSupported)
		if option == "congestion" {
			if remarked {
				want += ", nor can it be brought along as eBPF: " + why
			}
			return "the kernel of %s has no congestion control " + literal(want)
		}
		if remarked {
			want += ": " + why
		}
		return "%s has no " + literal(option+" "+want)
	}
	return ""
}
