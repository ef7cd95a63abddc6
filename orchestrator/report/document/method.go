package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// method is how it was measured: runs, treatments, limits, rules, what is excluded, and the
// statisticsTable.
func method(v *report.Analysis) ([]Section, error) {
	var rules spread
	var stop spread
	n := sheetsOf(v, func(run int, _ *report.Run, s *runsheet.Sheet) {
		for _, text := range s.Valid.Describe() {
			rules.add(run, text)
		}
		if s.Stop != nil {
			stop.add(run, stopText(s.Stop))
		}
	})
	return chapterOf("method", "Method", factsOf(methodFacts(v, n)),
		partOf("method-runs", "Runs", runTable(v), sweepTable(v)),
		partOf("method-treatments", "Treatments", treatmentTable(v)),
		partOf("method-probes", "Probes", probeTable(v)),
		partOf("method-control", "Control packets", controlNotes(v)),
		partOf("method-valid", "Rules of validity", rulesOf(v, &rules, n)),
		partOf("method-stop", "Rule to stop by", listOf(spreadLines(&stop, n, len(v.Dataset.Runs)))),
		partOf("method-excluded", "Exclusions", exclusionTables(v)),
		partOf("method-statistics", "Statistics", statisticsTable(v))), nil
}

// orders are what the orders of trials mean.
var orders = map[string]string{
	"fixed":           "fixed: each iteration has the treatments in the order of the plan",
	"random":          "random: each iteration has the treatments in an order of its own, drawn from the seed",
	"counterbalanced": "counterbalanced: over iterations, each treatment comes equally often at each place and after each other one, as far as their number allows",
}

// methodFacts are what plan and sheets say of all trials.
func methodFacts(v *report.Analysis, sheets int) []Fact {
	var f spreadFacts
	sheetsOf(v, func(run int, _ *report.Run, s *runsheet.Sheet) {
		l := &s.Limits
		order := s.Order
		if text, known := orders[order]; known {
			order = text
		}
		f.add(run, "Plan", s.Plan)
		f.add(run, "Order of trials", order)
		f.add(run, "Iterations", strconv.Itoa(s.Iterations()))
		f.add(run, "Transfer size", unit.FormatPayload(s.Cell.SizeBytes))
		f.add(run, "Seed", strconv.FormatUint(s.Seed, 10)+"; all treatments of an iteration meet the same realisation of an emulated channel")
		f.add(run, "Limit to connect", lasting(l.Connect))
		f.add(run, "Limit of a transfer", lasting(l.Transfer))
		f.add(run, "Horizon of the time to delivery", lasting(l.DeliveryHorizon()))
		f.add(run, "Attempts of a trial", "at most "+strconv.Itoa(l.Attempts))
		f.add(run, "Pause between trials", lasting(l.Pause))
		wait := l.Wait
		if wait == 0 {
			wait = runsheet.DefaultWait
		}
		f.add(run, "Repetition for faults of the apparatus", "until "+lasting(wait)+" have passed; then the run pauses")
		f.add(run, "Control network", controlText(s))
		if s.SampleInterval > 0 {
			f.add(run, "Samples", "every "+lasting(s.SampleInterval))
		}
		if s.Capture {
			f.add(run, "Packet log", "of every trial")
		}
	})
	return f.facts(sheets, len(v.Dataset.Runs))
}

func controlText(s *runsheet.Sheet) string {
	if s.Control == runsheet.ControlInBand {
		share := s.WindowShare()
		return "in-band: control shares the radio, and nodes send none while a trial runs; windows between trials take at most " + percentOf(share) + " of the trials' time"
	}
	return "out-of-band: control has a network of its own"
}

