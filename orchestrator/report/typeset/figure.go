package typeset

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"linktrial/orchestrator/report/document"
)

type figure struct {
	Kind      string  `json:"kind"`
	Number    int     `json:"number"`
	Caption   any     `json:"caption"`
	Alt       string  `json:"alt"`
	File      string  `json:"file"`
	Width     float64 `json:"width"` // in points
	Landscape bool    `json:"landscape"`
}

// figure is the one of a number among the document's files, from which its own has its name.
func (s *setter) figure(of *document.Figure, i int) figure {
	f := figure{Kind: "figure", Number: of.Number, Caption: s.text(of.Caption), Alt: s.plain(cmp.Or(of.Alt, of.Caption, "A drawing")), File: fmt.Sprintf("figure-%d.svg", i)}
	f.Width, f.Landscape = placed(of.SVG)
	return f
}

// Heights of drawings, in points: of a page (A4) without margins and a caption.
const uprightHeight, flippedHeight = 620, 380

// Points for a unit of a drawing, whose smallest letters have 10 or 11 units: the largest, and
// the one below which they are hard to read.
const largestScale, legibleScale = 0.8, 0.55

// sizes are those of a drawing (orchestrator/report/figure writes them so).
var sizes = regexp.MustCompile(`^\s*<svg [^>]*?width="([0-9.]+)" height="([0-9.]+)"`)

// placed returns the width of a drawing, and whether it is on a page on its side: where it
// would be hard to read on an upright one.
func placed(svg []byte) (width float64, landscape bool) {
	found := sizes.FindSubmatch(svg)
	if found == nil {
		return uprightWidth, false
	}
	w, errW := strconv.ParseFloat(string(found[1]), 64)
	h, errH := strconv.ParseFloat(string(found[2]), 64)
	if errW != nil || errH != nil || w <= 0 || h <= 0 {
		return uprightWidth, false
	}
	upright := min(uprightWidth/w, uprightHeight/h, largestScale)
	flipped := min(flippedWidth/w, flippedHeight/h, largestScale)
	if upright < legibleScale && flipped > upright {
		return w * flipped, true
	}
	return w * upright, false
}
