package plan

import (
	"slices"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

// flows reads what a trial is made of; nothing is one transfer.
func (ps *parser) flows(v yamldoc.Value) []FlowSpec {
	if !v.Present() {
		return []FlowSpec{{Count: 1, From: radio.RoleClient, To: radio.RoleServer}}
	}
	return ps.flowList(v, nil)
}

// flowList reads flows; of a mix, each names one of the treatments.
func (ps *parser) flowList(v yamldoc.Value, treatments []string) []FlowSpec {
	list := v.List()
	if v.IsList() && len(list) == 0 {
		v.Problem("expected at least one, found an empty list")
	}
	if len(list) > maxEntries {
		v.Problem("expected at most %d entries, found %d", maxEntries, len(list))
		return nil
	}
	var out []FlowSpec
	for _, e := range list {
		out = append(out, ps.flowSpec(e, treatments))
	}
	checkNumber(out, v)
	return out
}

// checkNumber notes a problem with the number of a trial's flows. It reports
// whether there is none.
func checkNumber(flows []FlowSpec, v yamldoc.Value) bool {
	n, onTimes := 0, 0.0
	for _, f := range flows {
		n += f.Count
		if f.OnMean > 0 {
			onTimes += float64(f.Count) * f.onTimes()
		}
	}
	switch {
	case n > maxFlows:
		v.Problem("%d flows in a trial, at most %d fit", n, maxFlows)
	case onTimes > maxOnTimes:
		v.Problem("about %.0f on-times in a trial, at most %d fit", onTimes, maxOnTimes)
	default:
		return true
	}
	return false
}

// onTimes is how often an on/off source is on in a trial, on average.
func (f *FlowSpec) onTimes() float64 {
	return 1 + f.Duration.Seconds()/(f.OnMean+f.IdleMean).Seconds()
}

// perTrial is how many flows these make in a trial, on average.
func perTrial(flows []FlowSpec) (n float64) {
	for _, f := range flows {
		if f.OnMean > 0 {
			n += float64(f.Count) * f.onTimes()
		} else {
			n += float64(f.Count)
		}
	}
	return n
}

func (ps *parser) flowSpec(v yamldoc.Value, treatments []string) FlowSpec {
	keys := flowKeys
	if treatments != nil {
		keys = mixFlowKeys
	}
	m := keys.Read(v)
	f := FlowSpec{
		Count:   m.Int("count"),
		From:    radio.Role(m.Word("from")),
		To:      radio.Role(m.Word("to")),
		Start:   m.Duration("start"),
		Spacing: m.Duration("spacing"),
	}
	if treatments != nil {
		at := m.Field("treatment").Required()
		if f.Treatment = at.String(""); !ps.misnamed {
			f.Treatment, _ = known(at, "treatment", treatments)
		}
		if ps.isProbe(f.Treatment) {
			at.Problem("treatment %q is a probe; name it in probes", f.Treatment)
		}
	}
	switch {
	case f.From == f.To:
		v.Problem("the flow leads from the %s to itself", f.From)
	case f.To != radio.RoleServer:
		m.Field("to").Problem("expected server, where the listeners of a run are, found %q", f.To)
	}
	if s := m.Field("size"); s.Present() {
		if f.SizeBytes = s.Bytes(1); f.SizeBytes < 1 || f.SizeBytes > contract.MaxSize {
			s.Problem("expected 1 B to %s, found %q", unit.FormatBytes(contract.MaxSize), s.String(""))
			f.SizeBytes = 1
		}
	}
	if d := m.Field("duration"); d.Present() {
		f.Duration = m.DurationOr("duration", time.Second)
		if m.Field("size").Present() {
			d.Problem("a flow ends by its size or by its duration, not by both")
		}
	}
	if o := m.Field("on_off"); o.Present() {
		om := onOffKeys.Read(o)
		f.OnMean, f.IdleMean = om.DurationOr("on", time.Second), om.DurationOr("idle", time.Second)
		if f.Duration == 0 {
			o.Problem("a source that goes on and off needs a duration")
		}
	}
	return f
}

// mixes reads the trials of several treatments at once.
func (ps *parser) mixes(v yamldoc.Value) {
	var treatments []string
	for _, t := range ps.plan.Treatments {
		treatments = append(treatments, t.Name)
	}
	list := v.List()
	if len(list) > MaxTreatments {
		v.Problem("expected at most %d mixes, found %d", MaxTreatments, len(list))
		return
	}
	for _, e := range list {
		m := mixKeys.Read(e)
		x := Mix{Name: name(m.Field("name"))}
		x.Label = ps.label(m.Field("label"), m.Field("name"), x.Name)
		x.Flows = ps.flowList(m.Field("flows").Required(), slices.Clip(append([]string{}, treatments...)))
		if p := m.Field("probes"); p.Present() {
			x.OwnProbes, x.Probes = true, ps.probes(p, true)
		}
		if x.Name != "" && ps.types[x.Name] != "" {
			m.Field("name").Problem("%s %q is given already", ps.types[x.Name], x.Name)
		}
		ps.types[x.Name] = "mix"
		ps.misnamed = ps.misnamed || !m.Field("name").OK()
		for _, t := range ps.plan.Treatments {
			if t.Missing != "" && slices.ContainsFunc(x.Flows, func(f FlowSpec) bool { return f.Treatment == t.Name }) {
				x.Missing = t.Label + " is missing: " + t.Missing
			}
		}
		ps.plan.Mixes = append(ps.plan.Mixes, x)
	}
}
