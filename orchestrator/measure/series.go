package measure

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/unit"
)

// TrackPoint is one measurement of a series that is made while somebody moves.
type TrackPoint struct {
	Campaign  string
	At        time.Time
	Uses      []Use
	Positions []Position
	Values    Values
}

// Outcome is the worst of the uses: no before undecided before yes.
func (p *TrackPoint) Outcome() Outcome {
	worst := Yes
	for i := range p.Uses {
		switch p.Uses[i].Outcome {
		case No:
			return No
		case Undecided:
			worst = Undecided
		}
	}
	return worst
}

// Moving is the role of the node that moved: the one that was farthest from its first
// position, and of nodes that were nowhere else the first of client, server and relay that
// has a position. Empty: no position is known.
func Moving(points []TrackPoint) (role string) {
	farthest := -1.0
	for _, r := range []string{"client", "server", "relay"} {
		var first *Position
		far := -1.0
		for i := range points {
			at := positionOf(points[i].Positions, r)
			switch {
			case at == nil:
			case first == nil:
				first, far = at, max(far, 0)
			default:
				far = max(far, apart(first, at))
			}
		}
		if far > farthest {
			role, farthest = r, far
		}
	}
	return role
}

// TrackKML has a point for each measurement of a series at the position of the node that
// moved, in the colour of its worst outcome, the line through them, and the other nodes where
// they were last; nil: no position is known.
func TrackKML(points []TrackPoint) []byte {
	moving := Moving(points)
	if moving == "" {
		return nil
	}
	var b bytes.Buffer
	b.WriteString(xml.Header + `<kml xmlns="http://www.opengis.net/kml/2.2"><Document>` + "\n")
	element(&b, "name", "Measured while moving")
	var line []string
	others := map[string]*Position{}
	for i := range points {
		p := &points[i]
		for k := range p.Positions {
			if x := &p.Positions[k]; x.Role != moving {
				others[x.Role] = x
			}
		}
		if at := positionOf(p.Positions, moving); at != nil {
			line = append(line, coordinates(at))
			trackPlacemark(&b, p, line[len(line)-1])
		}
	}
	if len(line) > 1 {
		b.WriteString("<Placemark>")
		element(&b, "name", "track of the "+moving)
		b.WriteString("<LineString><coordinates>" + strings.Join(line, " ") + "</coordinates></LineString></Placemark>\n")
	}
	for _, role := range []string{"client", "relay", "server"} {
		if at := others[role]; at != nil {
			b.WriteString("<Placemark>")
			element(&b, "name", role)
			b.WriteString("<Point><coordinates>" + coordinates(at) + "</coordinates></Point></Placemark>\n")
		}
	}
	b.WriteString("</Document></kml>\n")
	return b.Bytes()
}

func trackPlacemark(b *bytes.Buffer, p *TrackPoint, at string) {
	about := p.Campaign + "\n"
	for k := range p.Uses {
		about += fmt.Sprintf("%s: %s\n", p.Uses[k].Name, p.Uses[k].Outcome)
	}
	b.WriteString("<Placemark>")
	element(b, "name", unit.Clock(p.At))
	element(b, "description", about)
	fmt.Fprintf(b, "<TimeStamp><when>%s</when></TimeStamp><Style><IconStyle><color>%s</color></IconStyle></Style><Point><coordinates>%s</coordinates></Point></Placemark>\n",
		p.At.UTC().Format(time.RFC3339), kmlColour[p.Outcome()], at)
}

func coordinates(p *Position) string { return fmt.Sprintf("%.7f,%.7f", p.Longitude, p.Latitude) }

// Brief are the values of small packets on the idle link that a series is shown by: the
// median of the delay, and the loss, of each way.
func (v *Values) Brief() (out []Line) {
	for w, p := range v.Idle {
		if p == nil {
			continue
		}
		for _, l := range v.probeLines("small packets, idle link", Way(w), p) {
			if l.Metric == "delay, median" || l.Metric == "loss" {
				out = append(out, l)
			}
		}
	}
	return out
}

// TrackCSV has a row for each measurement of a series. What is not known is empty.
func TrackCSV(points []TrackPoint) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	moving := Moving(points)
	rows := [][]string{{"campaign", "time", "moving", "latitude", "longitude", "distance_m", "outcome", "voice", "chat_and_positions",
		"delay_median_ms_client_server", "delay_median_ms_server_client", "loss_percent_client_server", "loss_percent_server_client"}}
	for i := range points {
		p := &points[i]
		row := []string{p.Campaign, p.At.UTC().Format(time.RFC3339), moving, "", "", "", string(p.Outcome()), p.outcomeOf("voice"), p.outcomeOf("chat and positions")}
		if at := positionOf(p.Positions, moving); at != nil {
			row[3], row[4] = fmt.Sprintf("%.7f", at.Latitude), fmt.Sprintf("%.7f", at.Longitude)
		}
		if d, ok := Distance(p.Positions); ok {
			row[5] = fmt.Sprintf("%.1f", d)
		}
		for _, metric := range []string{"delay, median", "loss"} {
			for _, way := range []Way{There, Back} {
				row = append(row, p.brief(metric, way))
			}
		}
		rows = append(rows, row)
	}
	_ = w.WriteAll(rows) // into memory
	return b.Bytes()
}

func (p *TrackPoint) outcomeOf(use string) string {
	for i := range p.Uses {
		if p.Uses[i].Name == use {
			return string(p.Uses[i].Outcome)
		}
	}
	return ""
}

func (p *TrackPoint) brief(metric string, way Way) string {
	for _, l := range p.Values.Brief() {
		if l.Metric == metric && l.Way == way.String() && !math.IsNaN(l.Value) {
			return strconv.FormatFloat(l.Value, 'g', -1, 64)
		}
	}
	return ""
}
