package plan

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
)

const (
	maxFailed = 200 // combinations of a sweep that are tried although they are wrong: each value is noted once
)

// groups reads the experiments of a plan; each takes from the plan what it does not state.
func (ps *parser) groups(v yamldoc.Value, r yamldoc.Mapping) {
	list := v.List()
	if v.IsList() && (len(list) == 0 || len(list) > maxGroups) {
		v.Problem("expected 1 to %d groups, found %d", maxGroups, len(list))
		return
	}
	for _, e := range list {
		m := groupKeys.Read(e)
		n := name(m.Field("name"))
		if n != "" && slices.Contains(ps.plan.Groups, n) {
			m.Field("name").Problem("group %q is given twice", n)
		}
		ps.plan.Groups = append(ps.plan.Groups, n)
		for _, note := range notes(m.Field("notes")) {
			ps.plan.Notes = append(ps.plan.Notes, n+": "+note)
		}
		if e.IsMapping() {
			ps.cells(n, m.Mapping, r)
		}
	}
}

// cells reads the cells of a group, or of the whole plan where g is r.
func (ps *parser) cells(group string, g, r yamldoc.Mapping) {
	pick := func(key string) yamldoc.Value {
		if f := g.Field(key); f.Present() {
			return f
		}
		return r.Field(key)
	}
	base := ps.baseCell(group, g)
	ps.placeStop(&base, g, pick("iterations"))
	base.Flows = ps.flows(pick("flows"))
	ps.placeProbes(&base, pick("probes"))
	ps.checkFlows(&base, pick("flows"), r.Field("mixes"))

	radios := names(pick("radio").Required(), "radio", ps.cat.Profiles())
	ps.checkReadings(base.Valid, radios)
	topologies := names(pick("topology").Required(), "topology", ps.cat.Topologies())
	x := crossing{base: base, radios: radios, topologies: topologies, sizes: ps.sizes(&base, pick("size"), pick("topology"), topologies), sweep: ps.sweep(pick("sweep"))}
	x.base.Where = ps.place(pick("radio"))
	ps.axes[group] = append([]axis{{name: "radio", labels: radios}, {name: "topology", labels: topologies}, sizeAxis(x.sizes, topologies)}, x.sweep...)
	for _, tn := range topologies {
		ps.checkRoles(&base, ps.cat.Topology(tn), pick("flows"), r.Field("mixes"))
		ps.checkVia(&base, ps.cat.Topology(tn))
	}
	n := x.count()
	if ps.cellCount > maxCells {
		return // noted with the group before
	}
	if ps.cellCount += n; ps.cellCount > maxCells {
		if ps.cellCount == n {
			firstPresent(pick("sweep"), pick("size"), pick("radio")).Problem("makes %s runs, at most %d fit in a plan", formatCount(n), maxCells)
		} else {
			r.Field("groups").Problem("make %s runs up to group %s, at most %d fit in a plan", formatCount(ps.cellCount), group, maxCells)
		}
		return
	}
	if n == 0 {
		return
	}
	drafts, ok := ps.cross(&x)
	if !ok {
		return // what is excluded of the rest says nothing
	}
	had := len(drafts)
	excludes := pick("exclude").List()
	if len(excludes) > maxExcludes {
		pick("exclude").Problem("expected at most %d entries, found %d", maxExcludes, len(excludes))
		excludes = nil
	}
	for _, v := range excludes {
		drafts = exclude(drafts, v, ps.axes[group])
	}
	if had > 0 && len(drafts) == 0 {
		pick("exclude").Problem("nothing is left to run")
	}
	for i := range drafts {
		ps.count.add(&drafts[i].Cell)
		drafts[i].sweep = x.sweep
	}
	ps.drafts = append(ps.drafts, drafts...)
}

// make makes the cells of all groups, once their number is known.
func (ps *parser) make() {
	for i, failed := 0, 0; i < len(ps.drafts) && failed < maxFailed && ps.going(); i++ {
		if !ps.apply(&ps.drafts[i]) {
			failed++
			continue
		}
		ps.plan.Cells = append(ps.plan.Cells, ps.drafts[i].Cell)
	}
}

func (ps *parser) place(v yamldoc.Value) Place {
	line, column := v.Position()
	return Place{File: ps.file, Line: line, Column: column}
}

func firstPresent(vs ...yamldoc.Value) yamldoc.Value {
	for _, v := range vs {
		if v.Present() {
			return v
		}
	}
	return vs[0]
}

