package report

import (
	"cmp"
	"fmt"
	"slices"
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
	unknown, why, known := map[radio.Role]int{}, map[radio.Role]string{}, map[radio.Role]bool{}
	for i := range r.Trials {
		a := r.Trials[i].last()
		if a == nil || !a.hasOutcome() {
			continue
		}
		counted++
		if len(a.Control) == 0 {
			undecided++
			continue
		}
		for _, c := range a.Control {
			if c.Unknown == "" {
				known[c.Role] = true
				continue
			}
			unknown[c.Role]++
			why[c.Role] = cmp.Or(why[c.Role], c.Unknown)
		}
		if slices.ContainsFunc(a.Control, func(c ControlCount) bool { return c.Unknown == "" && c.Packets > 0 }) {
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

// starvedOn is what missed so much of an attempt's time that the attempt's value may be
// the machine's and not the protocol's: the leading node, whose processors kept its
// programs waiting, and the emulated radio, which gave packets out late.
func (a *Attempt) starvedOn() (node, emulator bool) {
	node = a.Host != nil && a.Host.Share(a.Duration) > journal.StarvedShare
	emulator = a.Radio != nil && a.Radio.Late.Share(a.Duration) > journal.StarvedShare
	return node, emulator
}

// hosts says in how many attempts which host was starved.
func hosts(nodes, emulators int) string {
	var out []string
	if nodes > 0 {
		out = append(out, fmt.Sprintf("the leading node's processors kept programs waiting (in %d)", nodes))
	}
	if emulators > 0 {
		out = append(out, fmt.Sprintf("the emulated radio gave packets out late (in %d)", emulators))
	}
	return strings.Join(out, ", ")
}

// hostNote says how many of the attempts that count ran on a starved host, by treatment;
// empty: none.
func (r *Run) hostNote() string {
	if r.Sheet == nil {
		return ""
	}
	counted, nodes, emulators, starved := 0, 0, 0, map[string]int{}
	for i := range r.Trials {
		a := r.Trials[i].last()
		if a == nil || !a.hasOutcome() {
			continue
		}
		counted++
		node, emulator := a.starvedOn()
		if node {
			nodes++
		}
		if emulator {
			emulators++
		}
		if node || emulator {
			starved[r.Trials[i].Treatment]++
		}
	}
	if len(starved) == 0 {
		return ""
	}
	sum, of := 0, []string{}
	note := func(name, label string) {
		if n := starved[name]; n > 0 {
			sum += n
			of = append(of, fmt.Sprintf("%s %d", label, n))
		}
	}
	for _, t := range r.Sheet.Treatments {
		note(t.Name, t.Label)
	}
	for _, m := range r.Sheet.Mixes {
		note(m.Name, m.Label)
	}
	return fmt.Sprintf("%d of %s ran on a starved host: %s for over %g %% of the time, so that their values may be the machine's (%s). The rule \"host\" of plans has such attempts repeated.",
		sum, wording.Plural(counted, "attempt that counts", "attempts that count"), hosts(nodes, emulators), journal.StarvedShare*100, strings.Join(of, ", "))
}

// boundsUnknown is why transfers beside probes have no share of Ideal and of the coded
// bound; empty where there are none, or no bounds.
func (r *Run) boundsUnknown() string {
	if r.Sheet == nil || r.Place != journal.PlaceVirtual && r.Place != journal.PlaceEmulated {
		return ""
	}
	if !slices.ContainsFunc(r.Sheet.Trials, func(t runsheet.Trial) bool {
		return len(t.Probes) > 0 && len(t.Flows) == 1 && t.Flows[0].Duration == 0
	}) {
		return ""
	}
	return "Transfers beside probes have no share of Ideal or of the coded bound, which do not contain the load of the probes."
}
