package figure

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// axisScale maps values onto an axis.
type axisScale struct {
	low, high float64
	log       bool
	marks     []mark
}

type mark struct {
	at    float64
	label string
}

// linear reaches from 0, or from below where values are negative, to a round end.
func linear(low, high float64) axisScale {
	low, high = min(low, 0), max(high, 0)
	if low == high {
		high = 1
	}
	_, step := scale(high - low)
	s := axisScale{low: math.Floor(low/step+1e-9) * step, high: math.Ceil(high/step-1e-9) * step}
	for i := 0; s.low+float64(i)*step <= s.high+step/1e6; i++ {
		at := s.low + float64(i)*step
		s.marks = append(s.marks, mark{at, wording.Minus(tick(at, step))})
	}
	return s
}

// logarithmic reaches between powers of ten.
func logarithmic(low, high float64) axisScale {
	from, to := math.Floor(math.Log10(low)+1e-9), math.Ceil(math.Log10(high)-1e-9)
	if from == to {
		to++
	}
	s := axisScale{low: math.Pow(10, from), high: math.Pow(10, to), log: true}
	every := math.Ceil((to - from) / 8)
	for e := from; e <= to; e += every {
		at := math.Pow(10, e)
		s.marks = append(s.marks, mark{at, strconv.FormatFloat(at, 'g', -1, 64)})
	}
	return s
}

// decades is how far apart values must lie for an axis of powers of ten.
const decades = 100

// scaleFor chooses between the two: powers of ten where all values are
// positive and span two decades.
func scaleFor(values []float64) axisScale {
	low, high, least := 0.0, 0.0, math.Inf(1)
	for i, x := range values {
		if i == 0 {
			low, high = x, x
		}
		low, high, least = min(low, x), max(high, x), min(least, x)
	}
	if least > 0 && high >= decades*least && high < math.Inf(1) {
		return logarithmic(low, high)
	}
	return linear(low, high)
}

// along is a value's place on the axis, from 0 at the low end to 1 at the high one.
func (s *axisScale) along(x float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, x = math.Log(low), math.Log(high), math.Log(max(x, s.low/1e6))
	}
	if high == low {
		return 0.5
	}
	return min(max((x-low)/(high-low), 0), 1)
}

// frame is the rectangle that values are drawn into.
type frame struct {
	left, top, width, height float64
	x, y                     axisScale
}

func (f *frame) px(x float64) float64 { return f.left + f.width*f.x.along(x) }
func (f *frame) py(y float64) float64 { return f.top + f.height*(1-f.y.along(y)) }

// draw writes the grid, both axes and their names. Marks of the x axis that
// would run into the one before are left without a label.
func (f *frame) draw(c *canvas, xName, yName string) {
	bottom := f.top + f.height
	for _, m := range f.y.marks {
		c.line(f.left, f.py(m.at), f.left+f.width, f.py(m.at), faint, 1)
		c.text(f.left-6, f.py(m.at)+4, "end", ink, 11, m.label)
	}
	free := math.Inf(-1)
	for _, m := range f.x.marks {
		x, half := f.px(m.at), 3.1*float64(utf8.RuneCountInString(m.label))
		c.line(x, bottom, x, bottom+4, ink, 1)
		if x-half > free {
			c.text(x, bottom+17, "middle", ink, 11, m.label)
			free = x + half + 4
		}
	}
	c.line(f.left, f.top, f.left, bottom, ink, 1)
	c.line(f.left, bottom, f.left+f.width, bottom, ink, 1)
	c.text(f.left+f.width/2, bottom+34, "middle", ink, 11, xName)
	c.add(`<text transform="translate(%s %s) rotate(-90)" text-anchor="middle" fill="%s" font-size="11">%s</text>`, px(f.left-48), px(f.top+f.height/2), ink, escape(yName))
}

// path draws a line through points; a point that is not a number breaks it.
func (c *canvas) path(points [][2]float64, colour string, width float64, pattern dash) {
	var d strings.Builder
	pen := "M"
	for _, p := range points {
		if math.IsNaN(p[0]) || math.IsNaN(p[1]) {
			pen = "M"
			continue
		}
		d.WriteString(pen + px(p[0]) + " " + px(p[1]))
		pen = "L"
	}
	if d.Len() > 0 {
		c.add(`<path d="%s" stroke="%s" stroke-width="%s" fill="none" stroke-linejoin="round"%s/>`, d.String(), colour, px(width), pattern.attribute())
	}
}

// begin opens a drawing with its title.
func (c *canvas) begin(width, height float64, title string) {
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="Helvetica, Arial, sans-serif" role="img">`, px(width), px(height), px(width), px(height))
	c.add(`<title>%s</title>`, escape(title))
	c.add(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	c.text(12, 20, "start", ink, 13, wording.Clip(wording.Clean(title), int(width/7)))
}

// legend writes a marker and a name for each treatment, and returns the height it took.
func (c *canvas) legend(y, width float64, entries []legendEntry) float64 {
	x, line := 16.0, 0.0
	for _, e := range entries {
		w := 30 + 2*e.longer + 6.4*float64(utf8.RuneCountInString(e.label))
		if x+w > width && x > 16 {
			x, line = 16, line+18
		}
		e.draw(c, x+e.longer, y+line)
		c.text(x+12+2*e.longer, y+line+4, "start", ink, 11, e.label)
		x += w
	}
	return line + 18
}

type legendEntry struct {
	label  string
	longer float64 // than others, at both ends of what is drawn
	draw   func(c *canvas, x, y float64)
}

// legendHeightOf is the height that [canvas.legend] will take.
func legendHeightOf(width float64, entries []legendEntry) float64 {
	return (&canvas{}).legend(0, width, entries)
}

// titleOf says of which campaign a figure is.
func titleOf(what string, ds *report.Dataset) string {
	title := what + ": " + cmp.Or(ds.Plan, "a plan without a name") + ", campaign " + ds.Campaign
	if !ds.Complete {
		title += " (partial)"
	}
	if imported := ds.ImportedCampaigns(); len(imported) > 0 {
		title += ", imported: " + strings.Join(imported, ", ")
	}
	if ds.Unnamed() > 0 {
		title += ", " + journal.PlaceUnnamed
	}
	return title
}

// treatmentEntry is a treatment in the legend of a figure of lines.
func treatmentEntry(look look, label, missing string) legendEntry {
	label = wording.Clip(wording.Clean(label), 40)
	if missing != "" {
		label += " (missing)"
	}
	return lineEntry(look, label)
}

// patternLonger lets the pattern of a line be seen at both sides of its marker.
const patternLonger = 7

// lineEntry has a short line and the marker on it.
func lineEntry(look look, label string) legendEntry {
	half, longer := 6.0, 0.0
	if look.dash.array != "" {
		longer = patternLonger
	}
	half += longer
	return legendEntry{label, longer, func(c *canvas, x, y float64) {
		c.patternedLine(x-half, y, x+half, y, look.colour, 1.6, look.dash)
		c.marker(look.marker, x, y, look.colour, label)
	}}
}
