package report

import (
	"fmt"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report/wording"
)

// controlNote says in one or more sentences whether nodes and orchestrator were silent
// during the attempts that count; empty: control is not in-band, or nothing counts yet.
func (r *Run) controlNote() string {
	if r.Sheet == nil || r.Sheet.Control != runsheet.ControlInBand {
		return ""
	}
	if r.Place == journal.PlaceVirtual {
		return "Control packets were not counted: in virtual time agents have no connection to the orchestrator."
	}
	counted, undecided, met := 0, 0, 0
	unknown := map[radio.Role]int{}
	why := map[radio.Role]string{}
	known := map[radio.Role]bool{}
	for i := range r.Trials {
		n := len(r.Trials[i].Attempts)
		if n == 0 {
			continue
		}
		a := &r.Trials[i].Attempts[n-1]
		if a.Verdict != journal.Succeeded && a.Verdict != journal.Failed && a.Verdict != journal.TimedOut {
			continue
		}
		counted++
		if len(a.Control) == 0 {
			undecided++
			continue
		}
		some := false
		for _, c := range a.Control {
			if c.Unknown == "" {
				known[c.Role] = true
				some = some || c.Packets > 0
				continue
			}
			if unknown[c.Role]++; why[c.Role] == "" {
				why[c.Role] = c.Unknown
			}
		}
		if some {
			met++
		}
	}
	if counted == 0 {
		return ""
	}
	attempts := func(n int) string {
		return fmt.Sprintf("%d of %s", n, wording.Plural(counted, "attempt that counts", "attempts that count"))
	}
	var at, out []string
	for _, role := range radio.Roles {
		if known[role] {
			at = append(at, string(role))
		}
	}
	switch {
	case met > 0:
		out = append(out, fmt.Sprintf("Control packets passed during %s, see trials.csv.", attempts(met)))
	case len(at) > 0:
		out = append(out, fmt.Sprintf("No control packet passed an interface of %s during any of %s.", and(at), wording.Plural(counted-undecided, "attempt that counts", "attempts that count")))
	}
	for _, role := range radio.Roles {
		if n := unknown[role]; n > 0 {
			out = append(out, fmt.Sprintf("Control packets of the %s are not known of %s: %s.", role, attempts(n), why[role]))
		}
	}
	if undecided > 0 {
		out = append(out, fmt.Sprintf("Control packets are not known of %s: the counts of all nodes are not there.", attempts(undecided)))
	}
	return wording.Clean(strings.Join(out, " "))
}

// and joins names: "client, relay and server".
func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
