package evidence

import (
	"fmt"
	"slices"
	"strings"
)

// JournalsByReason are journals of which something is not there, by the reason: a campaign of
// a hundred runs whose nodes have no certificates has one.
type JournalsByReason struct {
	reasons []string // in the order in which they came
	by      map[string]*journalsFor
}

type journalsFor struct {
	first       string
	journals    int
	nodes, runs []string
}

// Add notes a node's journal of a run.
func (u *JournalsByReason) Add(run, node, why string) {
	if u.by == nil {
		u.by = map[string]*journalsFor{}
	}
	x := u.by[why]
	if x == nil {
		x = &journalsFor{first: fmt.Sprintf("the journal of node %s of run %s", node, run)}
		u.by[why], u.reasons = x, append(u.reasons, why)
	}
	x.journals++
	x.nodes, x.runs = with(x.nodes, node), with(x.runs, run)
}

func with(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// Each calls f for each reason, with the journals as the subject of a sentence.
func (u *JournalsByReason) Each(f func(journals string, several bool, why string)) {
	const named = 6 // nodes; a run has at most three
	for _, why := range u.reasons {
		x := u.by[why]
		if x.journals == 1 {
			f(x.first, false, why)
			continue
		}
		nodes, more := x.nodes, ""
		if len(nodes) > named {
			nodes, more = nodes[:named], fmt.Sprintf(" and %d more", len(nodes)-named)
		}
		runs := "run " + x.runs[0]
		if len(x.runs) > 1 {
			runs = fmt.Sprintf("%d runs", len(x.runs))
		}
		f(fmt.Sprintf("%d journals of %s (nodes %s%s)", x.journals, runs, strings.Join(nodes, ", "), more), true, why)
	}
}
