package document

import (
	"fmt"
	"strings"

	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/wording"
)

// placeFigures are the drawings of a topology: its stations and links, and their elevations where
// any is known. Where the nodes' GPS told their positions, these are drawn.
func placeFigures(v *report.Analysis, x *usedTopology, title string) (out []Block) {
	if t, attempts := byGPS(v, x); t != nil {
		return append(drawnPlace(t, "Plan of "+title+", north up, by the GPS of its nodes: the mean of what each told during "+wording.Plural(attempts, "attempt", "attempts")+". The lengths follow from these positions."),
			drawnElevations(x.of, title)...)
	}
	caption := "Nodes of " + title + " with the lengths of their links. Not to scale: positions on the ground are not known."
	if x.of.Positioned() {
		caption = "Plan of " + title + ", north up, with the lengths of its links."
		if movesAny(x.of) {
			caption += " Dotted: how a node moves in each trial."
		}
	}
	return append(drawnPlace(x.of, caption), drawnElevations(x.of, title)...)
}

// drawnPlace is the drawing of stations and links.
func drawnPlace(t *radio.Topology, caption string) []Block {
	svg := figure.Place(t)
	if svg == nil {
		return nil
	}
	if t.Positioned() {
		caption += " There is no map behind it: a report needs no network."
	}
	return []Block{figureBlock(&Figure{Caption: wording.Clean(caption), Alt: placeText(t), SVG: svg})}
}

func drawnElevations(t *radio.Topology, title string) []Block {
	svg := figure.Elevations(t)
	if svg == nil {
		return nil
	}
	caption := "Elevation from the client to the server of " + title + ". Dashed: lines of sight between neighbours; the ground between the nodes is not known."
	return []Block{figureBlock(&Figure{Caption: wording.Clean(caption), Alt: elevationText(t), SVG: svg})}
}

func movesAny(t *radio.Topology) bool {
	for i := range t.Stations {
		if t.Stations[i].Moves != nil {
			return true
		}
	}
	return false
}

// placeText says which nodes and links a drawing has.
func placeText(t *radio.Topology) string {
	var said []string
	for i := range t.Stations {
		said = append(said, wording.Clean(t.Stations[i].Name)+" ("+string(t.Stations[i].Role)+")")
	}
	text := "Nodes: " + strings.Join(said, ", ") + "."
	said = nil
	for _, l := range t.Links {
		said = append(said, fmt.Sprintf("%s to %s %s", l.A, l.B, figure.LengthText(l.DistanceMetres)))
	}
	if len(said) > 0 {
		text += " Links: " + strings.Join(said, ", ") + "."
	}
	return text
}

// elevationText says how high each node on the way is.
func elevationText(t *radio.Topology) string {
	var said []string
	for _, s := range t.Way() {
		height := "not known"
		if t.ElevationKnown(s.Name) {
			height = exact(s.Elevation) + " m"
		}
		said = append(said, wording.Clean(s.Name)+": "+height)
	}
	return "Elevations: " + strings.Join(said, ", ") + "."
}
