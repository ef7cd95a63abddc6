package figure

import (
	"cmp"
	"slices"
	"strings"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// Of headings, in pixels: the heights of their lines, and the mean widths of a character.
const (
	firstLine, underLine = 16.0, 14.0
	firstRune, underRune = 6.6, 5.6
	headMost             = 4 // lines of each half; of what is longer the middle is left out
)

// heading is what stands above a panel: what it shows, and below it under which conditions.
// It is broken into lines, because two panels may differ in its last word alone.
type heading struct{ first, under []string }

func headingOf(first, under string, width float64) heading {
	return heading{
		first: wrap(wording.Clean(first), int(width/firstRune), headMost),
		under: wrap(wording.Clean(under), int(width/underRune), headMost),
	}
}

// height is from a panel's top to its heading's last baseline.
func (h heading) height() float64 {
	return 2 + firstLine*float64(len(h.first)) + underLine*float64(len(h.under))
}

func (h heading) draw(c *canvas, x, y float64) {
	y += 2
	for _, s := range h.first {
		y += firstLine
		c.text(x, y, "start", ink, 13, s)
	}
	for _, s := range h.under {
		y += underLine
		c.text(x, y, "start", grey, 11, s)
	}
}

// headings makes those of all panels of a drawing, each another: where two are alike, they
// name what alone distinguishes the panels. The height is that of the highest.
func headings(n int, width func(int) float64, text func(int) (first, under, otherwise string)) (out []heading, height float64) {
	count := map[string]int{}
	for i := range n {
		first, under, _ := text(i)
		count[first+"\x00"+under]++
	}
	for i := range n {
		first, under, otherwise := text(i)
		if count[first+"\x00"+under] > 1 && otherwise != "" {
			under = strings.TrimPrefix(under+", "+otherwise, ", ")
		}
		h := headingOf(first, under, width(i))
		out, height = append(out, h), max(height, h.height())
	}
	return out, height
}

// fixed is the width of each panel where all are alike.
func fixed(width float64) func(int) float64 { return func(int) float64 { return width } }

// radioAt names the radio and the place of a run.
func radioAt(t *report.RunTable) string {
	return cmp.Or(t.RadioTitle, "unknown radio") + " at " + cmp.Or(t.TopologyTitle, "unknown topology")
}

// conditions are those of a run after its radio and place, with further words between.
func conditions(t *report.RunTable, further ...string) string {
	words := append([]string{unit.FormatPayload(t.SizeBytes)}, further...)
	return partial(t) + joined(append(words, t.RuleText(), t.Group, t.Settings, t.PlaceText())...)
}

// partial says where a run is not all of its trials.
func partial(t *report.RunTable) string {
	if !t.Partial {
		return ""
	}
	return "partial (" + cmp.Or(t.State, "unknown state") + "); "
}

func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", ")
}
