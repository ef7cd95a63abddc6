package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// usedTreatment is a treatment over the runs that have it. A sweep may have set options of it.
type usedTreatment struct {
	name, label, protocol string
	probe                 bool
	runs                  []int
	version, remark       spread
	options               map[string]*spread
	carries               spread
}

// treatmentsOf are the treatments and mixes of all runs, in order, each once.
func treatmentsOf(v *report.Analysis) (out []*usedTreatment) {
	find := func(run int, name, label, protocol string) *usedTreatment {
		i := slices.IndexFunc(out, func(x *usedTreatment) bool { return x.name == name && x.protocol == protocol })
		if i < 0 {
			i = len(out)
			out = append(out, &usedTreatment{name: name, label: label, protocol: protocol, options: map[string]*spread{}})
		}
		out[i].runs = append(out[i].runs, run)
		return out[i]
	}
	sheetsOf(v, func(run int, _ *report.Run, s *runsheet.Sheet) {
		for i := range s.Treatments {
			t := &s.Treatments[i]
			x := find(run, t.Name, s.Label(t.Name), t.Protocol)
			x.probe = t.Probe
			x.version.add(run, t.DriverVersion)
			x.remark.add(run, treatmentRemark(t))
			x.carries.add(run, carriesText(s, t.Name))
			for _, key := range sortedKeys(t.Options) {
				if x.options[key] == nil {
					x.options[key] = &spread{}
				}
				x.options[key].add(run, optionText(t.Options[key]))
			}
		}
		for i := range s.Mixes {
			m := &s.Mixes[i]
			x := find(run, m.Name, s.Label(m.Name), "")
			x.carries.add(run, carriesText(s, m.Name))
			if m.Missing != "" {
				x.remark.add(run, "not run: "+m.Missing)
			}
		}
	})
	return out
}

// protocolsOf are the protocols of the treatments and of the relay processes that they pass.
func protocolsOf(v *report.Analysis) (out []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	sheetsOf(v, func(_ int, _ *report.Run, s *runsheet.Sheet) {
		for i := range s.Treatments {
			add(s.Treatments[i].Protocol)
			for _, via := range s.Treatments[i].Via {
				add(via.Protocol)
			}
		}
	})
	return out
}

// treatmentTable is the table of what was compared, with all options.
func treatmentTable(v *report.Analysis) []Block {
	all := len(v.Dataset.Runs)
	g := grid{
		caption: "Treatments",
		heads:   []string{"Treatment", "Name in the plan", "Protocol", "Driver", "Options", "A trial carries", "Remarks", "Runs"},
		mono:    []string{"Name in the plan"},
		notes:   []string{"Driver: the version that the plan was checked against. Options: as the run sheets have them, defaults of the driver included; values that a sweep has set are separated by a stroke."},
	}
	for _, x := range treatmentsOf(v) {
		if x.probe {
			continue
		}
		protocol := x.protocol
		if protocol == "" {
			protocol = "a mix"
		}
		g.add(x.label, x.name, protocol, x.version.text(len(x.runs), all), x.optionsText(), x.carries.text(len(x.runs), all), x.remark.text(len(x.runs), all), someRuns(x.runs, all))
	}
	return g.blocks()
}

