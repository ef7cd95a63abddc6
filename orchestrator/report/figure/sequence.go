package figure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linktrial/executor/journal"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

const (
	sequenceWidth  = 760.0
	sequenceHeight = 420.0
	sampledHeight  = 290.0 // of those of a report, two of which are on an upright page
	// closest is how near to each other two marks of retransmissions are drawn, in pixels.
	closest = 4.0
)

// Sequence draws acknowledged bytes over time, a line a flow, for one
// iteration of a run (decola-2006, figures 4 to 8): all treatments of it met
// the same channel, so time runs from the first connect attempt, and what lies
// one above the other happened at the same moment of the channel. Small
// strokes mark samples by which packets had been sent again. Treatments of leaveOut are
// not drawn.
func Sequence(ds *report.Dataset, r *report.Run, iteration int, series []report.Series, leaveOut []string) ([]byte, error) {
	iteration, trials, err := report.Sequence(r, iteration)
	if err != nil {
		return nil, err
	}
	run := report.Analyse(&report.Dataset{Runs: []report.Run{*r}}, report.Options{})
	d := &sequenceDrawing{plan: ds.Plan, run: r.ID, iteration: iteration, table: &run.Tables[0], order: run.TreatmentOrder()}
	d.addLines(slices.DeleteFunc(trials, func(t *report.Trial) bool { return slices.Contains(leaveOut, t.Treatment) }), series)
	return d.draw(), nil
}

// SampledSequence draws the iteration that a report has of a run ([report.SequenceIteration]), in
// the looks of the report's other figures. Marks of packets sent again have no hints: a line may
// have hundreds of them.
func SampledSequence(v *report.Analysis, run int) ([]byte, error) {
	r := &v.Dataset.Runs[run]
	iteration, trials, err := report.Sequence(r, r.Sampled.Iteration)
	if err != nil {
		return nil, err
	}
	d := &sequenceDrawing{plan: v.Dataset.Plan, run: r.ID, iteration: iteration, table: &v.Tables[run], order: v.TreatmentOrder(), brief: true}
	d.addLines(trials, r.Sampled.Series)
	return d.draw(), nil
}

// sequenceDrawing is a time–sequence diagram of one iteration.
type sequenceDrawing struct {
	plan, run string
	iteration int
	table     *report.RunTable
	order     map[string]int // of treatments
	brief     bool           // of a report: not as high, without a hint for each mark
	lines     []sequenceLine
}

func (d *sequenceDrawing) addLines(trials []*report.Trial, series []report.Series) {
	for _, t := range trials {
		d.lines = append(d.lines, sequenceLines(t, d.order[t.Treatment], labelOf(d.table, t.Treatment), series)...)
	}
}

func (d *sequenceDrawing) draw() []byte {
	var entries []legendEntry
	longest, most, sent := 0.0, 0.0, false
	for i := range d.lines {
		l := &d.lines[i]
		for _, p := range l.points {
			longest, most = max(longest, p.seconds), max(most, p.kb)
		}
		sent = sent || l.sent
		if l.legend != "" {
			entries = append(entries, lineEntry(l.look, l.legend))
		}
	}
	entries = append(entries, legendEntry{label: "packets sent again", draw: func(c *canvas, x, y float64) { c.line(x, y-5, x, y+5, grey, 1.2) }},
		legendEntry{label: "trial failed", draw: func(c *canvas, x, y float64) { c.cross(x, y, grey, "trial failed") }})
	const width = chartLeft + sequenceWidth + chartRight
	heading := headingOf("", d.table.Heading(), width).under
	top := 46 + underLine*float64(len(heading))
	high := sequenceHeight
	if d.brief {
		high = sampledHeight
	}
	height := top + high + chartBottom + legendHeightOf(width, entries) + 30
	c := &canvas{}
	c.begin(width, height, fmt.Sprintf("Time–sequence: %s, run %s, iteration %d", cmp.Or(d.plan, "a plan without a name"), d.run, d.iteration))
	for i, s := range heading {
		c.text(12, 38+underLine*float64(i), "start", grey, 11, s)
	}
	f := &frame{left: chartLeft, top: top, width: sequenceWidth, height: high, x: linear(0, longest), y: linear(0, most)}
	name := "acknowledged (KB)"
	if sent {
		name = "acknowledged, or sent where marked so (KB)"
	}
	f.draw(c, "seconds since the first connect attempt", name)
	for i := range d.lines {
		d.lines[i].draw(c, f, d.brief)
	}
	c.legend(top+high+chartBottom+4, width, entries)
	c.text(12, height-8, "start", grey, 11, "1 KB is 1024 bytes. All treatments of an iteration meet the same channel at the same moments.")
	c.add("</svg>")
	return []byte(c.b.String())
}

