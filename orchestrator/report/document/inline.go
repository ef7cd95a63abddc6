package document

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
)

const svgSpace = "http://www.w3.org/2000/svg"

// What a drawing of orchestrator/report/figure consists of. Nothing in it has an id, a class or a
// style, or refers to something: several drawings in one page cannot touch each other.
var (
	drawingElements   = []string{"circle", "g", "line", "path", "polygon", "polyline", "rect", "svg", "text", "title", "tspan"}
	drawingAttributes = []string{
		"cx", "cy", "d", "dy", "fill", "fill-opacity", "font-family", "font-size", "font-weight", "height", "paint-order", "points", "r", "role", "rx",
		"stroke", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "stroke-opacity", "stroke-width", "text-anchor", "transform",
		"viewBox", "width", "x", "x1", "x2", "xmlns", "y", "y1", "y2",
	}
)

// drawing is a figure's SVG as a part of a page.
type drawing struct {
	HTML  template.HTML
	width float64 // in pixels; 0: it does not have one
}

// wideDrawing is from which width on a drawing is legible on a landscape page alone, in pixels: its
// letters have 11, and an upright page has 673.
const wideDrawing = 900

func (d *drawing) landscape() bool { return d.width > wideDrawing }

// inlined reads a drawing as XML and writes it again, so that a browser finds in it what was read
// here. Its error is one sentence: that it is no drawing, and why.
func inlined(svg []byte) (*drawing, error) {
	in := inliner{}
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			if !in.root {
				return nil, errors.New("there is no drawing in it")
			}
			return &drawing{template.HTML(in.b.String()), in.width}, nil // written from known elements, with escaped texts
		}
		if err != nil {
			return nil, fmt.Errorf("not SVG: %w", err)
		}
		if err := in.add(token); err != nil {
			return nil, err
		}
	}
}

type inliner struct {
	b     strings.Builder
	depth int
	width float64
	root  bool // was there
	open  bool // the start of an element, without its >
}

func (in *inliner) add(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return in.start(t)
	case xml.EndElement:
		in.depth--
		if in.open {
			in.b.WriteString("/>")
			in.open = false
			return nil
		}
		in.b.WriteString("</" + t.Name.Local + ">")
		return nil
	case xml.CharData:
		if in.depth == 0 && len(bytes.TrimSpace(t)) == 0 {
			return nil
		}
		if in.depth == 0 {
			return errors.New("not SVG: text outside the drawing")
		}
		in.close()
		template.HTMLEscape(&in.b, t)
		return nil
	}
	return errors.New("not a drawing of results: it has a comment or an instruction")
}

func (in *inliner) close() {
	if in.open {
		in.b.WriteByte('>')
		in.open = false
	}
}

func (in *inliner) start(e xml.StartElement) error {
	if (e.Name.Local == "svg") != (in.depth == 0) || in.depth == 0 && in.root {
		return fmt.Errorf("not SVG: expected one element svg, around all others; found %q", e.Name.Local)
	}
	if e.Name.Space != svgSpace || !slices.Contains(drawingElements, e.Name.Local) {
		return fmt.Errorf("not a drawing of results: it has an element %q", e.Name.Local)
	}
	in.close()
	in.depth, in.root, in.open = in.depth+1, true, true
	in.b.WriteString("<" + e.Name.Local)
	for _, a := range e.Attr {
		if a.Name.Space != "" || !slices.Contains(drawingAttributes, a.Name.Local) || strings.Contains(a.Value, "url(") {
			return fmt.Errorf("not a drawing of results: its element %q has an attribute %s=%q", e.Name.Local, a.Name.Local, a.Value)
		}
		if in.depth == 1 && a.Name.Local == "width" {
			in.width, _ = strconv.ParseFloat(a.Value, 64)
		}
		in.b.WriteString(" " + a.Name.Local + `="` + template.HTMLEscapeString(a.Value) + `"`)
	}
	return nil
}
