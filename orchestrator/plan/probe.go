package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
	"linktrial/protocols/probe/pattern"
)

// ProbeSpec is one probe of a plan.
type ProbeSpec struct {
	Treatment string
	From, To  radio.Role
	// Alone is how long the trials last that the treatment has of its own; 0: it has none.
	Alone time.Duration
	// Beside: it runs beside the flows of every other trial.
	Beside bool
}

// probes reads the probes of a plan, a group or, where mix is set, a mix.
func (ps *parser) probes(v yamldoc.Value, mix bool) (out []ProbeSpec) {
	list := v.List()
	if len(list) > maxProbes {
		v.Problem("expected at most %d probes, found %d", maxProbes, len(list))
		return nil
	}
	var all []string
	for _, t := range ps.plan.Treatments {
		all = append(all, t.Name)
	}
	for _, e := range list {
		keys := probeKeys
		if mix {
			keys = mixProbeKeys
		}
		m := keys.Read(e)
		p := ProbeSpec{Beside: true}
		if !mix {
			p.Alone, p.Beside = m.Duration("alone"), m.Bool("beside")
		}
		ps.probeWay(m.Mapping, &p)
		at := m.Field("treatment").Required()
		if p.Treatment = at.String(""); !ps.misnamed {
			p.Treatment, _ = known(at, "treatment", all)
		}
		t := ps.treatmentNamed(p.Treatment)
		switch {
		case t == nil:
		case !t.Probe && t.Missing == "" && at.OK() && ps.cat.Manifest(t.Protocol) != nil:
			at.Problem("treatment %q carries transfers, its driver %s is not a probe", t.Name, t.Protocol)
		case slices.ContainsFunc(out, func(o ProbeSpec) bool { return o.Treatment == p.Treatment && o.From == p.From }):
			at.Problem("probe %q is given twice from the %s", p.Treatment, p.From)
		case t.Probe && p.From == radio.RoleServer && !ps.cat.Manifest(t.Protocol).Has(contract.FeatureFromServer):
			m.Field("from").Problem("driver %s cannot send from its server: its manifest has no feature %s", t.Protocol, contract.FeatureFromServer)
		}
		if t != nil && searches(t) {
			searchesAlone(e, &p)
		}
		if !p.Beside && p.Alone == 0 && m.Field("beside").OK() {
			e.Problem("the probe runs neither beside transfers nor alone: give alone a time, or leave beside out")
		}
		ps.probesMisnamed = ps.probesMisnamed || !at.OK()
		out, ps.probesUsed = append(out, p), append(ps.probesUsed, p.Treatment)
	}
	return out
}

// searches reports whether a treatment searches for the capacity. Two equal ones are of use:
// one for each direction, one after the other.
func searches(t *runsheet.Treatment) bool {
	return t.Probe && t.Options["pattern"] == pattern.Capacity
}

// searchesAlone notes a search for the capacity that runs beside transfers, which it would
// leave no room, or has too little time.
func searchesAlone(e yamldoc.Value, p *ProbeSpec) {
	const least = 10 * time.Second
	switch {
	case p.Beside:
		e.Problem("probe %q searches for the capacity, which leaves transfers beside it no room: expected beside: false and alone with the search's time", p.Treatment)
	case p.Alone > 0 && p.Alone < least:
		e.Problem("probe %q searches for the capacity: expected alone: %s or more, found %s", p.Treatment, least, p.Alone)
	}
}

// probeWay reads which way a probe takes: from client to server or back. One end
// names the other.
func (ps *parser) probeWay(m yamldoc.Mapping, p *ProbeSpec) {
	roles := []string{string(radio.RoleClient), string(radio.RoleRelay), string(radio.RoleServer)}
	from, to := m.Field("from"), m.Field("to")
	p.From, p.To = radio.Role(from.OneOf("", roles...)), radio.Role(to.OneOf("", roles...))
	other := map[radio.Role]radio.Role{radio.RoleClient: radio.RoleServer, radio.RoleServer: radio.RoleClient}
	switch {
	case p.From == radio.RoleRelay:
		from.Problem("probes lead from client to server or back, not from the relay: the client opens and ends them, at the server's listener")
	case p.To == radio.RoleRelay:
		to.Problem("probes lead from client to server or back, not to the relay: the client opens and ends them, at the server's listener")
	case p.From == "" && p.To == "":
		p.From, p.To = radio.RoleClient, radio.RoleServer
	case p.From == "":
		p.From = other[p.To]
	case p.To == "":
		p.To = other[p.From]
	case p.From == p.To:
		to.Problem("the probe leads from the %s to itself", p.From)
	}
}

