package radio

import (
	"slices"
	"strings"
)

// elevationUnknown begins the note on the stations whose elevation is given as 0 m.
const elevationUnknown = "Elevation unknown, and given as 0 m: "

func elevationNote(stations []string) string {
	return elevationUnknown + strings.Join(stations, ", ") + "."
}

// ElevationKnown reports whether a station's elevation is known.
func (t *Topology) ElevationKnown(station string) bool {
	for _, n := range t.Notes {
		if names, is := strings.CutPrefix(n, elevationUnknown); is {
			return !slices.Contains(strings.Split(strings.TrimSuffix(names, "."), ", "), station)
		}
	}
	return true
}

// constructed is how the source, or a note, of a topology begins whose distances alone are known.
var constructed = []string{"constructed", "positions are constructed"}

// Positioned reports whether the stations' positions are those of places on the ground. They are
// not where the topology says that they are constructed, and where all are the same.
func (t *Topology) Positioned() bool {
	for _, text := range append([]string{t.Source}, t.Notes...) {
		for _, begin := range constructed {
			if strings.HasPrefix(strings.ToLower(text), begin) {
				return false
			}
		}
	}
	return slices.ContainsFunc(t.Stations, func(s Station) bool {
		return s.Latitude != t.Stations[0].Latitude || s.Longitude != t.Stations[0].Longitude
	})
}

// Way is the stations that packets from the client to the server pass, both included; nil: no
// way leads there.
func (t *Topology) Way() (out []*Station) {
	n := Network{Links: make([]Link, len(t.Links))}
	for i, l := range t.Links {
		n.Links[i] = Link{A: l.A, B: l.B}
	}
	for _, role := range n.Route(RoleClient, RoleServer) {
		s := t.Station(role)
		if s == nil {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// Between is the link of two stations, in either order; nil: there is none.
func (t *Topology) Between(a, b Role) *Path {
	for i := range t.Links {
		if l := &t.Links[i]; l.A == a && l.B == b || l.A == b && l.B == a {
			return l
		}
	}
	return nil
}
