package figure

import (
	"fmt"
	"strings"
)

// look is how a treatment is drawn, in figures and on pages.
type look struct {
	colour string
	marker marker
	dash   dash
}

// marker is a filled shape around (0,0), in pixels. Hollow shapes have other meanings: trials
// that say nothing of their treatment and published values here, bounds on pages. No shape
// is like the cross of a failed trial.
type marker struct {
	glyph   string       // the same as a character, for legends in text
	outline [][2]float64 // of a closed polygon; none: a circle of markerRadius
}

// dash is the pattern of a treatment's lines.
type dash struct {
	name  string // as ECharts and CSS have it
	array string // of SVG; empty: solid
}

// markerRadius is that of the circle. The other shapes have about its surface.
const markerRadius = 3

// markerBox is half of the width of the square that every shape lies in.
const markerBox = 4

// The table of looks. The pages read it from web/src/lib/looks.json, which a test of this
// package compares with it and writes.
var (
	// colours are for lines and marks on white. Five are Okabe and Ito's (2008), which can be
	// distinguished with colour-blindness: blue, vermillion, green, purple and sky blue. Their
	// yellow and orange are too faint on white, and black is that of axes.
	colours = []string{
		"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00",
		"#56b4e9", "#a0260f", "#5b5bd6", "#3d7a1e", "#8a3ffc",
	}

	markers = []marker{
		{"●", nil},
		{"■", [][2]float64{{-2.7, -2.7}, {2.7, -2.7}, {2.7, 2.7}, {-2.7, 2.7}}},
		{"▲", [][2]float64{{0, -3.6}, {3.4, 2.6}, {-3.4, 2.6}}},
		{"◆", [][2]float64{{0, -3.9}, {3.9, 0}, {0, 3.9}, {-3.9, 0}}},
		{"▼", [][2]float64{{0, 3.6}, {3.4, -2.6}, {-3.4, -2.6}}},
		{"✚", [][2]float64{{-1.2, -3.9}, {1.2, -3.9}, {1.2, -1.2}, {3.9, -1.2}, {3.9, 1.2}, {1.2, 1.2}, {1.2, 3.9}, {-1.2, 3.9}, {-1.2, 1.2}, {-3.9, 1.2}, {-3.9, -1.2}, {-1.2, -1.2}}},
		{"★", [][2]float64{{0, -4}, {1.2, -1.7}, {3.8, -1.2}, {2, 0.6}, {2.4, 3.2}, {0, 2.1}, {-2.4, 3.2}, {-2, 0.6}, {-3.8, -1.2}, {-1.2, -1.7}}},
		{"◀", [][2]float64{{-3.6, 0}, {2.6, -3.4}, {2.6, 3.4}}},
		{"▶", [][2]float64{{3.6, 0}, {-2.6, -3.4}, {-2.6, 3.4}}},
		{"⬟", [][2]float64{{0, -3.7}, {3.5, -1.1}, {2.2, 3}, {-2.2, 3}, {-3.5, -1.1}}},
	}

	// boundMarkers are of curves of bounds, which are grey, in the order of [report.Bounds].
	boundMarkers = []marker{markers[0], markers[3]}

	dashes = []dash{{"solid", ""}, {"dashed", "5 3"}, {"dotted", "1.5 2"}}
)

// lookOf is the look of the treatment with this number in the order of treatments, from 0.
// Each round of the colours has other markers: a hundred treatments differ in one of both.
// palette.ts of the pages has the same rule.
func lookOf(number int) look {
	round := number / len(colours)
	return look{
		colour: colours[number%len(colours)],
		marker: markers[(number+round)%len(markers)],
		dash:   dashes[round%len(dashes)],
	}
}

// attribute is what a line of this pattern has besides its stroke.
func (d dash) attribute() string {
	if d.array == "" {
		return ""
	}
	return ` stroke-dasharray="` + d.array + `"`
}

// marker draws a shape with a hint for pointers.
func (c *canvas) marker(m marker, x, y float64, colour, hint string) {
	name, shape := "circle", fmt.Sprintf(`cx="%s" cy="%s" r="%d"`, px(x), px(y), markerRadius)
	if m.outline != nil {
		name, shape = "polygon", `points="`+m.around(x, y)+`"`
	}
	c.add(`<%s %s fill="%s" stroke="#ffffff" stroke-width="0.6"><title>%s</title></%s>`, name, shape, colour, escape(hint), name)
}

// around is the outline about a point, as an SVG polygon has it.
func (m marker) around(x, y float64) string {
	points := make([]string, len(m.outline))
	for i, p := range m.outline {
		points[i] = px(x+p[0]) + "," + px(y+p[1])
	}
	return strings.Join(points, " ")
}
