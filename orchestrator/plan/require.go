package plan

import (
	"slices"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
)

// requirement is an entry of require as it was read; its names are resolved once the runs are
// known.
type requirement struct {
	at   yamldoc.Value
	keys yamlschema.Fields
	// bounds is the mapping of the metric.
	bounds yamlschema.Fields
	// made is the requirement that it makes of each treatment or probe that it is about.
	made runsheet.Requirement
}

// requirements reads what is required, as far as that takes no names of the plan.
func (ps *parser) requirements(v yamldoc.Value) (out []requirement) {
	list := v.List()
	if v.IsList() && (len(list) == 0 || len(list) > maxRequired) {
		v.Problem("expected 1 to %d requirements, found %d", maxRequired, len(list))
		return nil
	}
	for i, e := range list {
		r := requirement{at: e, keys: requireKeys.Read(e), made: runsheet.Requirement{Entry: i + 1}}
		if e.IsMapping() && r.readMetric() {
			out = append(out, r)
		}
	}
	return out
}

// readMetric reads the one metric of a requirement with its bounds.
func (r *requirement) readMetric() bool {
	var given, all []string
	for _, m := range runsheet.Metrics {
		if all = append(all, string(m)); r.keys.Field(string(m)).Given() {
			given, r.made.Metric = append(given, string(m)), m
		}
	}
	if len(given) != 1 {
		r.at.Problem("expected one metric (%s), found %s", strings.Join(all, ", "), orNothing(given))
		return false
	}
	v, k := r.keys.Value(given[0])
	v.Required()
	r.bounds = k.Form.Mapping.Read(v)
	r.made.AtLeast, r.made.AtMost = r.bound("at_least"), r.bound("at_most")
	low, high := r.bounds.Field("at_least"), r.bounds.Field("at_most")
	switch {
	case r.made.Metric == runsheet.MetricDelivered:
		r.made.By = r.bounds.Duration("by")
	case v.IsMapping() && !low.Given() && !high.Given() && (r.made.Metric == runsheet.MetricAverage || r.made.Metric == runsheet.MetricRatioTo):
		v.Problem("expected at_least, at_most or both")
	case r.made.AtLeast != nil && r.made.AtMost != nil && *r.made.AtLeast > *r.made.AtMost:
		low.Problem("%s is more than at_most, %s: no value meets both", low.String(""), high.String(""))
	}
	return v.IsMapping()
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// bound reads at_least or at_most in the metric's unit; nil: there is none.
func (r *requirement) bound(name string) *float64 {
	k := requireKeys.Key(string(r.made.Metric)).Form.Mapping.Key(name)
	if k == nil {
		return nil
	}
	v := r.bounds.Field(name)
	if k.Required {
		v = v.Required()
	}
	var x *float64
	switch {
	case !v.Present():
		return nil
	case k.Form.Type == yamlschema.TypeDuration:
		ms := float64(r.bounds.Duration(name)) / float64(time.Millisecond)
		x = &ms
	case k.Form.Type == yamlschema.TypeEither:
		x = throughput(v)
	default:
		if x, _ = number(v, "%", true, k.Form.Lo, k.Form.Hi); x != nil {
			*x /= 100
		}
	}
	if !v.OK() {
		return nil
	}
	return x
}

// throughput reads a throughput in KB/s of 1024 bytes, which may be written as a rate.
func throughput(v yamldoc.Value) *float64 {
	s := v.String("")
	if !v.OK() {
		return nil
	}
	if strings.HasSuffix(strings.TrimSpace(s), metricKBps) {
		x, _ := number(v, metricKBps, true, 0, maxKBps)
		return x
	}
	bps, err := unit.BitsPerSecond(s)
	x := bps / 8 / unit.KB
	if err != nil || !(x >= 0 && x <= maxKBps) {
		v.Problem(`expected a throughput such as "100 KB/s" or "1 Mbit/s", found %q`, s)
		return nil
	}
	return &x
}

// require resolves the requirements for every run.
func (ps *parser) require(all []requirement) {
	made := 0
	for i := range all {
		r := &all[i]
		applies := ps.runsOf(r)
		treatments, ok := ps.subjects(r)
		if applies == nil || !ok {
			continue
		}
		before := made
		for k := range ps.plan.Cells {
			c := &ps.plan.Cells[k]
			if !applies(c) {
				continue
			}
			of := r.of(c, treatments)
			if made += len(of); made > maxRequirements {
				r.at.Problem("what is required up to here makes more than %d requirements of single runs and treatments: limit it by treatment, radio, topology or group", maxRequirements)
				return
			}
			if len(of) > 0 && !r.canBeMet(c, of) {
				break
			}
			c.Require = append(c.Require, of...)
		}
		if made == before {
			r.at.Problem("no run of the plan has what is required here: its treatments or probe, at its radio, topology, group and conditions")
		}
	}
}

// runsOf reads which runs a requirement is about; nil: a name is wrong, or no run is.
func (ps *parser) runsOf(r *requirement) func(*Cell) bool {
	p := ps.plan
	var radios, topologies []string
	for _, c := range p.Cells {
		if !slices.Contains(radios, c.Radio.Name) {
			radios = append(radios, c.Radio.Name)
		}
		if !slices.Contains(topologies, c.Topology.Name) {
			topologies = append(topologies, c.Topology.Name)
		}
	}
	at := names(r.keys.Field("radio"), "radio of the plan", radios)
	in := names(r.keys.Field("topology"), "topology of the plan", topologies)
	group, where := "", r.keys.Field("where")
	switch g := r.keys.Field("group"); {
	case g.Present():
		group, _ = known(g, "group", p.Groups)
	case where.Present() && len(p.Groups) > 0:
		where.Problem("needs group: each group has axes of its own")
	}
	var conds []Condition
	if where.OK() && (group != "" || len(p.Groups) == 0) {
		axes := ps.axes[group]
		conds, _ = conditions(where.Mapping(axisNames(axes)...), axes)
	}
	for _, key := range []string{"radio", "topology", "group", "where"} {
		if f := r.keys.Field(key); f.Present() && !f.OK() {
			return nil
		}
	}
	return func(c *Cell) bool {
		sc := c.Sheet(0)
		return (at == nil || slices.Contains(at, sc.Radio)) && (in == nil || slices.Contains(in, sc.Topology)) && (group == "" || sc.Group == group) && Meets(&sc, conds)
	}
}

// subjects reads the treatments and the probe that a requirement names; no treatments: it is of
// every one.
func (ps *parser) subjects(r *requirement) (treatments []string, ok bool) {
	metric, probe, of := r.keys.Field(string(r.made.Metric)), r.keys.Field("probe"), r.keys.Field("treatment")
	var all, carriers, probes []string
	for _, t := range ps.plan.Treatments {
		if all = append(all, t.Name); t.Probe {
			probes = append(probes, t.Name)
		} else {
			carriers = append(carriers, t.Name)
		}
	}
	switch {
	case r.made.Metric.OfProbes() && !probe.Present():
		metric.Problem("is a metric of probes: name one with probe")
		return nil, false
	case !r.made.Metric.OfProbes() && probe.Present():
		metric.Problem("is a metric of transfers, and probe %q carries none", probe.String(""))
		return nil, false
	case probe.Present():
		r.made.Probe = ps.subject(probe, all, probes, "a probe")
		treatments = names(of, "treatment", trialNames(ps.plan))
		return treatments, r.made.Probe != "" && (!of.Present() || of.OK())
	}
	for _, e := range oneOrMany(of) {
		name := ps.subject(e, all, carriers, "a treatment that carries transfers")
		if slices.Contains(treatments, name) && name != "" {
			e.Problem("treatment %q is given twice", name)
		}
		treatments = append(treatments, name)
	}
	if r.made.Metric == runsheet.MetricRatioTo {
		to := r.bounds.Field("treatment").Required()
		r.made.Reference = ps.subject(to, all, carriers, "a treatment that carries transfers")
		if r.made.Reference == "" {
			return nil, false
		}
		if slices.Contains(treatments, r.made.Reference) {
			to.Problem("treatment %q would be held against itself", r.made.Reference)
			return nil, false
		}
	}
	return treatments, !slices.Contains(treatments, "") && (!of.Present() || of.OK())
}

// subject reads the name of a treatment that is one of some; empty: a problem is noted.
func (ps *parser) subject(v yamldoc.Value, all, some []string, what string) string {
	name := v.String("")
	switch {
	case !v.OK():
		return ""
	case slices.ContainsFunc(ps.plan.Mixes, func(m Mix) bool { return m.Name == name }):
		v.Problem("%q is a mix of several treatments, expected %s", name, what)
		return ""
	case slices.Contains(all, name) && !slices.Contains(some, name):
		v.Problem("%q is not %s", name, what)
		return ""
	}
	name, _ = known(v, "treatment", some)
	return name
}

// of is what the entry requires of a run.
func (r *requirement) of(c *Cell, treatments []string) (out []runsheet.Requirement) {
	picked := func(name string) bool { return treatments == nil || slices.Contains(treatments, name) }
	if r.made.Probe != "" {
		for _, name := range c.Runnable() {
			for _, p := range c.ProbesOf(name) {
				one := r.made
				if one.From = p.From; name != p.Treatment {
					one.Treatment = name
				}
				if p.Treatment == one.Probe && picked(name) {
					out = append(out, one)
				}
			}
		}
		return out
	}
	has := func(name string) bool {
		return slices.ContainsFunc(c.Treatments, func(t runsheet.Treatment) bool { return t.Name == name && !t.Probe })
	}
	if r.made.Reference != "" && !has(r.made.Reference) {
		return nil
	}
	for _, t := range c.Treatments {
		// Of every treatment, one that is known to be missing is not judged.
		if t.Probe || !picked(t.Name) || t.Name == r.made.Reference || treatments == nil && t.Missing != "" {
			continue
		}
		one := r.made
		one.Treatment = t.Name
		out = append(out, one)
	}
	return out
}