func labelOf(t *report.RunTable, treatment string) string {
	if i := slices.IndexFunc(t.Rows, func(r report.Row) bool { return r.Treatment == treatment }); i >= 0 {
		return wording.Clean(cmp.Or(t.Rows[i].Label, treatment))
	}
	return wording.Clean(treatment)
}

type sequencePoint struct {
	seconds, kb float64
	again       int64 // packets sent again since the point before
}

type sequenceLine struct {
	look   look
	legend string // empty: further flows of the same trial
	hint   string
	points []sequencePoint
	failed string // what ended it
	sent   bool
}

// sequenceLines are the flows of a trial's last attempt.
func sequenceLines(t *report.Trial, number int, label string, series []report.Series) (out []sequenceLine) {
	a := &t.Attempts[len(t.Attempts)-1]
	flows := a.Flows
	if len(flows) == 0 {
		flows = []report.Flow{{Verdict: a.Verdict, Connect: a.Connect, Elapsed: a.Elapsed, SizeBytes: a.SizeBytes}}
	}
	for i, f := range flows {
		l := sequenceLine{look: lookOf(number), hint: label}
		if len(flows) > 1 {
			l.hint = fmt.Sprintf("%s, flow %d", label, i)
		}
		began := (f.Start + f.Connect).Seconds()
		l.points = append(l.points, sequencePoint{seconds: began})
		if k := slices.IndexFunc(series, func(s report.Series) bool { return s.Trial == t.Index && s.Attempt == a.Attempt && s.Flow == i }); k >= 0 {
			again := int64(0)
			for _, p := range series[k].Points {
				q := sequencePoint{seconds: began + p.Elapsed.Seconds(), kb: float64(p.Bytes) / unit.KB}
				if p.Retransmits != nil {
					q.again, again = max(0, *p.Retransmits-again), max(again, *p.Retransmits)
				}
				l.sent = l.sent || p.Sent
				l.points = append(l.points, q)
			}
		}
		switch {
		case f.Verdict == journal.Succeeded && f.Elapsed > 0:
			l.points = append(l.points, sequencePoint{seconds: began + f.Elapsed.Seconds(), kb: float64(f.SizeBytes) / unit.KB})
		case f.Verdict != "":
			l.failed = report.Failure{Verdict: f.Verdict, Reason: a.Reason}.Name()
		}
		if i == 0 {
			l.legend = label
			switch {
			case l.failed != "":
				l.legend += ": " + l.failed
			case a.Verdict == "":
				l.legend += ": not ended"
			}
		}
		if l.sent && l.legend != "" {
			l.legend += " (sent)"
		}
		out = append(out, l)
	}
	return out
}

func (l *sequenceLine) draw(c *canvas, f *frame, brief bool) {
	points := make([][2]float64, len(l.points))
	for i, p := range l.points {
		points[i] = [2]float64{f.px(p.seconds), f.py(p.kb)}
	}
	c.path(points, l.look.colour, 1.4, l.look.dash)
	l.drawAgain(c, points, brief)
	last, at := l.points[len(l.points)-1], points[len(points)-1]
	if l.failed != "" {
		c.cross(at[0], at[1], l.look.colour, l.hint+": "+l.failed)
		return
	}
	c.marker(l.look.marker, at[0], at[1], l.look.colour, fmt.Sprintf("%s: %s KB after %s s", l.hint, wording.Number(&last.kb), wording.Number(&last.seconds)))
}

// drawAgain marks the samples by which packets had been sent again; brief as one path without hints.
func (l *sequenceLine) drawAgain(c *canvas, points [][2]float64, brief bool) {
	var strokes strings.Builder
	marked, again := -closest, int64(0)
	for i, p := range l.points {
		if again += p.again; again == 0 || points[i][0]-marked < closest {
			continue
		}
		stroke := fmt.Sprintf("M%s %sv10", px(points[i][0]), px(max(points[i][1]-5, 0)))
		if brief {
			strokes.WriteString(stroke)
		} else {
			c.add(`<path d="%s" stroke="%s" stroke-width="1.2"><title>%s</title></path>`, stroke, l.look.colour, escape(fmt.Sprintf("%s: %s sent again by %s s", l.hint, wording.Plural(int(again), "packet", "packets"), wording.Number(&p.seconds))))
		}
		marked, again = points[i][0], 0
	}
	if strokes.Len() > 0 {
		c.add(`<path d="%s" stroke="%s" stroke-width="1.2"/>`, strokes.String(), l.look.colour)
	}
}