// optionsText is all options with their values, by name.
func (x *usedTreatment) optionsText() string {
	var parts []string
	for _, key := range sortedKeys(x.options) {
		texts := x.options[key].texts
		text := key + " " + strings.Join(texts[:min(len(texts), mostSpread)], " / ")
		if more := len(texts) - mostSpread; more > 0 {
			text += fmt.Sprintf(" / %d more", more)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// mostOption is how many characters of an option are shown: some are whole traces.
const mostOption = 60

func optionText(value any) string {
	switch x := value.(type) {
	case float64:
		return exact(x)
	case string, bool, int64, int, json.Number:
		return wording.Clip(wording.Clean(fmt.Sprint(x)), mostOption)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "a value that cannot be shown"
	}
	return wording.Clip(wording.Clean(string(b)), mostOption)
}

// treatmentRemark is what a treatment's options do not say.
func treatmentRemark(t *runsheet.Treatment) string {
	var parts []string
	if t.Missing != "" {
		parts = append(parts, "not run: "+t.Missing)
	}
	for _, via := range t.Via {
		parts = append(parts, "passes "+strings.TrimSpace(via.Protocol+" "+via.DriverVersion)+" at the "+string(via.At))
	}
	if t.DSCP > 0 {
		parts = append(parts, fmt.Sprintf("DSCP %d", t.DSCP))
	}
	if t.SecondRadio {
		parts = append(parts, "uses the second radios")
	}
	if t.CompleteKnowledge {
		parts = append(parts, "is told rate and delay of the link")
	}
	return strings.Join(parts, "; ")
}

// carriesText is what one trial of a treatment or mix carries; empty: one transfer of the run's
// size from client to server, as most do.
func carriesText(s *runsheet.Sheet, name string) string {
	i := slices.IndexFunc(s.Trials, func(t runsheet.Trial) bool { return t.Treatment == name && len(t.Flows) > 0 })
	if i < 0 {
		return ""
	}
	flows := s.Trials[i].Flows
	if f := &flows[0]; len(flows) == 1 && f.Treatment == name && f.Duration == 0 && f.From == radio.RoleClient && f.To == radio.RoleServer {
		return ""
	}
	var texts []string
	count := map[string]int{}
	sessions := map[string][]int{}
	for k := range flows {
		f := &flows[k]
		text := flowText(s, f, f.Treatment != name)
		if f.Session > 0 {
			if slices.Contains(sessions[text], f.Session) {
				continue
			}
			sessions[text] = append(sessions[text], f.Session)
		}
		if count[text] == 0 {
			texts = append(texts, text)
		}
		count[text]++
	}
	for k, text := range texts {
		if len(flows) > 1 {
			texts[k] = fmt.Sprintf("%d × %s", count[text], text)
		}
	}
	return strings.Join(texts, "; ")
}

// flowText is a flow in words, with its treatment where that is another one than the trial's.
func flowText(s *runsheet.Sheet, f *runsheet.Flow, named bool) string {
	text := fmt.Sprintf("%s to %s", f.From, f.To)
	if named {
		text = s.Label(f.Treatment) + ", " + text
	}
	switch {
	case f.Session > 0:
		text += ", going on and off"
	case f.Duration > 0:
		text += " for " + lasting(f.Duration)
	default:
		text += ", " + unit.FormatBytes(f.SizeBytes)
	}
	if f.Start > 0 && f.Session == 0 {
		text += ", from " + lasting(f.Start) + " on"
	}
	return text
}

// probeTable is the table of the probes: what they send, and beside what.
func probeTable(v *report.Analysis) []Block {
	all := len(v.Dataset.Runs)
	beside := map[string]*spread{}
	sheetsOf(v, func(run int, _ *report.Run, s *runsheet.Sheet) {
		for i := range s.Trials {
			t := &s.Trials[i]
			for k := range t.Probes {
				p := &t.Probes[k]
				text := fmt.Sprintf("%s to %s", p.From, p.To)
				if name := t.Beside(); name == "" {
					text += " alone, for " + lasting(p.Duration)
				} else {
					text += " beside " + s.Label(name)
				}
				if beside[p.Treatment] == nil {
					beside[p.Treatment] = &spread{}
				}
				beside[p.Treatment].add(run, text)
			}
		}
	})
	g := grid{caption: "Probes", heads: []string{"Probe", "Driver", "Options", "Measured", "Remarks", "Runs"},
		notes: []string{"No value of a transfer is made of probes. The capacity of the link is shared between a probe and what it runs beside."}}
	for _, x := range treatmentsOf(v) {
		if !x.probe {
			continue
		}
		measured := ""
		if s := beside[x.name]; s != nil {
			measured = strings.Join(spreadLines(s, len(x.runs), all), "; ")
		}
		g.add(x.label, strings.TrimSpace(x.protocol+" "+x.version.text(len(x.runs), all)), x.optionsText(), measured, x.remark.text(len(x.runs), all), someRuns(x.runs, all))
	}
	return g.blocks()
}
