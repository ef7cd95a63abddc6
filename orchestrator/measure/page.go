package measure

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
)

// Page is all that is said of a measurement.
type Page struct {
	Campaign string // of its newest part
	Started  time.Time
	Topology string // for people
	Values   Values
	Uses     []Use
	// Changed are the thresholds that differ from the defaults, as sentences.
	Changed []string
	// Positions are where the nodes were; none: nothing told.
	Positions []Position
	// Hint says that the measurement has a part that is not there yet; empty: it has none.
	Hint string
}

// Line is one value of the page.
type Line struct {
	Group, Metric, Way string
	Value              float64 // NaN: not measured
	Unit, Note         string
}

// Lines are the values in the order of the page.
func (v *Values) Lines() (out []Line) {
	for w := range v.Capacity {
		out = append(out, v.capacityLines(Way(w))...)
	}
	for _, set := range []struct {
		group string
		rows  [2]*report.ProbeRow
		lines func(group string, w Way, p *report.ProbeRow) []Line
	}{{"small packets, idle link", v.Idle, v.probeLines}, {"messages, idle link", v.Messages, v.messageLines}, {"voice, idle link", v.Voice, v.probeLines}} {
		for w, p := range set.rows {
			if p != nil {
				out = append(out, set.lines(set.group, Way(w), p)...)
			}
		}
	}
	for _, r := range v.Transfers {
		out = append(out, v.transferLine(&r))
	}
	for i := range v.Loaded {
		p := &v.Loaded[i]
		out = append(out, v.probeLines("small packets beside "+p.BesideLabel, wayOf(p.From), p)...)
	}
	return out
}

func (v *Values) capacityLines(w Way) []Line {
	p := v.Capacity[w]
	if p == nil {
		return nil
	}
	if p.Capacity == nil {
		return []Line{{"capacity", "capacity", w.String(), math.NaN(), "kbit/s", v.whyNot(p)}}
	}
	note := ""
	switch {
	case p.Capacity.Highest > 0:
		note = "at least: no rate was too much for the link, up to the highest that is tried or that the sender can"
	case p.Capacity.Unfinished > 0:
		note = "the time was up before the search had come to 1 %"
	}
	out := []Line{{"capacity", "capacity", w.String(), number(p.Capacity.MaximumBPS) / 1e3, "kbit/s", note}}
	if n := p.Capacity.LargestPayloadBytes; n > 0 {
		out = append(out, Line{"capacity", "largest packet (payload of UDP)", w.String(), float64(n), "bytes", ""})
	}
	return append(out, Line{"capacity", "loss at that rate", w.String(), 100 * number(p.Capacity.LossShare), "%", ""})
}

func (v *Values) probeLines(group string, w Way, p *report.ProbeRow) []Line {
	if p.Sent == 0 {
		return []Line{{group, "loss", w.String(), math.NaN(), "%", v.whyNot(p)}}
	}
	above := clockNote(p)
	out := []Line{
		{group, "delay, median", w.String(), number(p.DelayP50MS), "ms", above},
		{group, "delay, 95 %", w.String(), number(p.DelayP95MS), "ms", above},
		{group, "loss", w.String(), 100 * float64(p.Lost) / float64(p.Sent), "%", fmt.Sprintf("%d of %d packets", p.Lost, p.Sent)},
	}
	if p.Lost > 0 {
		out = append(out, Line{group, "longest burst of losses", w.String(), float64(p.LongestLossBurst), "packets", ""})
	}
	if p.MOS != nil {
		_, codec := codecOf(p.Probe)
		out = append(out, Line{group, "quality of " + codec, w.String(), *p.MOS, "MOS", "of at most 4.4"})
	}
	return out
}

// clockNote says how certain a probe's delays are; empty: by one clock.
func clockNote(p *report.ProbeRow) string {
	switch {
	case p.UncertaintyMS == nil:
		return "above the shortest: clocks not compared"
	case *p.UncertaintyMS > 0:
		return fmt.Sprintf("± %.3g ms by the clocks", *p.UncertaintyMS)
	}
	return ""
}

func (v *Values) messageLines(group string, w Way, p *report.ProbeRow) (out []Line) {
	if p.Sent == 0 {
		return []Line{{group, "delivered", w.String(), math.NaN(), "%", v.whyNot(p)}}
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Sent == 0 {
			continue // the time was too short for one
		}
		size := sizeText(float64(m.Bytes))
		out = append(out, Line{group, "delivered of " + size, w.String(), 100 * float64(m.Delivered) / float64(m.Sent), "%", fmt.Sprintf("%d of %d messages", m.Delivered, m.Sent)})
		if m.TimeP50MS != nil && m.TimeP95MS != nil {
			out = append(out, Line{group, "time of " + size + ", median", w.String(), *m.TimeP50MS, "ms", clockNote(p)},
				Line{group, "time of " + size + ", 95 %", w.String(), *m.TimeP95MS, "ms", clockNote(p)})
		}
	}
	return out
}

