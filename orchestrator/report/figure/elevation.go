package figure

import (
	"math"
	"unicode/utf8"

	"linktrial/internal/radio"
	"linktrial/orchestrator/report/wording"
)

// Of the profile, in pixels.
const (
	profileHeight = 236.0
	profileLeft   = 58.0
	profileRight  = 40.0
	profileTop    = 52.0
	profileBottom = 44.0
)

// profilePoint is a station on the way from the client to the server.
type profilePoint struct {
	*radio.Station
	far   float64 // from the client along the way, m
	known bool    // its elevation
}

// Elevations draws the elevation of the stations along the way from the client to the server, with
// the lines of sight between neighbours, as figures 2 and 3 of breedy-2015. The ground between
// stations is not known, and is not drawn. Where no elevation is known, or no position, there is
// nothing to draw: nil.
func Elevations(t *radio.Topology) []byte {
	points, known := profileOf(t)
	if !known || !t.Positioned() {
		return nil
	}
	f := profileFrame(points)
	c := &canvas{}
	c.begin(placeWidth, profileHeight, "Elevation from the client to the server of "+titleOfPlace(t))
	f.drawAxes(c)
	bottom := f.top + f.height
	for i := 1; i < len(points); i++ {
		if a, b := points[i-1], points[i]; a.known && b.known {
			c.patternedLine(f.px(a.far), f.py(a.Elevation), f.px(b.far), f.py(b.Elevation), colours[0], 2, linkDash)
		}
	}
	for i, p := range points {
		x := f.px(p.far)
		if p.known {
			c.line(x, f.py(p.Elevation), x, bottom, ink, 2)
			c.add(`<circle cx="%s" cy="%s" r="5" fill="%s"/>`, px(x), px(f.py(p.Elevation)), colours[0])
		} else {
			c.patternedLine(x, f.top+24, x, bottom, grey, 2, dashes[1])
			c.text(x+5, f.top+20, "start", ink, 16, "?")
		}
		name := wording.Clip(wording.Clean(p.Name), nameRunes)
		c.halo(nameAt(x, name), profileHeight-6-14*float64(i%2)*crowded(points), 12, true, name)
	}
	c.add("</svg>")
	return []byte(c.b.String())
}

// crowded is 1 where names would touch each other in one line.
func crowded(points []profilePoint) float64 {
	runes := 0
	for _, p := range points {
		runes += min(nameRunes, utf8.RuneCountInString(p.Name)) + 3
	}
	if float64(runes)*7 > placeWidth/2 {
		return 1
	}
	return 0
}

// nameAt keeps a name within the drawing.
func nameAt(x float64, name string) float64 {
	half := 3.6*float64(utf8.RuneCountInString(name)) + 4
	return min(max(x, half), placeWidth-half)
}

func profileOf(t *radio.Topology) (out []profilePoint, known bool) {
	far := 0.0
	for i, s := range t.Way() {
		if i > 0 {
			far += out[i-1].DistanceMetres(s)
		}
		p := profilePoint{s, far, t.ElevationKnown(s.Name)}
		out, known = append(out, p), known || p.known
	}
	return out, known
}

// profileFrame has room of a fifth, and of at least 5 m, below and above the stations.
func profileFrame(points []profilePoint) *frame {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		if p.known {
			low, high = min(low, p.Elevation), max(high, p.Elevation)
		}
	}
	room := max(5, (high-low)*0.2)
	length := max(1, points[len(points)-1].far)
	f := &frame{left: profileLeft, top: profileTop, width: placeWidth - profileLeft - profileRight, height: profileHeight - profileTop - profileBottom,
		x: axisScale{high: length}, y: axisScale{low: low - room, high: high + room}}
	step := roundLength(length / 4)
	for at := 0.0; at <= length; at += step {
		f.x.marks = append(f.x.marks, mark{at, metres(at)})
	}
	step = roundLength((f.y.high - f.y.low) / 3)
	for i := range 10 { // a step is more than a tenth of all
		at := (math.Ceil(f.y.low/step) + float64(i)) * step
		if at > f.y.high {
			break
		}
		f.y.marks = append(f.y.marks, mark{at, wording.Minus(tick(at, step)) + " m"})
	}
	return f
}

func (f *frame) drawAxes(c *canvas) {
	bottom := f.top + f.height
	c.line(f.left, bottom, f.left+f.width, bottom, ink, 1)
	c.line(f.left, f.top, f.left, bottom, ink, 1)
	for _, m := range f.x.marks {
		c.line(f.px(m.at), bottom, f.px(m.at), bottom+5, ink, 1)
		c.text(f.px(m.at), bottom+17, "middle", ink, 11, m.label)
	}
	for _, m := range f.y.marks {
		c.line(f.left-5, f.py(m.at), f.left, f.py(m.at), ink, 1)
		c.text(f.left-8, f.py(m.at)+4, "end", ink, 11, m.label)
	}
}
