package runsheet

import (
	"fmt"
	"math"
	"time"

	"linktrial/internal/unit"
)

// Rule names a rule of validity, as plans do. Closed list.
type Rule string

const (
	RuleClockStep   Rule = "clock_step"
	RuleInterfering Rule = "interfering"
	RuleTelemetry   Rule = "telemetry"   // readings of the radio
	RuleBattery     Rule = "battery"     // charge of the node's batteries
	RuleTemperature Rule = "temperature" // of the node
	RulePosition    Rule = "position"
	RuleHost        Rule = "host" // what busy processors keep from a trial's programs
)

// Names of readings of a node that rules are about.
const (
	ReadingCharge      = "charge"      // %
	ReadingTemperature = "temperature" // °C
	ReadingLatitude    = "latitude"    // degrees
	ReadingLongitude   = "longitude"   // degrees
)

// Valid is the plan's rules of validity: conditions under which an attempt's values
// count, whether it succeeded or failed.
type Valid struct {
	// ClockStep is by how much a node's clock may step during an attempt; 0: no rule.
	ClockStep time.Duration `json:"clock_step_ns,omitempty"`
	// Interfering is how much other traffic the radios' interfaces may carry; nil: no rule.
	Interfering *Interfering `json:"interfering,omitempty"`
	// Readings are limits of the radio's and the nodes' readings.
	Readings []ReadingLimit `json:"readings,omitempty"`
	// PositionMetres is how far a node may move from where it was when the run began;
	// 0: no rule.
	PositionMetres float64 `json:"position_m,omitempty"`
	// HostShare is the share of an attempt's time, 0 to 1, that the processors of a
	// node may keep from programs that are ready, or for which the emulated radios may be
	// late; 0: no rule.
	HostShare float64 `json:"host_share,omitempty"`
}

// Interfering is a bound of traffic that is not of the run. One of its fields holds;
// both 0: none is allowed.
type Interfering struct {
	Share float64 `json:"share,omitempty"` // of the attempt's bytes
	Bytes int64   `json:"bytes,omitempty"`
}

// ReadingLimit bounds a reading during an attempt.
type ReadingLimit struct {
	Rule    Rule     `json:"rule"` // telemetry, battery or temperature
	Reading string   `json:"reading"`
	Unit    string   `json:"unit,omitempty"`
	Min     *float64 `json:"min,omitempty"`
	Max     *float64 `json:"max,omitempty"`
}

// Rules lists the rules there are, in the order of plans.
func (v *Valid) Rules() (out []Rule) {
	if v == nil {
		return nil
	}
	if v.ClockStep > 0 {
		out = append(out, RuleClockStep)
	}
	if v.Interfering != nil {
		out = append(out, RuleInterfering)
	}
	for _, l := range v.Readings {
		if len(out) == 0 || out[len(out)-1] != l.Rule {
			out = append(out, l.Rule)
		}
	}
	if v.PositionMetres > 0 {
		out = append(out, RulePosition)
	}
	if v.HostShare > 0 {
		out = append(out, RuleHost)
	}
	return out
}

// Describe says for people what each rule allows.
func (v *Valid) Describe() (out []string) {
	if v == nil {
		return nil
	}
	if v.ClockStep > 0 {
		out = append(out, fmt.Sprintf("%s: a node's clock steps by %s at most", RuleClockStep, v.ClockStep))
	}
	if i := v.Interfering; i != nil {
		out = append(out, fmt.Sprintf("%s: other traffic on a node's radio interface is %s at most", RuleInterfering, i))
	}
	for i := range v.Readings {
		l := &v.Readings[i]
		what := "reading " + l.Reading
		switch l.Rule {
		case RuleBattery:
			what = "the charge of a node's batteries"
		case RuleTemperature:
			what = "the temperature of a node"
		}
		out = append(out, fmt.Sprintf("%s: %s is %s", l.Rule, what, l))
	}
	if v.PositionMetres > 0 {
		out = append(out, fmt.Sprintf("%s: a node is at most %g m from where it was when the run began", RulePosition, v.PositionMetres))
	}
	if v.HostShare > 0 {
		out = append(out, fmt.Sprintf("%s: a node's processors keep programs waiting, and the emulated radios are late, for at most %g %% of an attempt", RuleHost, v.HostShare*100))
	}
	return out
}

func (i *Interfering) String() string {
	if i.Share > 0 {
		return fmt.Sprintf("%g %% of the attempt's bytes", i.Share*100)
	}
	return unit.FormatBytes(i.Bytes)
}

func (l *ReadingLimit) String() string {
	in := ""
	if l.Unit != "" {
		in = " " + l.Unit
	}
	switch {
	case l.Min == nil:
		return fmt.Sprintf("at most %g%s", *l.Max, in)
	case l.Max == nil:
		return fmt.Sprintf("at least %g%s", *l.Min, in)
	}
	return fmt.Sprintf("from %g to %g%s", *l.Min, *l.Max, in)
}

// Allows reports whether a reading is within the limit.
func (l *ReadingLimit) Allows(value float64) bool {
	return (l.Min == nil || value >= *l.Min) && (l.Max == nil || value <= *l.Max)
}

// check reports why the rules cannot be applied.
func (v *Valid) check() error {
	if v == nil {
		return nil
	}
	if v.ClockStep < 0 || !(v.PositionMetres >= 0) || math.IsInf(v.PositionMetres, 1) {
		return fmt.Errorf("rules of validity with a clock step of %s and a distance of %g m, expected no negative ones", v.ClockStep, v.PositionMetres)
	}
	if !(v.HostShare >= 0 && v.HostShare <= 1) {
		return fmt.Errorf("rule %s with a share of %g, expected 0 to 1", RuleHost, v.HostShare)
	}
	if i := v.Interfering; i != nil && (!(i.Share >= 0) || i.Bytes < 0) {
		return fmt.Errorf("rule %s with %g and %d bytes, expected no negative ones", RuleInterfering, i.Share, i.Bytes)
	}
	for _, l := range v.Readings {
		switch {
		case l.Rule != RuleTelemetry && l.Rule != RuleBattery && l.Rule != RuleTemperature:
			return fmt.Errorf("rule %.40q of a reading, which this Linktrial does not know", l.Rule)
		case l.Reading == "" || l.Min == nil && l.Max == nil:
			return fmt.Errorf("rule %s of reading %.40q without a limit", l.Rule, l.Reading)
		}
	}
	return nil
}