// controlNotes say whether nodes and orchestrator were silent during attempts, with in-band
// control.
func controlNotes(v *report.Analysis) []Block {
	var notes spread
	of := 0
	for i := range v.Tables {
		if text := v.Tables[i].ControlNote; text != "" {
			of++
			notes.add(i, text)
		}
	}
	all := spreadLines(&notes, of, len(v.Tables))
	if more := len(all) - mostSpread; more > 0 {
		all = append(all[:mostSpread], fmt.Sprintf("%d more are in the results of each run.", more))
	}
	return listOf(all)
}

// runTable numbers the runs: other tables name them by these numbers.
func runTable(v *report.Analysis) []Block {
	g := grid{
		caption: "Runs",
		heads:   []string{"Run", "Setting", "Radio", "Place", "Measured", "Size", "Iterations", "Trials", "State"},
		numbers: []string{"Run", "Size", "Iterations", "Trials"},
		notes:   []string{"Other tables name runs by these numbers."},
	}
	for i := range v.Tables {
		t := &v.Tables[i]
		size := ""
		if t.RadioTitle != "" {
			size = unit.FormatPayload(t.SizeBytes)
		}
		state := t.State
		if t.Message != "" {
			state += ": " + t.Message
		}
		g.add(strconv.Itoa(i+1), settingsOf(t), t.RadioTitle, t.TopologyTitle, t.Place, size, strconv.Itoa(t.Iterations), strconv.Itoa(len(v.Dataset.Runs[i].Trials)), state)
	}
	return g.blocks()
}

// mostValues is how many values of an axis are written out.
const mostValues = 40

// sweepTable are the axes of the plan's sweep and their values.
func sweepTable(v *report.Analysis) []Block {
	type axis struct{ name, parameter string }
	values, order := map[axis][]string{}, []axis{}
	sheetsOf(v, func(_ int, _ *report.Run, s *runsheet.Sheet) {
		for _, x := range s.Cell.Settings {
			key := axis{x.Axis, x.Parameter}
			if values[key] == nil {
				order = append(order, key)
			}
			value := x.Value
			if value == "" {
				value = x.Label
			}
			if !slices.Contains(values[key], value) {
				values[key] = append(values[key], value)
			}
		}
	})
	g := grid{caption: "What differs between runs by the plan's sweep", heads: []string{"Axis", "Parameter", "Values"}}
	for _, key := range order {
		all := values[key]
		text := strings.Join(all[:min(len(all), mostValues)], ", ")
		if more := len(all) - mostValues; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		g.add(key.name, key.parameter, text)
	}
	return g.blocks()
}

// rulesOf are the rules of validity, and of how many attempts it is not known whether they were
// broken.
func rulesOf(v *report.Analysis, rules *spread, sheets int) []Block {
	if len(rules.texts) == 0 {
		return nil
	}
	undecided := 0
	for i := range v.Dataset.Runs {
		for j := range v.Dataset.Runs[i].Trials {
			for _, a := range v.Dataset.Runs[i].Trials[j].Attempts {
				if len(a.Undecided) > 0 {
					undecided++
				}
			}
		}
	}
	blocks := paragraphs("An attempt counts where:")
	blocks = append(blocks, listOf(spreadLines(rules, sheets, len(v.Dataset.Runs)))...)
	if undecided > 0 {
		blocks = append(blocks, paragraphs("It is not known of "+wording.Plural(undecided, "attempt", "attempts")+" whether a rule was broken; they count.")...)
	}
	return blocks
}

// spreadLines are the texts of a spread, a line each, with the runs where these are not all.
func spreadLines(s *spread, of, all int) (out []string) {
	for i, text := range s.texts {
		if len(s.runs[i]) < of {
			text += " (" + runsText(s.runs[i], all) + ")"
		}
		out = append(out, text)
	}
	return out
}

func stopText(s *runsheet.Stop) string {
	return fmt.Sprintf("The rule looks %s. Over all looks and comparisons, the probability that a treatment is found beaten by one that is no better is at most %s; this level is divided over the looks by the spending function %s.", report.StopLooks(s), exact(s.Alpha), s.Spending)
}
