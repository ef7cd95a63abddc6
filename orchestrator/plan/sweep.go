package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
)

// axis is one parameter of a sweep, or several that go together.
type axis struct {
	name   string
	set    []string          // the parameters
	labels []string          // of its values
	values [][]yamldoc.Value // of each label, one for each parameter
	named  []yamldoc.Value   // where each parameter is named
}

func (ps *parser) sweep(v yamldoc.Value) []axis {
	var out []axis
	entries := v.List()
	if len(entries) > maxAxes {
		v.Problem("expected at most %d axes, found %d", maxAxes, len(entries))
		return nil
	}
	for _, e := range entries {
		m := axisKeys.Read(e)
		a, at := axis{name: name(m.Field("name"))}, m.Field("set").Required()
		taken := slices.ContainsFunc(out, func(o axis) bool { return o.name == a.name })
		if taken || slices.Contains([]string{"radio", "topology", "size", "group", "treatment"}, a.name) {
			m.Field("name").Problem("%q is an axis already", a.name)
		}
		a.named = oneOrMany(at)
		if len(a.named) > maxSet {
			at.Problem("expected at most %d parameters, found %d", maxSet, len(a.named))
		}
		if !at.OK() {
			continue
		}
		for _, s := range a.named {
			path := s.String("")
			if slices.Contains(a.set, path) || slices.ContainsFunc(out, func(o axis) bool { return slices.Contains(o.set, path) }) {
				s.Problem("%s is set twice", path)
			}
			if strings.HasPrefix(path, "flows.") && path != "flows.count" && path != "flows.duration" {
				s.Problem("unknown parameter of flows %q; there are flows.count, flows.duration", path)
			}
			a.set = append(a.set, path)
		}
		vals := m.Field("values").Required()
		list := vals.List()
		if vals.IsList() && (len(list) == 0 || len(list) > maxAxisValues) {
			vals.Problem("expected 1 to %d values, found %d", maxAxisValues, len(list))
			continue
		}
		for _, x := range list {
			one := []yamldoc.Value{x}
			if x.IsList() {
				one = x.List()
			}
			if len(one) != len(a.set) {
				x.Problem("%d values for %d parameters", len(one), len(a.set))
				continue
			}
			if slices.ContainsFunc(one, func(v yamldoc.Value) bool { return !v.Present() }) {
				continue // noted with the list
			}
			a.values = append(a.values, one)
		}
		a.labels = axisLabels(&a, m.Field("labels"), len(list))
		out = append(out, a)
	}
	return out
}

func axisLabels(a *axis, v yamldoc.Value, n int) []string {
	var out []string
	for _, one := range a.values {
		texts := make([]string, len(one))
		for i, x := range one {
			texts[i] = x.String("")
		}
		if label := strings.Join(texts, ", "); len(one) > 1 {
			out = append(out, "("+label+")")
		} else {
			out = append(out, label)
		}
	}
	given := v.List()
	if v.IsList() && len(given) != n {
		v.Problem("%d labels for %d values", len(given), n)
		return out
	}
	at := func(i int) yamldoc.Value { return a.values[i][0] }
	if v.IsList() && len(given) == len(out) {
		at = func(i int) yamldoc.Value { return given[i] }
		for i, l := range given {
			out[i] = l.Label("")
		}
	}
	seen := map[string]bool{}
	for i, l := range out {
		if seen[l] {
			at(i).Problem("the value %q is given twice", l)
		}
		seen[l] = true
	}
	return out
}

// combine is every combination of the axes' values, as indices, the last axis
// fastest; one empty combination without axes.
func combine(axes []axis) [][]int {
	out := [][]int{nil}
	for _, a := range axes {
		var next [][]int
		for _, c := range out {
			for i := range a.values {
				next = append(next, append(slices.Clone(c), i))
			}
		}
		out = next
	}
	return out
}

