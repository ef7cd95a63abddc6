package document

import (
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
)

// usedTopology is a topology with the runs at it.
type usedTopology struct {
	of   *radio.Topology
	runs []int
}

// topologiesOf are the topologies of all runs, each once.
func topologiesOf(v *report.Analysis) (out []*usedTopology) {
	sheetsOf(v, func(run int, _ *report.Run, s *runsheet.Sheet) {
		t := &s.Topology
		i := slices.IndexFunc(out, func(x *usedTopology) bool { return x.of.Name == t.Name && x.of.Hash == t.Hash })
		if i < 0 {
			i = len(out)
			out = append(out, &usedTopology{of: t})
		}
		out[i].runs = append(out[i].runs, run)
	})
	return out
}

// placeBlocks describes each topology once: stations with their positions, links with their lengths.
func placeBlocks(v *report.Analysis) (blocks []Block) {
	for _, x := range topologiesOf(v) {
		t := x.of
		title := t.Title
		if title == "" {
			title = t.Name
		}
		text := title
		if runs := someRuns(x.runs, len(v.Dataset.Runs)); runs != "" {
			text += " (" + runs + ")"
		}
		text += "."
		if t.Source != "" {
			text += " Source: " + t.Source + "."
		}
		if t.Second != nil {
			text += " Every node has a second radio, " + t.Second.Radio + " (source: " + t.Second.Source + ")."
		}
		blocks = slices.Concat(blocks, paragraphs(text), placeFigures(v, x, title), stationTable(t, title), linkTable(t, title), listOf(slices.Clone(t.Notes)))
	}
	return blocks
}

func stationTable(t *radio.Topology, title string) []Block {
	g := grid{caption: "Stations of " + title, heads: []string{"Station", "Role", "Latitude, °", "Longitude, °", "Elevation, m", "Moves"},
		numbers: []string{"Latitude, °", "Longitude, °", "Elevation, m"}}
	for i := range t.Stations {
		s := &t.Stations[i]
		moves := ""
		if m := s.Moves; m != nil {
			moves = exact(m.SpeedMetresPerSecond) + " m/s by way of " + waypoints(m.Waypoints)
			if m.Return {
				moves += ", back and forth"
			}
		}
		height := "unknown"
		if t.ElevationKnown(s.Name) {
			height = exact(s.Elevation)
		}
		g.add(s.Name, string(s.Role), exact(s.Latitude), exact(s.Longitude), height, moves)
	}
	return g.blocks()
}

func waypoints(all []radio.Waypoint) string {
	parts := make([]string, len(all))
	for i, w := range all {
		parts[i] = exact(w.Latitude) + ", " + exact(w.Longitude)
	}
	return strings.Join(parts, "; ")
}

func linkTable(t *radio.Topology, title string) []Block {
	g := grid{caption: "Links of " + title, heads: []string{"From", "To", "Distance, m", "Source of the distance"}, numbers: []string{"Distance, m"}}
	for _, l := range t.Links {
		g.add(string(l.A), string(l.B), exact(l.DistanceMetres), l.Source)
	}
	return g.blocks()
}