func (v *Values) transferLine(r *report.Row) Line {
	l := Line{"transfers", r.Label, There.String(), math.NaN(), "KB/s", ""}
	if r.Valid > 0 && r.AverageKBps != nil {
		l.Value, l.Note = *r.AverageKBps, "verified"
	} else {
		l.Note = v.transferProblem(r)
	}
	return l
}

func number(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// Quantity is a value for people.
func Quantity(x float64, unit string) string {
	switch {
	case math.IsNaN(x):
		return "not measured"
	case unit == "kbit/s" && x >= 10_000:
		return fmt.Sprintf("%.4g Mbit/s", x/1000)
	case math.Abs(x) >= 1000:
		return fmt.Sprintf("%.0f %s", x, unit)
	case x == 1 && (unit == "bytes" || unit == "packets"):
		return "1 " + strings.TrimSuffix(unit, "s")
	case unit == "bytes" || unit == "packets":
		return fmt.Sprintf("%.0f %s", x, unit)
	}
	return fmt.Sprintf("%.3g %s", x, unit)
}

// Text is a check as a sentence without a full stop.
func (c *Check) Text() string {
	relation := "at most"
	if c.AtLeast {
		relation = "at least"
	}
	s := c.Metric
	if c.Way != "" {
		s += ", " + c.Way
	}
	switch {
	case math.IsInf(c.Low, 1): // longer than any time
		s += ": more than " + Quantity(c.Threshold, c.Unit)
	case math.IsInf(c.High, 1):
		s += ": more than " + Quantity(c.Low, c.Unit)
	default:
		s += ": " + Quantity(c.Value, c.Unit)
	}
	if d := c.High - c.Low; d > 1e-9 && !math.IsInf(d, 0) {
		s += fmt.Sprintf(" (%.3g to %.3g)", c.Low, c.High)
	}
	s += fmt.Sprintf(", expected %s %s (%s)", relation, Quantity(c.Threshold, c.Unit), c.Source)
	if c.Note != "" {
		s += "; " + c.Note
	}
	return s
}

// Text is the page for a terminal.
func (p *Page) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measure this link: %s, %s", p.Values.Radio, p.Topology)
	if p.Values.Place != p.Values.Radio {
		fmt.Fprintf(&b, " (%s)", p.Values.Place)
	}
	fmt.Fprintf(&b, ", %s\n", unit.Moment(p.Started))
	switch {
	case p.Values.Running:
		b.WriteString("Partial: the measurement has not ended.\n")
	case p.Values.Partial:
		b.WriteString("Partial: the run was aborted.\n")
	}
	if p.Hint != "" {
		b.WriteString(p.Hint + "\n")
	}
	b.WriteString("\nGood enough for\n")
	for i := range p.Uses {
		u := &p.Uses[i]
		fmt.Fprintf(&b, "  %-20s %s\n", u.Name, strings.ToUpper(string(u.Outcome)))
		for k := range u.Checks {
			fmt.Fprintf(&b, "    %s: %s\n", u.Checks[k].Outcome, u.Checks[k].Text())
		}
		for _, x := range u.NotMeasured {
			fmt.Fprintf(&b, "    not measured: %s\n", x)
		}
	}
	for i, x := range p.Changed {
		if i == 0 {
			b.WriteString("\nThresholds that differ from the defaults\n")
		}
		b.WriteString("  " + x + "\n")
	}
	b.WriteString("\nMeasured\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range p.Values.Lines() {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", l.Group, l.Metric, l.Way, Quantity(l.Value, l.Unit), l.Note)
	}
	_ = w.Flush() // into memory
	for _, x := range p.Positions {
		fmt.Fprintf(&b, "\n%s at %.6f, %.6f", x.Role, x.Latitude, x.Longitude)
	}
	if d, ok := Distance(p.Positions); ok {
		fmt.Fprintf(&b, "\ndistance %.0f m\n", d)
	}
	fmt.Fprintf(&b, "\nOne iteration: it does not tell how much the link changes. Details: linktrial results %s\n", p.Campaign)
	return b.String()
}

// CSV has a row for each value, and one for each check of a use.
func (p *Page) CSV() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	text := func(x float64) string {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	rows := [][]string{{"campaign", "kind", "group", "metric", "way", "value", "unit", "low", "high", "threshold", "bound", "outcome", "source", "note"}}
	for _, l := range p.Values.Lines() {
		rows = append(rows, []string{p.Campaign, "value", l.Group, l.Metric, l.Way, text(l.Value), l.Unit, "", "", "", "", "", "", l.Note})
	}
	for i := range p.Uses {
		u := &p.Uses[i]
		rows = append(rows, []string{p.Campaign, "use", u.Name, "", "", "", "", "", "", "", "", string(u.Outcome), "", strings.Join(u.NotMeasured, " ")})
		for _, c := range u.Checks {
			bound := "at most"
			if c.AtLeast {
				bound = "at least"
			}
			rows = append(rows, []string{p.Campaign, "check", u.Name, c.Metric, c.Way, text(c.Value), c.Unit, text(c.Low), text(c.High), text(c.Threshold), bound, string(c.Outcome), c.Source, c.Note})
		}
	}
	_ = w.WriteAll(rows) // into memory
	return b.Bytes()
}
