package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
)

// valid reads rules of validity; nil: there are none.
func (ps *parser) valid(v yamldoc.Value) *runsheet.Valid {
	if !v.Present() {
		return nil
	}
	m := validKeys.Read(v)
	out := &runsheet.Valid{Interfering: interfering(m.Field("interfering")), ClockStep: m.Duration("clock_step")}
	ps.telemetryRules(out, m.Field("telemetry"))
	if f := m.Field("battery"); f.Present() {
		l := runsheet.ReadingLimit{Rule: runsheet.RuleBattery, Reading: runsheet.ReadingCharge, Unit: "%"}
		l.Min, _ = number(batteryKeys.Read(f).Field("min").Required(), "%", true, 0, 100)
		out.Readings = append(out.Readings, l)
	}
	if f := m.Field("temperature"); f.Present() {
		l := runsheet.ReadingLimit{Rule: runsheet.RuleTemperature, Reading: runsheet.ReadingTemperature, Unit: "°C"}
		limits := temperatureKeys.Read(f).Mapping
		l.Min, _ = number(limits.Field("min"), l.Unit, false, -100, 200)
		l.Max, _ = number(limits.Field("max"), l.Unit, false, -100, 200)
		limited(f, limits)
		ordered(limits, &l)
		out.Readings = append(out.Readings, l)
	}
	if f := m.Field("position"); f.Present() {
		out.PositionMetres = f.Metres(minMoved)
		if out.PositionMetres < minMoved || out.PositionMetres > maxMoved {
			f.Problem("expected 1 m to 100 km, found %g m", out.PositionMetres)
		}
	}
	if f := m.Field("host"); f.Present() {
		if share, _ := number(f, "%", true, minMissed, 100); share != nil {
			out.HostShare = *share / 100
		}
	}
	if len(out.Rules()) == 0 {
		return nil
	}
	return out
}

// telemetryRules reads limits of the radio's readings. Whether the radios have them
// is for [parser.checkReadings].
func (ps *parser) telemetryRules(out *runsheet.Valid, v yamldoc.Value) {
	list := v.List()
	if v.IsList() && (len(list) == 0 || len(list) > maxReadingLimits) {
		v.Problem("expected 1 to %d readings, found %d", maxReadingLimits, len(list))
		return
	}
	var at []readingAt
	for _, e := range list {
		m := readingKeys.Read(e).Mapping
		l := runsheet.ReadingLimit{Rule: runsheet.RuleTelemetry, Reading: m.Field("reading").Required().String("")}
		var inMin, inMax string
		l.Min, inMin = number(m.Field("min"), "", false, -maxReading, maxReading)
		l.Max, inMax = number(m.Field("max"), "", false, -maxReading, maxReading)
		limited(e, m)
		if slices.ContainsFunc(out.Readings, func(o runsheet.ReadingLimit) bool { return o.Reading == l.Reading }) {
			m.Field("reading").Problem("reading %q is given twice", l.Reading)
		}
		out.Readings = append(out.Readings, l)
		at = append(at, readingAt{m, inMin, inMax})
	}
	ps.readingsAt[out] = at
}

// readingAt is where a limit of a reading stands, and the units it states.
type readingAt struct {
	at           yamldoc.Mapping
	inMin, inMax string
}

// limited notes a rule that limits nothing.
func limited(v yamldoc.Value, m yamldoc.Mapping) {
	lo, hi := m.Field("min"), m.Field("max")
	switch {
	case v.IsMapping() && !lo.Given() && !hi.Given():
		v.Problem("expected min, max or both")
	case v.IsMapping() && !lo.Present() && !hi.Present():
		lo.Problem("expected a number, found nothing")
	}
}

// ordered notes limits between which nothing lies.
func ordered(m yamldoc.Mapping, l *runsheet.ReadingLimit) {
	if l.Min != nil && l.Max != nil && *l.Min > *l.Max && m.Field("min").OK() && m.Field("max").OK() {
		m.Field("max").Problem("expected at least min, %g, found %g", *l.Min, *l.Max)
	}
}

// interfering reads how much other traffic is allowed.
func interfering(v yamldoc.Value) *runsheet.Interfering {
	if !v.Present() {
		return nil
	}
	s := v.String("")
	if !v.OK() {
		return nil
	}
	if strings.HasSuffix(strings.TrimSpace(s), "%") {
		share, _ := number(v, "%", true, 0, 100)
		if share == nil {
			return nil
		}
		return &runsheet.Interfering{Share: *share / 100}
	}
	n, err := unit.Bytes(s)
	switch {
	case err != nil:
		v.Problem(`expected a share of the attempt's bytes such as "5 %%" or a size such as "64 KiB", found %q`, s)
		return nil
	case n > maxInterfering:
		v.Problem("expected at most %s, found %s", unit.FormatBytes(maxInterfering), unit.FormatBytes(n))
		return nil
	}
	return &runsheet.Interfering{Bytes: n}
}

var numberForm = regexp.MustCompile(`^([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([^\s0-9].{0,15})?$`)

// number reads a number from lo to hi with its unit, which may be left out unless it
// is required; want "": the unit is not known yet. Nil: absent, or not one.
func number(v yamldoc.Value, want string, required bool, lo, hi float64) (x *float64, in string) {
	if !v.Present() {
		return nil, ""
	}
	s := v.String("")
	if !v.OK() {
		return nil, ""
	}
	parts := numberForm.FindStringSubmatch(strings.TrimSpace(s))
	f := 0.0
	var err error
	if parts != nil {
		f, err = strconv.ParseFloat(parts[1], 64)
		in = strings.TrimSpace(parts[2])
	}
	switch {
	case parts == nil || err != nil || f < lo || f > hi || want != "" && in != want && (in != "" || required):
		v.Problem("expected a number from %g to %g%s, found %q", lo, hi, inUnit(want), s)
		return nil, ""
	}
	return &f, in
}

func inUnit(u string) string {
	if u == "" {
		return " and its unit"
	}
	return " and " + u
}

// checkReadings notes readings that a radio has no source of, and settles the units
// of those that it has.
func (ps *parser) checkReadings(valid *runsheet.Valid, radios []string) {
	for i, at := range ps.readingsAt[valid] {
		l := &valid.Readings[i]
		name := at.at.Field("reading")
		if !name.OK() {
			continue
		}
		for _, r := range radios {
			units, names := readingsOf(ps.cat.Profile(r))
			u, there := units[l.Reading]
			if !there {
				name.Problem("radio %s has no reading %q%s; %s", r, l.Reading, yamldoc.Suggest(l.Reading, names), listed(names))
				break
			}
			for key, in := range map[string]string{"min": at.inMin, "max": at.inMax} {
				if in != "" && in != u {
					at.at.Field(key).Problem("reading %s of radio %s is in %s, found %q", l.Reading, r, orNone(u), in)
				}
			}
			l.Unit = u
		}
		ordered(at.at, l)
	}
}

func orNone(u string) string {
	if u == "" {
		return "no unit"
	}
	return u
}

// readingsOf is the readings of a radio, real or emulated, and their units; of
// counters it is their growth a second that limits are about.
func readingsOf(p *radio.Profile) (units map[string]string, names []string) {
	units = map[string]string{}
	for _, t := range slices.Concat(p.Sources(false), p.Sources(true)) {
		if !t.Kind.Is(telemetrysource.AboutRadio) {
			continue
		}
		for _, v := range t.Values {
			if _, known := units[v.Name]; known {
				continue
			}
			units[v.Name] = v.Unit
			if v.Counter {
				units[v.Name] += "/s"
			}
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return units, names
}
