package figure

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"linktrial/internal/checkout"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

var update = flag.Bool("update", false, "write web/src/lib/looks.json anew")

// pageLooks is the table as palette.ts of the pages reads it.
type pageLooks struct {
	Colors  []string     `json:"colors"`
	Markers []pageMarker `json:"markers"`
	Radius  float64      `json:"radius"` // of the circle
	Box     float64      `json:"box"`    // half of the square that every shape lies in
	Dashes  []string     `json:"dashes"`
}

type pageMarker struct {
	Glyph  string `json:"glyph"`
	Points string `json:"points"` // as an SVG polygon has them; empty: the circle
}

func tableForPages() pageLooks {
	table := pageLooks{Colors: colours, Radius: markerRadius, Box: markerBox}
	for _, m := range markers {
		var points []string
		for _, p := range m.outline {
			points = append(points, fmt.Sprintf("%v,%v", p[0], p[1]))
		}
		table.Markers = append(table.Markers, pageMarker{m.glyph, strings.Join(points, " ")})
	}
	for _, d := range dashes {
		table.Dashes = append(table.Dashes, d.name)
	}
	return table
}

func looksFile(t *testing.T) string {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "web/src/lib/looks.json")
}

// Pages draw treatments with the colours, markers and dashes of the figures.
func TestPagesHaveTheSameLooks(t *testing.T) {
	b, err := json.MarshalIndent(tableForPages(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	file := looksFile(t)
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, b) {
		t.Errorf("%s is not the table of looks in look.go (%v): go test ./orchestrator/report/figure -run TestPagesHaveTheSameLooks -update writes it anew", file, err)
	}
}

func TestLooksDiffer(t *testing.T) {
	seen := map[string]int{}
	for i := range 100 {
		l := lookOf(i)
		key := l.colour + l.marker.glyph
		if other, ok := seen[key]; ok {
			t.Errorf("treatments %d and %d are both %s", other, i, key)
		}
		seen[key] = i
		if round := i / len(colours); l.dash != dashes[round%len(dashes)] {
			t.Errorf("treatment %d has the dash %q", i, l.dash.name)
		}
	}
}

// All markers are surfaces within the box that pages scale, none much larger or smaller than
// the others.
func TestMarkersHaveTheSameWeight(t *testing.T) {
	circle := math.Pi * markerRadius * markerRadius
	glyphs := map[string]bool{}
	for _, m := range markers {
		if glyphs[m.glyph] {
			t.Errorf("two markers are %s", m.glyph)
		}
		glyphs[m.glyph] = true
		if m.outline == nil {
			continue
		}
		for _, p := range m.outline {
			if math.Abs(p[0]) > markerBox || math.Abs(p[1]) > markerBox {
				t.Errorf("%s: %v lies outside of its box", m.glyph, p)
			}
		}
		if s := surface(m.outline); s < 0.7*circle || s > 1.25*circle {
			t.Errorf("%s: a surface of %.1f, the circle has %.1f", m.glyph, s, circle)
		}
	}
}

// surface is that of a closed polygon.
func surface(outline [][2]float64) float64 {
	twice := 0.0
	for i, p := range outline {
		q := outline[(i+1)%len(outline)]
		twice += p[0]*q[1] - p[1]*q[0]
	}
	return math.Abs(twice) / 2
}

// WCAG 2.2 asks for 3:1 where nothing else tells marks apart; sky blue has less, and its
// treatments have markers and names besides.
func TestColoursAreSeenOnWhite(t *testing.T) {
	for _, c := range colours {
		if ratio := 1.05 / (luminance(t, c) + 0.05); ratio < 2.2 {
			t.Errorf("%s: a contrast of %.2f to white", c, ratio)
		}
	}
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 24)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

var drawnMarker = regexp.MustCompile(`<(?:circle cx="[^"]*" cy="[^"]*" r="([^"]*)"|polygon points="([^"]*)") fill="([^"]*)" stroke="#ffffff" stroke-width="0.6"><title>([^<]*)</title>`)

// The markers and colours of exported figures are those that pages read.
func TestExportedFiguresLookLikePages(t *testing.T) {
	b, err := os.ReadFile(looksFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var page pageLooks
	if err := json.Unmarshal(b, &page); err != nil {
		t.Fatal(err)
	}
	ds := reporttest.Datasets()["twelve"]
	rows := report.Summarize(ds)[0].Rows
	if len(rows) != 12 {
		t.Fatalf("%d treatments; one of a second round of colours is needed", len(rows))
	}
	// The marks of a panel's trials, treatment by treatment; the legend's circle comes after them.
	trials := drawnMarker.FindAllStringSubmatch(drawn(t, Throughput, ds), -1)
	for i, row := range rows {
		for range row.Valid {
			page.check(t, "throughput", i, trials[0])
			trials = trials[1:]
		}
	}
	distribution := drawn(t, Distribution, ds)
	marks := drawnMarker.FindAllStringSubmatch(distribution, -1)
	for i, mark := range marks[len(marks)-len(rows):] {
		page.check(t, "legend of the distribution", i, mark)
	}
	// Of each treatment in the second round, its curve and its line in the legend.
	if n := strings.Count(distribution, "stroke-dasharray"); n != 4 {
		t.Errorf("%d lines have a dash, expected those of two treatments", n)
	}
}

// check compares a mark with the look of a treatment by the rule of palette.ts.
func (p *pageLooks) check(t *testing.T, where string, treatment int, mark []string) {
	t.Helper()
	round := treatment / len(p.Colors)
	colour, m := p.Colors[treatment%len(p.Colors)], p.Markers[(treatment+round)%len(p.Markers)]
	same := mark[1] == fmt.Sprint(p.Radius)
	if m.Points != "" {
		same = sameShape(t, mark[2], m.Points)
	}
	if !same || mark[3] != colour {
		t.Errorf("%s: treatment %d is drawn as %s, pages have %s in %s", where, treatment, mark[0], m.Glyph, colour)
	}
}

// sameShape: two outlines differ only by where they are, and by rounding.
func sameShape(t *testing.T, a, b string) bool {
	t.Helper()
	p, q := pointsIn(t, a), pointsIn(t, b)
	if len(p) != len(q) || len(p) == 0 {
		return false
	}
	for i := range p {
		for axis := range 2 {
			if math.Abs((p[i][axis]-p[0][axis])-(q[i][axis]-q[0][axis])) > 0.11 {
				return false
			}
		}
	}
	return true
}

func pointsIn(t *testing.T, s string) (out [][2]float64) {
	t.Helper()
	for _, pair := range strings.Fields(s) {
		var p [2]float64
		if _, err := fmt.Sscanf(pair, "%g,%g", &p[0], &p[1]); err != nil {
			t.Fatalf("%q: %v", pair, err)
		}
		out = append(out, p)
	}
	return out
}
