package plan

import (
	"fmt"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
	"linktrial/protocols/contract"
)

func (ps *parser) treatments(v yamldoc.Value) {
	list := v.List()
	if v.IsList() && (len(list) == 0 || len(list) > MaxTreatments) {
		v.Problem("expected 1 to %d treatments, found %d", MaxTreatments, len(list))
		return
	}
	seen := map[string]bool{}
	same := map[string]string{}
	for _, e := range list {
		t, name, sound := ps.treatment(e)
		if t.Name != "" && seen[t.Name] {
			name.Problem("treatment %q is given twice", t.Name)
		}
		seen[t.Name] = true
		ps.misnamed = ps.misnamed || !name.OK()
		// fmt writes the keys of a map in their order.
		what := fmt.Sprintf("%q %t %t %d %q %q", t.Protocol, t.CompleteKnowledge, t.SecondRadio, t.DSCP, fmt.Sprint(t.Options), fmt.Sprint(t.Via))
		if other := same[what]; other != "" && !searches(&t) && t.Missing == "" && t.Protocol != "" && name.OK() && sound {
			name.Problem("is the same as %s: its protocol, all its options and what it passes", other)
		}
		if t.Missing == "" {
			same[what] = t.Name
		}
		ps.types[t.Name] = "treatment"
		ps.plan.Treatments = append(ps.plan.Treatments, t)
	}
	if v.OK() && len(list) > 0 && len(ps.plan.Runnable()) == 0 {
		v.Problem("every treatment is missing, nothing is left to run")
	}
}

// label is what tables call a treatment or mix: what it says, or its name. Two of a
// plan must differ.
func (ps *parser) label(v, nameAt yamldoc.Value, name string) string {
	label := v.Label(name)
	at := v
	if !at.Present() {
		at = nameAt
	}
	if other, taken := ps.labels[label]; taken && other != name && label != "" {
		at.Problem("%q is the label of %s already", label, other)
	}
	if ps.labels == nil {
		ps.labels = map[string]string{}
	}
	ps.labels[label] = name
	return label
}

// treatment reads one treatment; the value is its name. sound: what makes it
// another than the rest could be read, its options aside.
func (ps *parser) treatment(v yamldoc.Value) (t runsheet.Treatment, name yamldoc.Value, sound bool) {
	m := treatmentKeys.Read(v)
	t = ps.treatmentOf(m)
	sound = true
	for _, f := range []yamldoc.Value{m.Field("complete_knowledge"), m.Field("via"), m.Field("dscp"), m.Field("second_radio")} {
		sound = sound && (!f.Present() || f.OK())
	}
	return t, m.Field("name"), sound
}

func (ps *parser) treatmentOf(m yamlschema.Fields) runsheet.Treatment {
	t := runsheet.Treatment{
		Name:              name(m.Field("name")),
		Protocol:          m.Field("protocol").Required().String(""),
		CompleteKnowledge: m.Bool("complete_knowledge"),
		DSCP:              dscp(m.Field("dscp")),
		SecondRadio:       m.Bool("second_radio"),
		Options:           map[string]any{},
	}
	t.Label = ps.label(m.Field("label"), m.Field("name"), t.Name)
	reason := strings.TrimSpace(m.Field("missing").String(""))
	pv := m.Field("protocol")
	if !pv.OK() || pv.IsList() || pv.IsMapping() {
		return t
	}
	if mv := m.Field("missing"); mv.Present() && reason == "" {
		mv.Problem("expected the reason, found nothing")
		return t
	}
	ends := ps.driver(pv, m.Field("options"), reason, contract.RoleClient)
	t.DriverVersion, t.Options = ends.version, ends.options
	via, viaThere := ps.via(m.Field("via"), t.Name, reason)
	t.Via = via
	ps.secondAt[t.Name] = m.Field("second_radio")
	if t.SecondRadio && len(via) > 0 {
		m.Field("second_radio").Problem("treatment %s passes relay processes, which use the first radio", t.Name)
	}
	ps.drivenAt[t.Name] = pv
	ps.checkDrivers(m.Mapping, &t)
	if reason != "" {
		ps.plan.Expected[t.Name] = reason
	}
	if reason != "" && (!ends.there || !viaThere) {
		t.Missing, t.DriverVersion = reason, ""
	}
	return t
}

// driverOf is what a plan says of one driver of a treatment.
type driverOf struct {
	version string
	options map[string]any
	there   bool // the driver exists and has all that the plan asks of it
}

// driver reads the options for a driver in a role. Where there is none, or it
// lacks one, that is a problem unless the plan gives the reason for which the
// treatment may be missing.
func (ps *parser) driver(pv, options yamldoc.Value, reason string, role contract.Role) driverOf {
	protocol := pv.String("")
	man := ps.cat.Manifest(protocol)
	if man != nil && (reason == "" || man.Plays(role) && has(man, options)) {
		if !man.Plays(role) {
			pv.Problem("%s", wrongRole(man, role))
			return driverOf{options: map[string]any{}}
		}
		return driverOf{man.Version, man.ReadOptions(options), true}
	}
	if reason == "" {
		all := ps.cat.Protocols()
		pv.Problem("unknown protocol %q%s; %s (a treatment whose protocol does not exist yet gives the reason with missing)", protocol, yamldoc.Suggest(protocol, all), listed(all)+lookedFor(ps.cat))
		return driverOf{options: map[string]any{}}
	}
	// No driver can check these options yet; they are kept unchanged.
	options.Mapping()
	o, ok := options.Any().(map[string]any)
	if !ok {
		o = map[string]any{}
	}
	return driverOf{options: o}
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

// lookedFor says where a catalog has its drivers from, where it knows.
func lookedFor(c Catalog) string {
	if l, ok := c.(interface{ LookedFor() string }); ok {
		if folders := l.LookedFor(); folders != "" {
			return "; drivers are looked for in " + folders + ", --drivers adds a folder"
		}
	}
	return ""
}
