package document_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestPlacesAreDrawn(t *testing.T) {
	r := reporttest.Quickstart()
	r.Sheet.Topology = radio.Topology{Name: "ridge", Title: "Ridge\x1b <b>", Source: "GPS", Hash: "1",
		Stations: []radio.Station{
			{Name: "base", Role: radio.RoleServer, Latitude: 47, Longitude: 11, Elevation: 580},
			{Name: "lorry\u202e", Role: radio.RoleClient, Latitude: 47.1, Longitude: 11, Moves: &radio.Moves{SpeedMetresPerSecond: 1, Waypoints: []radio.Waypoint{{Latitude: 47, Longitude: 11.1}}}},
		},
		Links: []radio.Path{{A: radio.RoleClient, B: radio.RoleServer, DistanceMetres: 11_119}},
		Notes: []string{"Elevation unknown, and given as 0 m: lorry\u202e."},
	}
	figures, _ := figuresOf(t, reporttest.Campaign(r), report.Options{}, "conditions-places")
	require.Len(t, figures, 2)
	require.Contains(t, figures[0].Caption, "north up, with the lengths of its links. Dotted: how a node moves in each trial. There is no map behind it: a report needs no network.")
	require.Contains(t, figures[0].Alt, "base (server), lorry")
	require.Contains(t, figures[0].Alt, "client to server 11.1 km (36480 ft)")
	require.Contains(t, figures[1].Alt, ": not known, base: 580 m.")

	r.Sheet.Topology.Source = "constructed: two nodes"
	figures, _ = figuresOf(t, reporttest.Campaign(r), report.Options{}, "conditions-places")
	require.Len(t, figures, 1)
	require.Contains(t, figures[0].Caption, "Not to scale: positions on the ground are not known.")
	require.NotContains(t, figures[0].Caption, "\x1b")
}

// Where the nodes' GPS told their positions over real radios, these are drawn.
func TestPlacesByGPS(t *testing.T) {
	r := reporttest.Quickstart()
	r.Place = journal.PlaceReal
	r.Sheet.Topology = radio.Topology{Name: "ridge", Title: "Ridge", Source: "constructed", Hash: "1",
		Stations: []radio.Station{{Name: "a", Role: radio.RoleClient, Elevation: 5}, {Name: "b", Role: radio.RoleServer, Elevation: 5}},
		Links:    []radio.Path{{A: radio.RoleClient, B: radio.RoleServer, DistanceMetres: 100}},
	}
	tell := func(trial int, node, role string, latitude, longitude float64) {
		a := &r.Trials[trial].Attempts[0]
		a.Telemetry = append(a.Telemetry, report.Telemetry{Node: node, Role: role, Source: "gps", Metric: "latitude", Mean: latitude}, report.Telemetry{Node: node, Role: role, Source: "gps", Metric: "longitude", Mean: longitude})
	}
	tell(0, "n1", "client", 10, 179.99)
	tell(1, "n1", "client", 10.002, -179.99)
	caption := func() string {
		figures, _ := figuresOf(t, reporttest.Campaign(r), report.Options{}, "conditions-places")
		require.Len(t, figures, 1)
		return figures[0].Caption + figures[0].Alt
	}
	require.Contains(t, caption(), "Not to scale") // of the server nothing is told
	tell(0, "n2", "server", 10.001, -179.99)
	require.Contains(t, caption(), "Plan of Ridge, north up, by the GPS of its nodes: the mean of what each told during 2 attempts. The lengths follow from these positions.")
	require.Contains(t, caption(), "client to server 1095 m")
	r.Place = journal.PlaceVirtual
	require.Contains(t, caption(), "Not to scale")
	r.Place = journal.PlaceReal
	r.Sheet.Topology.Stations[0].Moves = &radio.Moves{SpeedMetresPerSecond: 1}
	require.Contains(t, caption(), "Not to scale")
}

// References are of what the report names, and of nothing else.
func TestReferences(t *testing.T) {
	ds := reporttest.Probed()
	ds.Words = []report.Words{{Campaign: ds.Campaign, Author: "Ada", Remarks: map[string]string{"method": "As in dantas-2011 and RFC 9293."}}}
	names := func(ds *report.Dataset) (out []string) {
		d := of(t, report.Analyse(ds, report.Options{}))
		last := d.Sections[len(d.Sections)-1]
		require.Equal(t, "references", last.ID)
		require.Equal(t, "References", last.Title)
		for _, f := range last.Blocks[0].Facts {
			out = append(out, f.Name)
			require.NotEmpty(t, f.Value)
		}
		return out
	}
	probed := names(ds)
	require.Subset(t, probed, []string{"breedy-2015", "RFC 2330", "RFC 7679", "RFC 7680", "ITU-T G.107"})
	require.NotContains(t, probed, "dantas-2011") // the director's own words are hers
	require.NotContains(t, probed, "RFC 9293")
	ds = reporttest.Campaign(reporttest.Quickstart())
	ds.Runs[0].Sheet.Topology.Notes, ds.Runs[0].Sheet.Topology.Stations = []string{"Not RFC 22863, nor lttcp-20061; but (qaddoura-2006)."}, []radio.Station{{Name: "a", Role: radio.RoleClient}}
	quick := names(ds)
	require.Contains(t, quick, "qaddoura-2006")
	require.NotContains(t, quick, "RFC 2330")
	require.NotContains(t, quick, "RFC 2863")
	require.NotContains(t, quick, "lttcp-2006")
}
