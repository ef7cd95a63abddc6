package document

import (
	"regexp"
	"slices"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
)

// usedRadio is a radio profile with the runs that used it. A sweep may have set parameters of
// its emulation, so that these differ between the runs.
type usedRadio struct {
	profile   *radio.Profile
	second    bool // the second radio of the nodes
	runs      []int
	emulated  []int // those of the runs in which it was emulated
	unnamed   []int // those that used a radio which nobody has named
	swept     bool  // a sweep has set parameters of its emulation
	emulation spreadFacts
}

// radiosOf are the radios of all runs, each once.
func radiosOf(v *report.Analysis) (out []*usedRadio) {
	add := func(run int, r *report.Run, p *radio.Profile, second bool) {
		i := slices.IndexFunc(out, func(x *usedRadio) bool {
			return x.profile.Name == p.Name && x.profile.Hash == p.Hash && x.second == second
		})
		if i < 0 {
			i = len(out)
			out = append(out, &usedRadio{profile: p, second: second})
		}
		x := out[i]
		x.runs = append(x.runs, run)
		if r.Unnamed() {
			x.unnamed = append(x.unnamed, run)
		}
		x.swept = x.swept || slices.ContainsFunc(r.Sheet.Cell.Settings, ofRadio)
		if emulatedRun(r) && p.Emulation != nil {
			x.emulated = append(x.emulated, run)
			emulationFacts(&x.emulation, run, p.Emulation, r.Sheet.Topology.Name)
		}
	}
	sheetsOf(v, func(run int, r *report.Run, s *runsheet.Sheet) {
		add(run, r, &s.Radio, false)
		if s.Topology.Second != nil && s.Topology.Second.Profile != nil {
			add(run, r, s.Topology.Second.Profile, true)
		}
	})
	return out
}

// ofRadio reports whether a sweep's parameter is one of the radio's emulation, as against
// options of treatments, flows, and the campaign that a comparison adds.
func ofRadio(c runsheet.Setting) bool {
	return c.Parameter != "" && !strings.HasPrefix(c.Parameter, "option.") && !strings.HasPrefix(c.Parameter, "flows.")
}

// radioBlocks describes each radio once: what it is, its parameters with their sources, and how it
// was emulated.
func radioBlocks(v *report.Analysis) (blocks []Block) {
	all := len(v.Dataset.Runs)
	for _, x := range radiosOf(v) {
		title := x.profile.Title
		if title == "" {
			title = x.profile.Name
		}
		if x.second {
			title += ", the second radio of each node"
		}
		if runs := someRuns(x.runs, all); runs != "" {
			title += " (" + runs + ")"
		}
		text := title + "."
		if len(x.unnamed) > 0 {
			text += " This is what the plan says. In " + runsText(x.unnamed, all) + " the radio was a " + journal.PlaceUnnamed + ", and nobody vouches for it having these parameters."
		}
		blocks = append(blocks, paragraphs(text)...)
		blocks = append(blocks, factsOf(x.identity())...)
		blocks = append(blocks, x.parameters(title)...)
		blocks = append(blocks, listOf(slices.Clone(x.profile.Notes))...)
		blocks = append(blocks, x.emulatedAs(all)...)
	}
	return blocks
}

// identity is what the radio is, as configured.
func (x *usedRadio) identity() (out []Fact) {
	p := x.profile
	for _, f := range []Fact{
		{Name: "Profile", Value: p.Name}, {Name: "Manufacturer", Value: p.Manufacturer}, {Name: "Model", Value: p.Model},
		{Name: "Firmware", Value: p.Firmware}, {Name: "Waveform", Value: p.Waveform},
	} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	if p.Attach != nil && p.Attach.Reach != "" {
		out = append(out, Fact{Name: "Attached", Value: p.Attach.Reach + " (source: " + p.Attach.Source + ")"})
	}
	return cleanFacts(out)
}

// parameters is the table of every parameter with its source. Those of the emulation are in it
// where the radio was emulated.
func (x *usedRadio) parameters(title string) []Block {
	g := grid{caption: "Parameters of " + title, heads: []string{"Parameter", "Value", "Certainty", "Source"}, numbers: []string{"Value"}}
	for _, emulation := range []bool{false, true} {
		first := true
		for i := range x.profile.Parameters {
			p := &x.profile.Parameters[i]
			if strings.HasPrefix(p.Name, emulationPrefix) != emulation || emulation && len(x.emulated) == 0 {
				continue
			}
			certainty := ""
			switch {
			case p.Unknown:
				certainty = "unknown: no source gives it"
			case p.Uncertain:
				certainty = "uncertain: its source doubts it"
			}
			name := parameterName(p.Name)
			if emulation {
				name = "emulated " + name
			}
			cells := []string{name, parameterValue(p), certainty, p.Source}
			if emulation && first && len(g.rows) > 0 {
				g.group(cells...)
			} else {
				g.add(cells...)
			}
			first = false
		}
	}
	if x.swept {
		g.notes = []string{"Emulated parameters are those of the profile. The plan's sweep has set some of them: the list below has the values that hold."}
	}
	return g.blocks()
}

// emulatedAs is how the radio was emulated, in words.
func (x *usedRadio) emulatedAs(all int) []Block {
	if len(x.emulated) == 0 {
		return nil
	}
	text := "Emulated as follows"
	if len(x.emulated) < len(x.runs) {
		text += " in " + runsText(x.emulated, all)
	}
	return append(paragraphs(text+". Rates, delays and overheads are of one hop."), factsOf(x.emulation.facts(len(x.emulated), all))...)
}

// emulationPrefix begins the names of parameters of the emulation.
const emulationPrefix = "emulation."

var siteParameter = regexp.MustCompile(`^emulation\.sites\.([^.]+)\.(.*)$`)

// parameterName is what pages call a parameter, too (web/src/lib/profile.ts):
// "channel_bandwidth" is "channel bandwidth", "emulation.sites.k-lot.rate" is "rate at k-lot".
func parameterName(name string) string {
	if m := siteParameter.FindStringSubmatch(name); m != nil {
		name = m[2] + " at " + m[1]
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, emulationPrefix), "_", " ")
}

func parameterValue(p *radio.Parameter) string {
	switch {
	case p.Unknown:
		return "not known"
	case p.Unit == "bit/s":
		return unit.FormatRate(p.Value)
	}
	return strings.TrimSpace(exact(p.Value) + " " + p.Unit)
}
