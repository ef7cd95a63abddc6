package measure

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"linktrial/orchestrator/report"
)

// Position is where a node was during the measurement: the mean of what its radio, or a
// receiver beside it, told (WGS 84).
type Position struct {
	Role                string
	Latitude, Longitude float64 // degrees
}

// distance is that of two positions on the sphere, in m, by the haversine formula.
func (p *Page) distance() (float64, bool) {
	var client, server *Position
	for i := range p.Positions {
		switch p.Positions[i].Role {
		case "client":
			client = &p.Positions[i]
		case "server":
			server = &p.Positions[i]
		}
	}
	if client == nil || server == nil {
		return 0, false
	}
	const radius, degree = 6_371_008.8, math.Pi / 180 // mean radius of the Earth (IUGG)
	half := func(d float64) float64 { return math.Sin(d*degree/2) * math.Sin(d*degree/2) }
	h := half(server.Latitude-client.Latitude) + math.Cos(client.Latitude*degree)*math.Cos(server.Latitude*degree)*half(server.Longitude-client.Longitude)
	return 2 * radius * math.Asin(math.Min(1, math.Sqrt(h))), true
}

// kmlColour is that of an outcome, as aabbggrr.
var kmlColour = map[Outcome]string{Yes: "ff3c9f2b", No: "ff2b2bd0", Undecided: "ff1aa0e0"}

// KML is a place for each node with the judgements, and the line between client and server
// in the colour of that for voice; nil: no position is known.
func (p *Page) KML() []byte {
	if len(p.Positions) == 0 {
		return nil
	}
	var about strings.Builder
	colour := kmlColour[Undecided]
	for i := range p.Uses {
		fmt.Fprintf(&about, "%s: %s\n", p.Uses[i].Name, p.Uses[i].Outcome)
	}
	if len(p.Uses) > 0 {
		colour = kmlColour[p.Uses[0].Outcome]
	}
	var b bytes.Buffer
	b.WriteString(xml.Header + `<kml xmlns="http://www.opengis.net/kml/2.2"><Document>` + "\n")
	element(&b, "name", "Measure this link, "+p.Campaign)
	var line []string
	for _, x := range p.Positions {
		at := fmt.Sprintf("%.7f,%.7f", x.Longitude, x.Latitude)
		b.WriteString("<Placemark>")
		element(&b, "name", x.Role)
		element(&b, "description", about.String())
		b.WriteString("<Point><coordinates>" + at + "</coordinates></Point></Placemark>\n")
		if x.Role == "client" || x.Role == "server" {
			line = append(line, at)
		}
	}
	if len(line) == 2 {
		b.WriteString("<Placemark>")
		element(&b, "name", "link")
		b.WriteString("<Style><LineStyle><color>" + colour + "</color><width>4</width></LineStyle></Style><LineString><coordinates>" +
			strings.Join(line, " ") + "</coordinates></LineString></Placemark>\n")
	}
	b.WriteString("</Document></kml>\n")
	return b.Bytes()
}

// TrackPoint is one measurement of a series.
type TrackPoint struct {
	Campaign  string
	At        time.Time
	Uses      []Use
	Positions []Position
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

// TrackKML has a point for each measurement of a series at the client's position, or else
// the server's, in the colour of its worst outcome; nil: no position is known.
func TrackKML(points []TrackPoint) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header + `<kml xmlns="http://www.opengis.net/kml/2.2"><Document>` + "\n")
	element(&b, "name", "Measured while moving")
	placed := false
	for i := range points {
		p := &points[i]
		if len(p.Positions) == 0 {
			continue
		}
		placed = true
		about := p.Campaign + "\n"
		for k := range p.Uses {
			about += fmt.Sprintf("%s: %s\n", p.Uses[k].Name, p.Uses[k].Outcome)
		}
		b.WriteString("<Placemark>")
		element(&b, "name", p.At.UTC().Format(time.TimeOnly+" UTC"))
		element(&b, "description", about)
		fmt.Fprintf(&b, "<TimeStamp><when>%s</when></TimeStamp><Style><IconStyle><color>%s</color></IconStyle></Style><Point><coordinates>%.7f,%.7f</coordinates></Point></Placemark>\n",
			p.At.UTC().Format(time.RFC3339), kmlColour[p.Outcome()], p.Positions[0].Longitude, p.Positions[0].Latitude)
	}
	if !placed {
		return nil
	}
	b.WriteString("</Document></kml>\n")
	return b.Bytes()
}

func element(w io.Writer, name, text string) {
	fmt.Fprintf(w, "<%s>", name)
	_ = xml.EscapeText(w, []byte(text)) // into memory
	fmt.Fprintf(w, "</%s>", name)
}

// PositionsOf are the mean positions that the attempts' telemetry has, by role.
func PositionsOf(runs []report.Run) (out []Position) {
	type sum struct{ latitude, longitude, n, m float64 }
	sums := map[string]*sum{}
	for i := range runs {
		for _, t := range runs[i].Trials {
			for k := range t.Attempts {
				for _, x := range t.Attempts[k].Telemetry {
					s := sums[x.Role]
					if s == nil {
						s = &sum{}
						sums[x.Role] = s
					}
					switch x.Metric {
					case "latitude":
						s.latitude, s.n = s.latitude+x.Mean, s.n+1
					case "longitude":
						s.longitude, s.m = s.longitude+x.Mean, s.m+1
					}
				}
			}
		}
	}
	for _, role := range []string{"client", "relay", "server"} {
		if s := sums[role]; s != nil && s.n > 0 && s.m > 0 {
			out = append(out, Position{role, s.latitude / s.n, s.longitude / s.m})
		}
	}
	return out
}
