package figure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/radio"
)

// ridge is three nodes on the ground, one of which moves.
func ridge() *radio.Topology {
	return &radio.Topology{
		Name: "ridge", Title: "Ridge & valley", Source: "GPS",
		Stations: []radio.Station{
			{Name: "base <1>", Role: radio.RoleServer, Latitude: 47.0, Longitude: 11.0, Elevation: 580},
			{Name: "summit", Role: radio.RoleRelay, Latitude: 47.012, Longitude: 11.018, Elevation: 1240},
			{Name: "lorry", Role: radio.RoleClient, Latitude: 47.004, Longitude: 11.041, Elevation: 0, Moves: &radio.Moves{SpeedMetresPerSecond: 5, Waypoints: []radio.Waypoint{{Latitude: 46.998, Longitude: 11.044}, {Latitude: 46.996, Longitude: 11.036}}}},
		},
		Links: []radio.Path{
			{A: radio.RoleClient, B: radio.RoleRelay, DistanceMetres: 1957, Source: "GPS"},
			{A: radio.RoleRelay, B: radio.RoleServer, DistanceMetres: 1911, Source: "GPS"},
			{A: radio.RoleClient, B: radio.RoleServer, DistanceMetres: 12_140, Source: "GPS"},
		},
		Notes: []string{"Elevation unknown, and given as 0 m: lorry."},
	}
}

// overTheRelay is the same nodes, of which client and server are out of each other's range.
func overTheRelay() *radio.Topology {
	t := ridge()
	t.Links = t.Links[:2]
	return t
}

// measuredOnly is the same nodes, of which the distances alone are known.
func measuredOnly() *radio.Topology {
	t := ridge()
	t.Notes = append(t.Notes, "Positions are constructed to reproduce the distances.")
	return t
}

// pair is two nodes, whose elevations are alike.
func pair() *radio.Topology {
	return &radio.Topology{Name: "pair", Stations: []radio.Station{
		{Name: "a", Role: radio.RoleClient, Latitude: -17.5, Longitude: 179.9999, Elevation: 3},
		{Name: "b", Role: radio.RoleServer, Latitude: -17.5, Longitude: -179.9999, Elevation: 3},
	}, Links: []radio.Path{{A: radio.RoleClient, B: radio.RoleServer, DistanceMetres: 21.2}}}
}

// The drawings of places are as they were; -update writes them anew.
func TestPlaceGolden(t *testing.T) {
	for name, svg := range map[string][]byte{
		"ridge": Place(ridge()), "ridge-profile": Elevations(overTheRelay()), "chain": Place(measuredOnly()),
		"pair": Place(pair()), "pair-profile": Elevations(pair()),
	} {
		checkSVG(t, string(svg))
		file := filepath.Join("testdata", "place-"+name+".svg.golden")
		if *update {
			if err := os.WriteFile(file, svg, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != string(svg) {
			t.Errorf("%s is not what is drawn (%v): go test ./orchestrator/report/figure -run TestPlaceGolden -update writes it anew", file, err)
		}
	}
}

func TestPlaceSaysWhatIsKnown(t *testing.T) {
	plan, chain := string(Place(ridge())), string(Place(measuredOnly()))
	for _, both := range []string{"base &lt;1&gt;", "summit", "lorry", "1957 m (6421 ft)", "12.1 km (39829 ft)"} {
		if !strings.Contains(plan, both) || !strings.Contains(chain, both) {
			t.Errorf("%q is not in both drawings", both)
		}
	}
	if !strings.Contains(plan, ">N</text>") || strings.Contains(plan, "not to scale") {
		t.Error("a plan is to scale and has its north")
	}
	if strings.Contains(chain, ">N</text>") || !strings.Contains(chain, ">not to scale</text>") {
		t.Error("a chain has no north, and says that it is not to scale")
	}
	if profile := string(Elevations(overTheRelay())); !strings.Contains(profile, ">?</text>") || strings.Count(profile, `r="5"`) != 2 {
		t.Error("an elevation that is not known is a question mark")
	}
	for name, of := range map[string]*radio.Topology{"constructed positions": measuredOnly(), "nothing": {}, "no way": {Stations: ridge().Stations}} {
		if svg := Elevations(of); svg != nil {
			t.Errorf("a profile of %s: %s", name, svg)
		}
	}
	if svg := Place(&radio.Topology{}); svg != nil {
		t.Errorf("a place of nothing: %s", svg)
	}
	// An import can have any numbers, and stations without a way.
	far := ridge()
	far.Stations[0].Elevation, far.Stations[1].Elevation, far.Stations[0].Latitude = 1e17, 1e17, 1e300
	far.Links = far.Links[:1]
	checkSVG(t, string(Place(far)))
	far.Notes = measuredOnly().Notes
	checkSVG(t, string(Place(far)))
	far.Links = ridge().Links
	far.Notes = nil
	checkSVG(t, string(Elevations(far)))
}

// Lengths are clear of stations and of each other.
func TestPlaceLengths(t *testing.T) {
	legs := []leg{{point{100, 100}, point{500, 100}, "400 m"}, {point{500, 100}, point{300, 300}, "300 m"}, {point{300, 300}, point{100, 100}, "300 m"}}
	var taken []box
	for _, l := range legs {
		taken = append(taken, stationBoxes(l.from, "a station")...)
	}
	view := box{0, 0, 660, 420}
	for i, at := range placeLengths(legs, taken, view) {
		b := textBox(at, legs[i].text)
		for _, o := range taken {
			if b.overlap(o) > 0 {
				t.Errorf("text %d at %v is over %v", i, at, o)
			}
		}
		for k, l := range legs {
			if b.crossing(l) > 0 || k != i && l.distance(at) < legs[i].distance(at) {
				t.Errorf("text %d at %v is on line %d, or nearer to it", i, at, k)
			}
		}
		if b.overlap(view) < b.width*b.height {
			t.Errorf("text %d at %v is not in the drawing", i, at)
		}
		taken = append(taken, b)
	}
}
