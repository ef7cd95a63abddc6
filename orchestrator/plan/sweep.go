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

const maxAxisValues = 1000

// axis is one parameter of a sweep, or several that go together.
type axis struct {
	name   string
	set    []string          // the parameters
	labels []string          // of its values
	values [][]yamldoc.Value // of each label, one for each parameter
	at     yamldoc.Value     // where the parameters are named
}

func (ps *parser) sweep(v yamldoc.Value) []axis {
	var out []axis
	for _, e := range v.List() {
		m := e.Mapping("name", "set", "values", "labels")
		a := axis{name: name(m.Field("name")), at: m.Field("set").Required()}
		taken := slices.ContainsFunc(out, func(o axis) bool { return o.name == a.name })
		if taken || slices.Contains([]string{"radio", "topology", "size", "group", "treatment"}, a.name) {
			m.Field("name").Problem("%q is an axis already", a.name)
		}
		for _, s := range oneOrMany(a.at) {
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
	if v.Present() {
		given := v.List()
		if v.IsList() && len(given) != n {
			v.Problem("%d labels for %d values", len(given), n)
			return out
		}
		if len(given) == len(out) {
			for i, l := range given {
				out[i] = l.String("")
			}
		}
	}
	for i, l := range out {
		if slices.Contains(out[:i], l) {
			a.at.Problem("the value %q is given twice", l)
		}
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

// apply gives a cell its radio and the values of one combination.
func (ps *parser) apply(c *Cell, radioName string, axes []axis, at []int, where yamldoc.Value) bool {
	var changes []radio.Change
	var labels []string
	options := map[string]yamldoc.Value{}
	count, duration := 0, time.Duration(0)
	c.Settings = nil
	for i, a := range axes {
		label := a.labels[at[i]]
		labels = append(labels, a.name+" "+label)
		for j, path := range a.set {
			v := a.values[at[i]][j]
			c.Settings = append(c.Settings, runsheet.Setting{Axis: a.name, Parameter: path, Value: v.String(""), Label: label})
			switch option, isOption := strings.CutPrefix(path, "option."); {
			case isOption:
				options[option] = v
			case path == "flows.count":
				count = int(v.Int(1, 1, maxFlows))
			case path == "flows.duration":
				duration = span(v, time.Second, time.Millisecond, maxDuration)
			default:
				changes = append(changes, radio.Change{Path: path, Value: v.String("")})
			}
		}
	}
	c.Label = strings.Join(labels, ", ")
	if count > 0 || duration > 0 {
		c.Flows = withFlows(c.Flows, count, duration)
	}
	for option, v := range options {
		found := false
		c.Treatments = ps.setOption(c.Treatments, option, v, &found)
		c.Listeners = ps.setOption(c.Listeners, option, v, &found)
		runs := func(t runsheet.Treatment) bool { return t.Missing == "" }
		if !found && (slices.ContainsFunc(c.Treatments, runs) || slices.ContainsFunc(c.Listeners, runs)) {
			v.Problem("no treatment here has an option %q", option)
			return false
		}
	}
	p, err := ps.vary(radioName, changes)
	if err != nil {
		where.Problem("%s with %s: %s", radioName, c.Label, plain(err))
		return false
	}
	c.Radio = p
	return true
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