// treatmentNamed is a treatment of the plan by its name, or nil.
func (ps *parser) treatmentNamed(name string) *runsheet.Treatment {
	i := slices.IndexFunc(ps.plan.Treatments, func(t runsheet.Treatment) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &ps.plan.Treatments[i]
}

// isProbe reports whether a treatment of that name carries probes.
func (ps *parser) isProbe(name string) bool {
	t := ps.treatmentNamed(name)
	return t != nil && t.Probe
}

// checkDrivers notes what a treatment asks of its drivers that the manifests do
// not have, and whether it is a probe.
func (ps *parser) checkDrivers(m yamldoc.Mapping, t *runsheet.Treatment) {
	man := ps.cat.Manifest(t.Protocol)
	if man == nil {
		return
	}
	t.Probe = man.Kind == contract.KindProbe
	if t.Probe && len(t.Via) > 0 {
		m.Field("via").Problem("driver %s carries probes, which no relay process carries onward", man.Name)
	}
	if t.Probe && m.Field("options").OK() {
		if _, err := pattern.Read(t.Options); err != nil {
			m.Field("options").Problem("%s", err)
		}
	}
	if t.DSCP == 0 {
		return
	}
	all := []*contract.Manifest{man}
	for _, v := range t.Via {
		all = append(all, ps.cat.Manifest(v.Protocol))
	}
	for _, x := range all {
		if x != nil && !x.Has(contract.FeatureDSCP) {
			m.Field("dscp").Problem("driver %s cannot mark its packets: its manifest has no feature %s", x.Name, contract.FeatureDSCP)
			return
		}
	}
}

// codePoints are the names of code points: class selectors (RFC 2474), assured
// forwarding (RFC 2597), expedited forwarding (RFC 3246), voice-admit (RFC 5865) and
// lower effort (RFC 8622).
var codePoints = func() map[string]int {
	out := map[string]int{"EF": 46, "VA": 44, "LE": 1, "DF": 0}
	for c := range 8 {
		out[fmt.Sprintf("CS%d", c)] = 8 * c
	}
	for c := 1; c <= 4; c++ {
		for d := 1; d <= 3; d++ {
			out[fmt.Sprintf("AF%d%d", c, d)] = 8*c + 2*d
		}
	}
	return out
}()

// dscp reads a code point, by name or number.
func dscp(v yamldoc.Value) int {
	if !v.Present() {
		return 0
	}
	s := v.String("")
	if n, ok := codePoints[strings.ToUpper(s)]; ok {
		return n
	}
	n, err := strconv.Atoi(s)
	if v.OK() && (err != nil || n < 0 || n > contract.MaxDSCP || s != strconv.Itoa(n)) {
		v.Problem("expected a code point by name (EF, AF11 to AF43, CS0 to CS7, VA, LE, DF) or 0 to %d, found %q", contract.MaxDSCP, s)
		return 0
	}
	return n
}

// CodePoint is a DSCP for people: "EF (46)".
func CodePoint(n int) string {
	best := ""
	for name, c := range codePoints {
		// Of several names of one code point, that which says more: CS0 is DF.
		if c == n && (best == "" || name < best) {
			best = name
		}
	}
	if best == "" {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s (%d)", best, n)
}

// placeProbes gives a cell its probes. A treatment that only accompanies others
// has no trials of its own.
func (ps *parser) placeProbes(c *Cell, v yamldoc.Value) {
	c.Probes = ps.probes(v, false)
	var own []runsheet.Treatment
	for _, t := range c.Treatments {
		if !t.Probe || slices.ContainsFunc(c.Probes, func(p ProbeSpec) bool { return p.Treatment == t.Name && p.Alone > 0 }) {
			own = append(own, t)
		}
	}
	c.Treatments = own
	listed := slices.Concat(c.Treatments, c.Listeners)
	for _, p := range c.allProbes() {
		t := ps.treatmentNamed(p)
		if t == nil || slices.ContainsFunc(listed, func(l runsheet.Treatment) bool { return l.Name == p }) {
			continue
		}
		listed, c.Listeners = append(listed, *t), append(c.Listeners, *t)
	}
}

// allProbes names the probes of a cell's trials.
func (c *Cell) allProbes() (out []string) {
	add := func(probes []ProbeSpec) {
		for _, p := range probes {
			if !slices.Contains(out, p.Treatment) && p.Treatment != "" {
				out = append(out, p.Treatment)
			}
		}
	}
	add(c.Probes)
	for _, m := range c.Mixes {
		add(m.Probes)
	}
	return out
}

// checkProbes notes treatments of the plan that are probes and that nothing uses
// as such.
func (ps *parser) checkProbes(r yamldoc.Mapping) {
	if ps.probesMisnamed || r.Field("probes").Present() && !r.Field("probes").OK() {
		return // which are used is not known
	}
	for i := range ps.plan.Treatments {
		t := &ps.plan.Treatments[i]
		if t.Probe && !slices.Contains(ps.probesUsed, t.Name) && !ps.misnamed && ps.drivenAt[t.Name].OK() {
			ps.drivenAt[t.Name].Problem("treatment %s is a probe, and no list of probes has it: probes: [{treatment: %s, alone: 1m}] measures without a transfer too, without alone only beside the others", t.Name, t.Name)
		}
	}
}

// ProbesOf are the probes in a cell's trials of that name.
func (c *Cell) ProbesOf(name string) (out []ProbeSpec) {
	for _, p := range c.Probes {
		if p.Treatment == name && p.Alone > 0 {
			out = append(out, p)
		}
	}
	if len(out) > 0 {
		return out
	}
	if i := slices.IndexFunc(c.Mixes, func(m Mix) bool { return m.Name == name && m.OwnProbes }); i >= 0 {
		return c.Mixes[i].Probes
	}
	for _, p := range c.Probes {
		if p.Beside {
			out = append(out, p)
		}
	}
	return out
}
