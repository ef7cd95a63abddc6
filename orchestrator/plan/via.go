package plan

import (
	"fmt"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

// via reads the relay processes that a treatment passes. It reports whether all
// their drivers are there.
func (ps *parser) via(v yamldoc.Value, treatment, reason string) (out []runsheet.Via, there bool) {
	list := v.List()
	if v.IsList() && len(list) == 0 {
		v.Problem("expected at least one, found an empty list; leave via out where connections go from end to end")
	}
	there = true
	last := radio.Role("")
	for _, e := range list {
		m := viaKeys.Read(e)
		at := m.Field("at").Required()
		x := runsheet.Via{
			At:       radio.Role(m.Word("at")),
			Protocol: m.Field("protocol").Required().String(""),
			Options:  map[string]any{},
		}
		if at.OK() && last != "" && runsheet.Place(x.At) <= runsheet.Place(last) {
			at.Problem("the %s comes after the %s; expected client, relay, server in the order of the way, each at most once", x.At, last)
		}
		if at.OK() {
			last = x.At
		}
		if pv := m.Field("protocol"); pv.OK() && !pv.IsList() && !pv.IsMapping() {
			d := ps.driver(pv, m.Field("options"), reason, contract.RoleRelay)
			x.DriverVersion, x.Options = d.version, d.options
			there = there && d.there
		}
		out = append(out, x)
		ps.viaAt[treatment] = append(ps.viaAt[treatment], at)
	}
	return out, there
}

// wrongRole says what a driver cannot be used for, and what it can.
func wrongRole(man *contract.Manifest, role contract.Role) string {
	if role == contract.RoleRelay {
		return fmt.Sprintf("driver %s cannot carry connections onward: its manifest has no role relay", man.Name)
	}
	return fmt.Sprintf("driver %s has no client and server; it is a relay, which a treatment of another protocol passes with via", man.Name)
}

// checkVia notes relay processes of a cell's treatments for which a topology has
// no node, and second radios that it does not give the nodes.
func (ps *parser) checkVia(c *Cell, t *radio.Topology) {
	if ps.misnamed {
		return // every cell has all treatments then, and not those that it chose
	}
	for _, list := range [][]runsheet.Treatment{c.Treatments, c.Listeners} {
		for _, tr := range list {
			if tr.SecondRadio && t.Second == nil && ps.secondAt[tr.Name].OK() {
				ps.secondAt[tr.Name].Problem("treatment %s uses second radios, but topology %s gives the nodes one each", tr.Name, t.Name)
			}
			for i, x := range tr.Via {
				if at := ps.viaAt[tr.Name]; x.At != "" && t.Station(x.At) == nil && i < len(at) {
					at[i].Problem("treatment %s passes the %s, but topology %s has none", tr.Name, x.At, t.Name)
				}
			}
		}
	}
}
