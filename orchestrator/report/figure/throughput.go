package figure

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"linktrial/executor/journal"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// The figure is drawn in pixels of CSS; text is 11 or 13 of them high.
const (
	slotWidth     = 88.0 // of a treatment
	boxWidth      = 40.0
	plotHeight    = 240.0
	failHeight    = 20.0 // strip below zero where trials without a value are marked
	marginLeft    = 64.0
	marginRight   = 16.0
	headGap       = 14.0 // between a panel's heading and its plot
	marginBottom  = 74.0 // treatment in at most three lines, and n
	panelsAbreast = 3
	minPlotWidth  = 300.0
	minWidth      = 640.0 // of the legend
	legendHeight  = 46.0
	labelRunes    = 14 // of one line under a slot
)

const (
	ink   = "#222222"
	faint = "#dddddd"
	grey  = "#777777"
)

// canvas collects SVG elements.
type canvas struct{ b strings.Builder }

// px writes a coordinate.
func px(x float64) string { return wording.Minus(strconv.FormatFloat(x, 'f', 1, 64)) }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

func (c *canvas) line(x1, y1, x2, y2 float64, colour string, width float64) {
	c.patternedLine(x1, y1, x2, y2, colour, width, dash{})
}

func (c *canvas) patternedLine(x1, y1, x2, y2 float64, colour string, width float64, d dash) {
	c.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="%s"%s/>`, px(x1), px(y1), px(x2), px(y2), colour, px(width), d.attribute())
}

// text writes a line; anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, colour string, size int, s string) {
	c.add(`<text x="%s" y="%s" text-anchor="%s" fill="%s" font-size="%d">%s</text>`, px(x), px(y), anchor, colour, size, escape(s))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(wording.Clean(s))) // a strings.Builder takes all
	return b.String()
}

func (c *canvas) cross(x, y float64, colour, hint string) {
	c.add(`<path d="M%s %s l7 7 m0 -7 l-7 7" stroke="%s" stroke-width="1.8" fill="none"><title>%s</title></path>`, px(x-3.5), px(y-3.5), colour, escape(hint))
}

// ring marks a trial that says nothing of its treatment.
func (c *canvas) ring(x, y float64, colour, hint string) {
	c.add(`<circle cx="%s" cy="%s" r="3" fill="none" stroke="%s" stroke-width="1.4"><title>%s</title></circle>`, px(x), px(y), colour, escape(hint))
}

// panel is one run's chart.
type panel struct {
	table *report.RunTable
	run   *report.Run
	unit  wording.RateUnit // of the scale
	top   float64          // of the scale, in its unit
	step  float64
}

// Throughput draws the paper's chart for each run: a thin bar from minimum to
// maximum, a box of the mean ± one standard deviation, and over them every
// iteration. Panels of one radio have the same scale.
func Throughput(v *report.Analysis) ([]byte, error) {
	part := partOf(v, len(v.Tables))
	panels, rows := layout(v, part)
	width := 0.0
	for _, row := range rows {
		w := 0.0
		for _, p := range row {
			w += panels[p].width()
		}
		width = max(width, w)
	}
	width = max(width, minWidth)
	heads, head := headings(len(panels), func(i int) float64 { return panels[i].width() - marginLeft - marginRight }, func(i int) (string, string, string) {
		t := panels[i].table
		return radioAt(t), conditions(t, wording.Plural(t.Iterations, "iteration", "iterations")), "run " + t.Run
	})
	panelHeight := head + headGap + plotHeight + failHeight + marginBottom
	height := float64(len(rows))*panelHeight + legendHeight + 30
	c := &canvas{}
	title := titleOf("Throughput by treatment", v.Dataset)
	c.begin(width, height, title)
	order := v.TreatmentOrder()
	for i, row := range rows {
		x, y := 0.0, 30+float64(i)*panelHeight
		for _, p := range row {
			heads[p].draw(c, x+marginLeft, y)
			panels[p].draw(c, x, y+head+headGap, order)
			x += panels[p].width()
		}
	}
	largest := 0.0
	for i := range v.Tables {
		largest = max(largest, (&panel{table: &v.Tables[i]}).highest())
	}
	drawLegend(c, height-legendHeight, v, part, wording.RateUnitFor(largest))
	c.add("</svg>")
	return []byte(c.b.String()), nil
}

// layout makes a panel of each run of the part, and lines of panels: a topology begins a
// new one. Panels of one radio have the same scale in all parts.
func layout(v *report.Analysis, part part) ([]panel, [][]int) {
	panels := make([]panel, len(v.Tables))
	tops := map[string]float64{}
	for i := range panels {
		panels[i] = panel{table: &v.Tables[i], run: &v.Dataset.Runs[i]}
		tops[panels[i].table.Radio] = max(tops[panels[i].table.Radio], panels[i].highest())
	}
	panels = panels[part.first:part.end]
	var rows [][]int
	for i := range panels {
		p := &panels[i]
		highest := tops[p.table.Radio]
		p.unit = wording.RateUnitFor(highest)
		p.top, p.step = scale(p.unit.In(highest))
		last := len(rows) - 1
		if last < 0 || len(rows[last]) == panelsAbreast || panels[rows[last][0]].table.Topology != p.table.Topology {
			rows = append(rows, nil)
			last++
		}
		rows[last] = append(rows[last], i)
	}
	return panels, rows
}

// highest is the largest value the panel shows, KB/s.
func (p *panel) highest() float64 {
	top := 0.0
	for i := range p.table.Rows {
		r := &p.table.Rows[i]
		if r.MaxKBps != nil {
			top = max(top, *r.MaxKBps)
		}
		if r.AverageKBps != nil && r.SDKBps != nil {
			top = max(top, *r.AverageKBps+*r.SDKBps)
		}
		if r.Published != nil {
			top = max(top, r.Published.MaxKBps, r.Published.AvgKBps)
		}
	}
	return top
}

// scale is a round end of an axis that reaches at least as high, and its step,
// one of 1, 2 and 5 times a power of ten that makes four to ten of them.
func scale(highest float64) (top, step float64) {
	if !(highest > 1e-300) {
		return 1, 0.5
	}
	if highest > 1e300 {
		return highest, highest // powers of ten near it overflow
	}
	power := math.Pow(10, math.Floor(math.Log10(highest)))
	step = power
	for _, f := range []float64{0.1, 0.2, 0.5, 1} {
		if step = f * power; highest/step <= 7 {
			break
		}
	}
	return math.Ceil(highest/step-1e-9) * step, step
}

func (p *panel) slot() float64 {
	n := max(1, len(p.table.Rows))
	return max(slotWidth, minPlotWidth/float64(n))
}

func (p *panel) width() float64 {
	return marginLeft + marginRight + p.slot()*float64(max(1, len(p.table.Rows)))
}

// draw draws the panel below its heading.
func (p *panel) draw(c *canvas, x, top float64, order map[string]int) {
	t := p.table
	left, right := x+marginLeft, x+p.width()-marginRight
	zero := top + plotHeight
	at := func(kbps float64) float64 { return zero - plotHeight*min(max(p.unit.In(kbps)/p.top, 0), 1) }
	for i := 0; float64(i)*p.step <= p.top*(1+1e-9); i++ {
		v := float64(i) * p.step
		level := zero - plotHeight*min(v/p.top, 1)
		c.line(left, level, right, level, faint, 1)
		c.text(left-6, level+4, "end", ink, 11, tick(v, p.step))
	}
	c.line(left, top, left, zero+failHeight, ink, 1)
	c.line(left, zero, right, zero, ink, 1)
	c.text(left-6, zero+failHeight-5, "end", grey, 11, "no value")
	middle := top + plotHeight/2
	c.add(`<text transform="translate(%s %s) rotate(-90)" text-anchor="middle" fill="%s" font-size="11">Throughput (%s)</text>`, px(x+16), px(middle), ink, p.unit.Name)
	for i := range t.Rows {
		p.drawTreatment(c, &t.Rows[i], left+p.slot()*(float64(i)+0.5), zero, at, lookOf(order[t.Rows[i].Treatment]))
	}
	if len(t.Rows) == 0 {
		why := "no trials"
		if len(t.Probes) > 0 {
			why = "probes alone: delays.svg"
		}
		c.text((left+right)/2, middle, "middle", grey, 11, why)
	}
}

func tick(v, step float64) string {
	n := 0
	for s := step; s < 0.9999 && n < 12; s *= 10 {
		n++
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

func (p *panel) drawTreatment(c *canvas, r *report.Row, cx, zero float64, at func(float64) float64, look look) {
	colour := look.colour
	if r.AverageKBps != nil {
		lo, hi := at(*r.MinKBps), at(*r.MaxKBps)
		c.line(cx, hi, cx, lo, colour, 2)
		if r.SDKBps != nil {
			boxTop, boxBottom := at(*r.AverageKBps+*r.SDKBps), at(*r.AverageKBps-*r.SDKBps)
			c.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity="0.25" stroke="%s"/>`, px(cx-boxWidth/2), px(boxTop), px(boxWidth), px(boxBottom-boxTop), colour, colour)
		}
		c.line(cx-boxWidth/2, at(*r.AverageKBps), cx+boxWidth/2, at(*r.AverageKBps), colour, 2)
	}
	if pub := r.Published; pub != nil {
		px0 := cx + boxWidth/2 + 9
		c.line(px0, at(pub.MaxKBps), px0, at(pub.MinKBps), grey, 1)
		c.line(px0-5, at(pub.AvgKBps), px0+5, at(pub.AvgKBps), ink, 2)
	}
	p.drawTrials(c, r, cx, zero, at, look)
	y := zero + failHeight + 14
	label := wrap(wording.Clean(r.Label), labelRunes, 3)
	for _, l := range label {
		c.text(cx, y, "middle", ink, 11, l)
		y += 13
	}
	if r.Missing != "" {
		c.text(cx, y, "middle", grey, 11, "missing")
		return
	}
	c.text(cx, y, "middle", grey, 11, fmt.Sprintf("n = %d of %d", r.Valid, r.Trials))
}

