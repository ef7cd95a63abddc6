package figure

import (
	"fmt"

	"linktrial/orchestrator/report"
)

// perPart is how many panels one drawing holds: more would be too tall to be read. The
// pages have as many.
const perPart = 12

// part is the panels of a figure that one drawing shows.
type part struct{ first, end, number, of int }

func partOf(v *report.Analysis, panels int) part {
	of := partsOf(panels)
	n := min(max(1, v.Part()), of)
	first, end := Panels(n, panels)
	return part{first, end, n, of}
}

// Panels are those of so many that a part of a figure shows, from 1: from first up to, but
// not including, end.
func Panels(number, panels int) (first, end int) {
	return min((number-1)*perPart, panels), min(number*perPart, panels)
}

func partsOf(panels int) int { return max(1, (panels+perPart-1)/perPart) }

// note ends the note under a drawing.
func (p part) note() string {
	if p.of == 1 {
		return ""
	}
	return fmt.Sprintf(" Part %d of %d.", p.number, p.of)
}

// RunParts is how many drawings a figure with a panel for each run has.
func RunParts(v *report.Analysis) int { return partsOf(len(v.Tables)) }

// CurveParts is how many drawings the parameter curves have.
func CurveParts(v *report.Analysis) int { return partsOf(len(v.Charts())) }

// DelayParts is how many drawings the delays of probes have.
func DelayParts(v *report.Analysis) int { return partsOf(len(probePanels(v.Tables))) }

// DelayPanels are the rows that each panel of the delays of probes draws.
func DelayPanels(v *report.Analysis) (out []DelayPanel) {
	for _, p := range probePanels(v.Tables) {
		out = append(out, DelayPanel{p.table, p.rows})
	}
	return out
}

// DelayPanel is the probes of one kind in one run.
type DelayPanel struct {
	Table *report.RunTable
	Rows  []report.ProbeRow
}
