package telemetrysource

import (
	"encoding/json"
	"testing"
)

// FuzzReport: any line of gpsd is an error or a report, and a position lies on Earth.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"class":"TPV","mode":3,"lat":39,"lon":-77.1,"altMSL":80,"speed":0.1,"eph":4}`))
	f.Add([]byte(`{"class":"ERROR","message":"no"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseReport(line)
		if err != nil {
			return
		}
		if p := r.position(); p != nil && (!json.Valid(line) || p[0].Value < -90 || p[0].Value > 90 || p[1].Value < -180 || p[1].Value > 180) {
			t.Errorf("%+v", p)
		}
	})
}
