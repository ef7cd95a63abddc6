package plan

import (
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

func (ps *parser) treatments(v yamldoc.Value) {
	list := v.List()
	if v.IsList() && (len(list) == 0 || len(list) > maxTreatments) {
		v.Problem("expected 1 to %d treatments, found %d", maxTreatments, len(list))
		return
	}
	seen := map[string]bool{}
	for _, e := range list {
		t := ps.treatment(e)
		if t.Name != "" && seen[t.Name] {
			e.Mapping().Field("name").Problem("treatment %q is given twice", t.Name)
		}
		seen[t.Name] = true
		ps.types[t.Name] = "treatment"
		ps.plan.Treatments = append(ps.plan.Treatments, t)
	}
	if len(list) > 0 && len(ps.plan.Runnable()) == 0 {
		v.Problem("every treatment is missing, nothing is left to run")
	}
}

func (ps *parser) treatment(v yamldoc.Value) runsheet.Treatment {
	m := v.Mapping("name", "label", "protocol", "options", "complete_knowledge", "missing")
	t := runsheet.Treatment{
		Name:              name(m.Field("name")),
		Protocol:          m.Field("protocol").Required().String(""),
		CompleteKnowledge: m.Field("complete_knowledge").Bool(false),
		Options:           map[string]any{},
	}
	t.Label = m.Field("label").String(t.Name)
	reason := strings.TrimSpace(m.Field("missing").String(""))
	pv := m.Field("protocol")
	if !pv.Present() || pv.IsList() || pv.IsMapping() {
		return t
	}
	if mv := m.Field("missing"); mv.Present() && reason == "" {
		mv.Problem("expected the reason, found nothing")
		return t
	}
	if man := ps.cat.Manifest(t.Protocol); man != nil {
		t.DriverVersion = man.Version
		if reason == "" || has(man, m.Field("options")) {
			t.Options = man.ReadOptions(m.Field("options"))
			return t
		}
		t.DriverVersion = ""
	}
	if reason == "" {
		all := ps.cat.Protocols()
		pv.Problem("unknown protocol %q%s; %s (a treatment whose protocol does not exist yet gives the reason with missing)", t.Protocol, yamldoc.Suggest(t.Protocol, all), listed(all))
		return t
	}
	// No driver can check these options yet; they are kept unchanged.
	m.Field("options").Mapping()
	if o, ok := m.Field("options").Any().(map[string]any); ok {
		t.Options = o
	}
	t.Missing = reason
	return t
}

// has reports whether a driver has all the options and choices, so that
// a treatment that lacks one can be marked as missing. A value that is wrong
// in another way does not count as lacking.
func has(man *contract.Manifest, options yamldoc.Value) bool {
	m := options.Mapping()
	for _, key := range m.Keys() {
		i := slices.IndexFunc(man.Options, func(o contract.Option) bool { return o.Name == key })
		if i < 0 {
			return false
		}
		o := man.Options[i]
		if len(o.Choices) > 0 && !slices.Contains(o.Choices, m.Field(key).String(o.Choices[0])) {
			return false
		}
	}
	return true
}