// drawTrials marks every ended trial, from left to right in the order of iterations.
func (p *panel) drawTrials(c *canvas, r *report.Row, cx, zero float64, at func(float64) float64, look look) {
	var trials []*report.Trial
	for i := range p.run.Trials {
		if t := &p.run.Trials[i]; t.Treatment == r.Treatment && !p.run.NotNeeded(t) {
			trials = append(trials, t)
		}
	}
	slices.SortStableFunc(trials, func(a, b *report.Trial) int { return a.Iteration - b.Iteration })
	for k, t := range trials {
		x := cx + (boxWidth-6)*((float64(k)+0.5)/float64(len(trials))-0.5)
		switch a := t.Counted(); {
		case a != nil:
			rate := a.ThroughputBytesPerSecond() / unit.KB
			c.marker(look.marker, x, at(rate), look.colour, fmt.Sprintf("iteration %d: %s %s", t.Iteration, p.unit.Write(&rate), p.unit.Name))
		case t.Verdict != "" && (len(t.Attempts) == 0 || !p.run.Waits(&t.Attempts[len(t.Attempts)-1])):
			why := string(t.Verdict)
			if n := len(t.Attempts); n > 0 {
				why = report.Failure{Verdict: t.Verdict, Reason: t.Attempts[n-1].Why()}.Name()
			}
			mark := c.ring
			if t.Verdict == journal.Failed || t.Verdict == journal.TimedOut {
				mark = c.cross
			}
			mark(x, zero+failHeight/2+1, look.colour, fmt.Sprintf("iteration %d: %s", t.Iteration, why))
		}
	}
}

