package radio

import "testing"

func TestPositioned(t *testing.T) {
	two := []Station{{Name: "a", Role: RoleClient, Latitude: 1}, {Name: "b", Role: RoleServer, Latitude: 2}}
	for name, c := range map[string]struct {
		of   Topology
		want bool
	}{
		"stated":          {Topology{Source: "GPS", Stations: two}, true},
		"constructed":     {Topology{Source: "constructed: two nodes", Stations: two}, false},
		"by its note":     {Topology{Source: "a paper", Notes: []string{"x", "Positions are constructed to reproduce the distances."}, Stations: two}, false},
		"all the same":    {Topology{Stations: []Station{{Name: "a"}, {Name: "b"}}}, false},
		"without any":     {Topology{}, false},
		"other word":      {Topology{Source: "a constructed mast", Stations: two}, true},
		"other longitude": {Topology{Stations: []Station{{Longitude: 1}, {Longitude: 2}}}, true},
	} {
		if got := c.of.Positioned(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestElevationKnown(t *testing.T) {
	of := Topology{Notes: []string{"a note", elevationNote([]string{"a", "the hill"})}}
	for name, want := range map[string]bool{"a": false, "the hill": false, "hill": true, "b": true} {
		if of.ElevationKnown(name) != want {
			t.Errorf("%s: expected %v", name, want)
		}
	}
	if of := (&Topology{}); !of.ElevationKnown("a") {
		t.Error("without a note, all are known")
	}
}

func TestWay(t *testing.T) {
	of := Topology{
		Stations: []Station{{Name: "s", Role: RoleServer}, {Name: "c", Role: RoleClient}, {Name: "r", Role: RoleRelay}},
		Links:    []Path{{A: RoleRelay, B: RoleServer, DistanceMetres: 5}, {A: RoleClient, B: RoleRelay}},
	}
	way := of.Way()
	if len(way) != 3 || way[0].Name != "c" || way[1].Name != "r" || way[2].Name != "s" {
		t.Errorf("%v", way)
	}
	if l := of.Between(RoleServer, RoleRelay); l == nil || l.DistanceMetres != 5 {
		t.Errorf("%v", l)
	}
	if l := of.Between(RoleServer, RoleClient); l != nil {
		t.Errorf("%v", l)
	}
	of.Links = of.Links[:1]
	if way := of.Way(); way != nil {
		t.Errorf("no way, and %v", way)
	}
}