// settle gives a draft its settings, their label and its flows: what says which
// cell it is, and how much it makes. Not ok where a value is wrong.
func (c *draft) settle(axes []axis) (ok bool) {
	ok = true
	var labels []string
	c.Settings = nil
	for i, a := range axes {
		label := a.labels[c.at[i]]
		labels = append(labels, a.name+" "+label)
		for j, path := range a.set {
			v := a.values[c.at[i]][j]
			c.Settings = append(c.Settings, runsheet.Setting{Axis: a.name, Parameter: path, Value: v.String(""), Label: label})
			switch path {
			case "flows.count":
				c.Flows = withFlows(c.Flows, int(v.Int(1, 1, maxFlows)), 0)
				ok = v.OK() && checkNumber(c.Flows, v) && ok
			case "flows.duration":
				d := flowKeys.Key("duration").Form.Duration(v, time.Second)
				c.Flows = withFlows(c.Flows, 0, d)
				ok = v.OK() && c.checkDuration(d, v) && checkNumber(c.Flows, v) && ok
			}
		}
	}
	c.Label = strings.Join(labels, ", ")
	return ok
}

// apply gives a draft its radio and its options. It reports whether they are right.
func (ps *parser) apply(c *draft) bool {
	var changes []radio.Change
	var values []yamldoc.Value // of each change
	ok := true
	for i, a := range c.sweep {
		for j, path := range a.set {
			v := a.values[c.at[i]][j]
			switch option, isOption := strings.CutPrefix(path, "option."); {
			case isOption:
				found := false
				c.Treatments = ps.setOption(c.Treatments, option, v, &found)
				c.Listeners = ps.setOption(c.Listeners, option, v, &found)
				runs := func(t runsheet.Treatment) bool { return t.Missing == "" }
				if !found && (slices.ContainsFunc(c.Treatments, runs) || slices.ContainsFunc(c.Listeners, runs)) {
					a.named[j].Problem("no treatment here has an option %q", option)
				}
				ok = ok && v.OK() && a.named[j].OK()
			case strings.HasPrefix(path, "flows."): // settled
			default:
				changes, values = append(changes, radio.Change{Path: path, Value: v.String("")}), append(values, v)
			}
		}
	}
	p, err := ps.vary(c.Radio.Name, changes)
	if err != nil {
		ps.noteChange(c, values, err)
		return false
	}
	c.Radio = p
	return ok
}

// noteChange notes why a radio cannot have the values of a sweep, at the value or
// the parameter that is at fault.
func (ps *parser) noteChange(c *draft, values []yamldoc.Value, err error) {
	var ce *radio.ChangeError
	switch {
	case !errors.As(err, &ce):
		c.sweep[0].named[0].Problem("%s with %s: %s", c.Radio.Name, c.Label, plain(err))
	case ce.Value:
		values[ce.Index].Problem("%s: %s", c.Radio.Name, plain(ce.Err))
	default:
		for _, a := range c.sweep {
			if j := slices.Index(a.set, ce.Path); j >= 0 {
				a.named[j].Problem("%s: %s", c.Radio.Name, plain(ce.Err))
			}
		}
	}
}

// setOption sets an option of every treatment that has it. Nobody can check
// the value of one that is missing.
func (ps *parser) setOption(ts []runsheet.Treatment, option string, v yamldoc.Value, found *bool) []runsheet.Treatment {
	out := slices.Clone(ts)
	for i, t := range out {
		if t.Missing != "" {
			out[i] = withOptions(t, map[string]any{option: v.Any()})
			continue
		}
		man := ps.cat.Manifest(t.Protocol)
		if man == nil {
			continue // the unknown protocol is noted
		}
		for _, o := range man.Options {
			if o.Name == option {
				*found = true
				out[i] = withOptions(t, map[string]any{option: o.Read(v)})
			}
		}
	}
	return out
}

func (ps *parser) vary(name string, changes []radio.Change) (*radio.Profile, error) {
	if len(changes) == 0 {
		return ps.cat.Profile(name), nil
	}
	key := fmt.Sprintf("%s %q", name, changes)
	if p := ps.varied[key]; p != nil {
		return p, nil
	}
	p, err := ps.cat.Vary(name, changes)
	if err == nil {
		ps.varied[key] = p
	}
	return p, err
}

// plain is an error without line numbers: they are of a text that the user did not write.
func plain(err error) string {
	var ps yamldoc.Problems
	if !errors.As(err, &ps) {
		return err.Error()
	}
	var out []string
	for _, p := range ps {
		out = append(out, p.Message)
	}
	return strings.Join(out, "; ")
}