// wrap breaks a label into lines of n runes, at most so many, at spaces and where a word is
// longer than a line; what does not fit loses its middle.
func wrap(s string, n, most int) []string {
	var lines, words []string
	for _, word := range strings.Fields(s) {
		r := []rune(word)
		for ; len(r) > n && n > 0; r = r[n:] {
			words = append(words, string(r[:n]))
		}
		words = append(words, string(r))
	}
	for _, word := range words {
		if last := len(lines) - 1; last >= 0 && len([]rune(lines[last]))+1+len([]rune(word)) <= n {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	if len(lines) > most {
		rest := strings.Join(lines[most-1:], " ")
		lines = append(lines[:most-1], rest)
	}
	for i := range lines {
		lines[i] = wording.ClipMiddle(lines[i], n)
	}
	return lines
}

func drawLegend(c *canvas, y float64, v *report.Analysis, part part, largest wording.RateUnit) {
	x := 12.0
	c.line(x+6, y+6, x+6, y+24, grey, 2)
	c.text(x+16, y+19, "start", ink, 11, "minimum to maximum")
	x += 156
	c.add(`<rect x="%s" y="%s" width="14" height="14" fill="%s" fill-opacity="0.25" stroke="%s"/>`, px(x), px(y+8), grey, grey)
	c.line(x, y+15, x+14, y+15, grey, 2)
	c.text(x+20, y+19, "start", ink, 11, "mean ± 1 SD")
	x += 104
	c.marker(markers[0], x+4, y+15, grey, "one iteration")
	c.text(x+12, y+19, "start", ink, 11, "one iteration")
	x += 98
	c.cross(x+4, y+15, grey, "one failed trial")
	c.text(x+14, y+19, "start", ink, 11, "failed")
	x += 58
	c.ring(x+4, y+15, grey, "one trial that was skipped or excluded")
	c.text(x+14, y+19, "start", ink, 11, "skipped or excluded")
	if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Has(report.HasPublished) }) {
		x += 142
		c.line(x+5, y+6, x+5, y+24, grey, 1)
		c.line(x, y+15, x+10, y+15, ink, 2)
		c.text(x+16, y+19, "start", ink, 11, "published")
	}
	c.text(12, y+38, "start", grey, 11, largest.Meaning()+". n: valid trials of all. Charts of one radio have the same scale."+part.note())
}
