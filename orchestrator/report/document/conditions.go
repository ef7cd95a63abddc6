package document

import (
	"fmt"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// conditions are what was measured over: what was emulated and what was real, radios, places,
// nodeTables and clocks, and what of them is not known.
func conditions(v *report.Analysis) ([]Section, error) {
	return chapterOf("conditions", "Conditions", measuredAt(v),
		partOf("conditions-radios", "Radios", radioBlocks(v)),
		partOf("conditions-places", "Places", placeBlocks(v)),
		partOf("conditions-nodes", "Nodes", nodeTables(v)),
		partOf("conditions-drivers", "Drivers", driverTable(v)),
		partOf("conditions-settings", "Settings of the kernel", kernelSettings(v)),
		partOf("conditions-clocks", "Clocks", clockTable(v)),
		partOf("conditions-unknown", "What is not known", listOf(unknowns(v)))), nil
}

// whatWasReal says of each place at which runs can take place what is real there.
var whatWasReal = map[string]string{
	journal.PlaceVirtual:  "The radios are emulated, in virtual time: the clock of the nodes jumps over every wait. Kernel, transports, drivers and packets are real; rate, delay, queue and losses of the radios are those of the emulator; what a processor takes is not in any value. Times of day are those of the lab's clock.",
	journal.PlaceEmulated: "The radios are emulated, in real time, on one machine. Kernel, transports, drivers and packets are real; rate, delay, queue and losses of the radios are those of the emulator.",
	journal.PlaceReal:     "The radios are real: nothing of the link is emulated.",
	journal.PlaceUnnamed:  "The radio is real, and nobody has named it: it is whatever the interface of the node is connected to. The radio that the plan names is not vouched for.",
}

// measuredAt says where the runs took place, what was emulated, and what was imported.
func measuredAt(v *report.Analysis) []Block {
	var at spread
	for i := range v.Dataset.Runs {
		if r := &v.Dataset.Runs[i]; r.Place != "" {
			at.add(i, r.Place)
		}
	}
	var texts []string
	for i, place := range at.texts {
		text := "Measured at: " + place
		if runs := someRuns(at.runs[i], len(v.Dataset.Runs)); runs != "" {
			text += " (" + runs + ")"
		}
		texts = append(texts, strings.TrimSpace(text+". "+whatWasReal[place]))
	}
	for i := range v.Dataset.Runs {
		if v.Dataset.Runs[i].Imported != nil {
			texts = append(texts, "Measured by another orchestrator: "+v.Dataset.Imported()+". This report follows from its attempts; who measured them vouches for them.")
			break
		}
	}
	return paragraphs(texts...)
}

// unknowns are what of the conditions nobody knows, each a line.
func unknowns(v *report.Analysis) (out []string) {
	all := len(v.Dataset.Runs)
	var sheets, nodes []int
	for i := range v.Dataset.Runs {
		r := &v.Dataset.Runs[i]
		switch {
		case r.Sheet == nil:
			sheets = append(sheets, i)
		case len(r.Provenance) == 0:
			nodes = append(nodes, i)
		}
	}
	if len(sheets) > 0 {
		out = append(out, "The run sheet, and so radio, place and method, of "+runsText(sheets, all)+".")
	}
	if len(nodes) > 0 {
		out = append(out, "What the nodes were (kernel, settings, versions) in "+runsText(nodes, all)+": nothing of it arrived.")
	}
	if n := v.Dataset.Unnamed(); n > 0 {
		out = append(out, fmt.Sprintf("Which radio was used in %s: nobody has named it.", wording.Plural(n, "run", "runs")))
	}
	for _, x := range radiosOf(v) {
		var names []string
		for i := range x.profile.Parameters {
			if p := &x.profile.Parameters[i]; p.Unknown {
				names = append(names, parameterName(p.Name))
			}
		}
		if len(names) > 0 {
			out = append(out, "Of the radio "+x.profile.Title+", as no source gives it: "+strings.Join(names, ", ")+".")
		}
	}
	return append(out, clockUnknowns(v)...)
}

// clockUnknowns are why nodes' clocks were not compared, with the runs.
func clockUnknowns(v *report.Analysis) (out []string) {
	var why spread
	sheetsOf(v, func(run int, r *report.Run, _ *runsheet.Sheet) {
		if emulatedRun(r) { // one machine, one clock
			return
		}
		for _, node := range sortedKeys(r.Clocks) {
			for _, c := range r.Clocks[node] {
				if c.Unknown != "" {
					why.add(run, c.Unknown)
				}
			}
		}
	})
	for i, text := range why.texts {
		out = append(out, "How nodes' clocks differ from the orchestrator's, in "+runsText(why.runs[i], len(v.Dataset.Runs))+": "+text+".")
	}
	return out
}