// formatCount writes a number that may be beyond every integer.
func formatCount(n float64) string {
	if n < 1e15 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

// baseCell is what all cells of a group have in common: what the group states,
// else what the plan does.
func (ps *parser) baseCell(group string, g yamldoc.Mapping) Cell {
	p := ps.plan
	base := Cell{Group: group, Iterations: p.Iterations, Limits: p.Limits, Valid: p.Valid, SampleInterval: p.SampleInterval}
	if group == "" {
		ps.choose(&base, yamldoc.Value{})
		return base
	}
	if f := g.Field("iterations"); f.Present() {
		base.Iterations = planKeys.Fields(g).Int("iterations")
	}
	if f := g.Field("limits"); f.Present() {
		base.Limits = limits(f)
	}
	if f := g.Field("valid"); f.Present() {
		base.Valid = ps.valid(f)
	}
	if f := g.Field("sample_interval"); f.Present() {
		base.SampleInterval = planKeys.Fields(g).Duration("sample_interval")
	}
	ps.choose(&base, g.Field("treatments"))
	return base
}

// crossing is a group's cells before they are made: every radio at every
// topology with each of its sizes and each combination of the sweep.
type crossing struct {
	base               Cell
	radios, topologies []string
	sizes              map[string][]int64 // by topology
	sweep              []axis
}

// count is how many cells that makes.
func (x *crossing) count() float64 {
	combinations := 1.0
	for _, a := range x.sweep {
		combinations *= float64(max(1, len(a.values)))
	}
	n := 0.0
	for _, tn := range x.topologies {
		n += float64(len(x.radios)*len(x.sizes[tn])) * combinations
	}
	return n
}

// draft is a cell to which its combination of the sweep's values has still to be
// applied, as far as that takes more than counting.
type draft struct {
	Cell
	sweep []axis
	at    []int // which value of each axis
}

// cross drafts the cells; not ok where a number of flows or a duration in the
// sweep is wrong.
func (ps *parser) cross(x *crossing) (drafts []draft, ok bool) {
	combinations := combine(x.sweep)
	ok = true
	for _, rn := range x.radios {
		for _, tn := range x.topologies {
			for _, size := range x.sizes[tn] {
				for _, at := range combinations {
					d := draft{Cell: x.base, at: at}
					d.Radio, d.Topology, d.SizeBytes = ps.cat.Profile(rn), ps.cat.Topology(tn), size
					ok = d.settle(x.sweep) && ok
					drafts = append(drafts, d)
				}
			}
		}
	}
	return drafts, ok
}

// choose is the treatments and mixes of a group: those it names, or all.
func (ps *parser) choose(c *Cell, v yamldoc.Value) {
	p := ps.plan
	all := trialNames(p)
	chosen := all
	if v.Present() && !ps.misnamed {
		chosen = names(v, "treatment", all)
	}
	for _, m := range p.Mixes {
		if slices.Contains(chosen, m.Name) {
			c.Mixes = append(c.Mixes, m)
		}
	}
	for _, t := range p.Treatments {
		inMix := slices.ContainsFunc(c.Mixes, func(m Mix) bool {
			return slices.ContainsFunc(m.Flows, func(f FlowSpec) bool { return f.Treatment == t.Name })
		})
		switch {
		case slices.Contains(chosen, t.Name):
			c.Treatments = append(c.Treatments, t)
		case inMix:
			c.Listeners = append(c.Listeners, t)
		}
	}
	if v.Present() && len(chosen) > 0 && len(c.Runnable()) == 0 && len(p.Runnable()) > 0 {
		ps.plan.Notes = append(ps.plan.Notes, "Group "+c.Group+" has only treatments that are missing; it is listed and has no trials.")
	}
}

// allFlows is the flows of the cell's treatments and mixes with the value that each was read from.
func (c *Cell) allFlows(flows, mixes yamldoc.Value, f func(FlowSpec, yamldoc.Value)) {
	for _, x := range c.Flows {
		f(x, flows)
	}
	for _, m := range c.Mixes {
		for _, x := range m.Flows {
			f(x, mixes)
		}
	}
}

func (ps *parser) checkFlows(c *Cell, flows, mixes yamldoc.Value) {
	c.allFlows(flows, mixes, func(f FlowSpec, v yamldoc.Value) {
		c.checkDuration(f.Duration, v)
	})
}

// checkDuration notes a problem with a flow that would be cut off. It reports
// whether there is none.
func (c *Cell) checkDuration(d time.Duration, v yamldoc.Value) bool {
	if d > c.Limits.Transfer {
		v.Problem("a flow of %s is longer than the limit of a transfer, %s", d, c.Limits.Transfer)
		return false
	}
	return true
}

func (ps *parser) checkRoles(c *Cell, t *radio.Topology, flows, mixes yamldoc.Value) {
	c.allFlows(flows, mixes, func(f FlowSpec, v yamldoc.Value) {
		for _, role := range []radio.Role{f.From, f.To} {
			if t.Station(role) == nil {
				v.Problem("a flow from %s to %s, but topology %s has no %s", f.From, f.To, t.Name, role)
			}
		}
	})
}

// sizes is the transfer sizes of each topology. They may be left out where no
// flow needs one.
func (ps *parser) sizes(c *Cell, v, at yamldoc.Value, topologies []string) map[string][]int64 {
	needed := false
	c.allFlows(v, v, func(f FlowSpec, _ yamldoc.Value) { needed = needed || f.SizeBytes == 0 && f.Duration == 0 })
	if len(c.Mixes) == 0 && len(c.Treatments) > 0 && !slices.ContainsFunc(c.Treatments, func(t runsheet.Treatment) bool { return !t.Probe }) {
		needed = false // probes alone carry no payload
	}
	out := map[string][]int64{}
	switch {
	case needed:
		v.Required()
	case !v.Present():
		for _, t := range topologies {
			out[t] = []int64{0}
		}
		return out
	}
	if !v.IsMapping() {
		all := sizes(v)
		for _, t := range topologies {
			out[t] = all
		}
		return out
	}
	m := v.Mapping()
	for _, key := range m.Keys() {
		if at.OK() && !slices.Contains(topologies, key) {
			m.Key(key).Problem("topology %q is not one of the plan's%s; %s", key, yamldoc.Suggest(key, topologies), listed(topologies))
		}
		out[key] = sizes(m.Field(key))
	}
	for _, t := range topologies {
		if at.OK() && !m.Field(t).Given() {
			v.Problem("no size for topology %s", t)
		}
	}
	return out
}

func sizeAxis(sizesOf map[string][]int64, topologies []string) axis {
	a := axis{name: "size"}
	for _, t := range topologies {
		for _, s := range sizesOf[t] {
			if l := unit.FormatBytes(s); !slices.Contains(a.labels, l) {
				a.labels = append(a.labels, l)
			}
		}
	}
	return a
}

// conditions reads a mapping from axes to values; not ok when something in it is wrong.
func conditions(m yamldoc.Mapping, axes []axis) (out []Condition, ok bool) {
	ok = true
	for _, a := range axes {
		f := m.Field(a.name)
		if !f.Present() {
			continue
		}
		value, good := "", false
		if a.name == "size" {
			n := f.Bytes(-1)
			value, good = unit.FormatBytes(n), n >= 0
		} else {
			kind := a.name
			if a.name == "radio" || a.name == "topology" {
				kind += " of the plan"
			}
			value, good = known(f, kind, a.labels)
		}
		ok = ok && good
		out = append(out, Condition{a.name, value})
	}
	return out, ok
}

func axisNames(axes []axis) (out []string) {
	for _, a := range axes {
		out = append(out, a.name)
	}
	return out
}

// exclude takes the cells out that one entry of the list describes.
func exclude(cells []draft, v yamldoc.Value, axes []axis) []draft {
	m := v.Mapping(axisNames(axes)...)
	where, ok := conditions(m, axes)
	if len(where) == 0 {
		if v.IsMapping() && ok {
			v.Problem("expected radio, topology or size of the cells to leave out, or an axis of the sweep")
		}
		return cells
	}
	if !ok {
		return cells
	}
	left := slices.DeleteFunc(slices.Clone(cells), func(c draft) bool {
		sc := c.Sheet(0)
		return Meets(&sc, where)
	})
	if len(left) == len(cells) && len(cells) > 0 {
		v.Problem("no cell of the plan is left that this would exclude")
	}
	return left
}

// withOptions is a treatment with some options changed.
func withOptions(t runsheet.Treatment, changed map[string]any) runsheet.Treatment {
	t.Options = maps.Clone(t.Options)
	if t.Options == nil {
		t.Options = map[string]any{}
	}
	maps.Copy(t.Options, changed)
	return t
}

// withFlows is flow specifications with a count or a duration changed, where they are positive.
func withFlows(flows []FlowSpec, count int, duration time.Duration) []FlowSpec {
	out := slices.Clone(flows)
	for i := range out {
		if count > 0 {
			out[i].Count = count
		}
		if duration > 0 {
			out[i].Duration = duration
		}
	}
	return out
}
