package measure_test

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/report"
)

func at(role string, latitude, longitude float64) measure.Position {
	return measure.Position{Role: role, Latitude: latitude, Longitude: longitude}
}

// walk is a series of which the server moves 100 m a point to the north.
func walk(t *testing.T) []measure.TrackPoint {
	t.Helper()
	v := measure.ValuesOf([]report.RunTable{good()}, nil)
	uses := measure.Judge(&v, measure.Track, measure.Defaults)
	if len(uses) != 2 {
		t.Fatalf("%d uses of a track", len(uses))
	}
	bad := []measure.Use{uses[0], {Name: "chat and positions", Outcome: measure.No}}
	still := at("client", 39.03, -76.96)
	return []measure.TrackPoint{
		{Campaign: "a", At: time.Unix(0, 0), Uses: uses, Values: v},
		{Campaign: "b", At: time.Unix(30, 0), Uses: uses, Values: v, Positions: []measure.Position{still, at("server", 39.0308993, -76.96)}},
		{Campaign: "c", At: time.Unix(60, 0), Uses: bad, Positions: []measure.Position{still, at("server", 39.0317986, -76.96)}},
	}
}

func TestMovingNode(t *testing.T) {
	points := walk(t)
	if got := measure.Moving(points); got != "server" {
		t.Errorf("%q moved", got)
	}
	if got := measure.Moving(points[:2]); got != "client" { // nobody has moved yet
		t.Errorf("of one position: %q", got)
	}
	if got := measure.Moving(points[:1]); got != "" {
		t.Errorf("without positions: %q", got)
	}
	relay := []measure.TrackPoint{{Positions: []measure.Position{at("relay", 1, 1)}}}
	if got := measure.Moving(relay); got != "relay" {
		t.Errorf("of a relay alone: %q", got)
	}
}

// The points of a series lie where the node was that moved, in the colour of the worst outcome.
func TestTrackKML(t *testing.T) {
	points := walk(t)
	if measure.TrackKML(points[:1]) != nil {
		t.Error("KML without positions")
	}
	kml := string(measure.TrackKML(points))
	if strings.Count(kml, "<TimeStamp>") != 2 || strings.Count(kml, "ff3c9f2b") != 1 || strings.Count(kml, "ff2b2bd0") != 1 {
		t.Error(kml)
	}
	if !strings.Contains(kml, "<LineString><coordinates>-76.9600000,39.0308993 -76.9600000,39.0317986</coordinates>") ||
		!strings.Contains(kml, "<name>client</name><Point><coordinates>-76.9600000,39.0300000") {
		t.Error(kml)
	}
}

func TestTrackCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(string(measure.TrackCSV(walk(t))))).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%v, %v", rows, err)
	}
	for i, want := range []string{
		"a,1970-01-01T00:00:00Z,server,,,,yes,yes,yes,30,30,0,0",
		"b,1970-01-01T00:00:30Z,server,39.0308993,-76.9600000,100.0,yes,yes,yes,30,30,0,0",
		"c,1970-01-01T00:01:00Z,server,39.0317986,-76.9600000,200.0,no,yes,no,,,,",
	} {
		if got := strings.Join(rows[i+1], ","); got != want {
			t.Errorf("%s\nexpected\n%s", got, want)
		}
	}
}

// On both sides of the 180th meridian a position is near both of its readings.
func TestPositionsBesideTheMeridian(t *testing.T) {
	reading := func(longitude float64) report.Attempt {
		return report.Attempt{Telemetry: []report.Telemetry{{Role: "client", Metric: "latitude", Mean: -17}, {Role: "client", Metric: "longitude", Mean: longitude}}}
	}
	got := measure.PositionsOf([]report.Run{{Trials: []report.Trial{{Attempts: []report.Attempt{reading(179.9), reading(-179.9)}}}}})
	if len(got) != 1 || got[0].Longitude > -179.99 && got[0].Longitude < 179.99 {
		t.Errorf("%+v", got)
	}
	if d, ok := measure.Distance([]measure.Position{at("client", 0, 179.9995), at("server", 0, -179.9995)}); !ok || d < 111 || d > 111.4 {
		t.Errorf("distance %g, %v", d, ok)
	}
}
