package measure

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"

	"linktrial/orchestrator/report"
)

// Position is where a node was during the measurement: the mean of what its radio, or a
// receiver beside it, told (WGS 84).
type Position struct {
	Role                string
	Latitude, Longitude float64 // degrees
}

// Distance is that of client and server, in m; false: one of the positions is not known.
func Distance(positions []Position) (float64, bool) {
	client, server := positionOf(positions, "client"), positionOf(positions, "server")
	if client == nil || server == nil {
		return 0, false
	}
	return apart(client, server), true
}

func positionOf(positions []Position, role string) *Position {
	for i := range positions {
		if positions[i].Role == role {
			return &positions[i]
		}
	}
	return nil
}

// apart is the distance of two positions on the sphere, in m, by the haversine formula.
func apart(a, b *Position) float64 {
	const radius, degree = 6_371_008.8, math.Pi / 180 // mean radius of the Earth (IUGG)
	half := func(d float64) float64 { return math.Sin(d*degree/2) * math.Sin(d*degree/2) }
	h := half(b.Latitude-a.Latitude) + math.Cos(a.Latitude*degree)*math.Cos(b.Latitude*degree)*half(b.Longitude-a.Longitude)
	return 2 * radius * math.Asin(math.Min(1, math.Sqrt(h)))
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
		at := coordinates(&x)
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

func element(w io.Writer, name, text string) {
	fmt.Fprintf(w, "<%s>", name)
	_ = xml.EscapeText(w, []byte(text)) // into memory
	fmt.Fprintf(w, "</%s>", name)
}

// PositionsOf are the mean positions that the attempts' telemetry has, by role.
func PositionsOf(runs []report.Run) (out []Position) {
	type sum struct{ latitude, longitude, n, m, first float64 }
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
						if s.m == 0 {
							s.first = x.Mean
						}
						// Beside the 180th meridian, 179.9 and -179.9 are near each other.
						s.longitude, s.m = s.longitude+math.Remainder(x.Mean-s.first, 360), s.m+1
					}
				}
			}
		}
	}
	for _, role := range []string{"client", "relay", "server"} {
		if s := sums[role]; s != nil && s.n > 0 && s.m > 0 {
			out = append(out, Position{role, s.latitude / s.n, math.Remainder(s.first+s.longitude/s.m, 360)})
		}
	}
	return out
}
