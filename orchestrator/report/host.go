package report

import (
	"fmt"
	"strings"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report/wording"
)

// starvedOn is what missed so much of an attempt's time that the attempt's figure may be
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
		n := len(r.Trials[i].Attempts)
		if n == 0 {
			continue
		}
		a := &r.Trials[i].Attempts[n-1]
		if a.Verdict != journal.Succeeded && a.Verdict != journal.Failed && a.Verdict != journal.TimedOut {
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
	return fmt.Sprintf("%d of %s ran on a starved host: %s for over %g %% of the time, so that their figures may be the machine's (%s). The rule \"host\" of plans has such attempts repeated.",
		sum, wording.Plural(counted, "attempt that counts", "attempts that count"), hosts(nodes, emulators), journal.StarvedShare*100, strings.Join(of, ", "))
}
