package fleet

import (
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// Bounds of what a node may report of its radio: far beyond what a profile names.
const (
	maxSources = 64
	maxValues  = 256
)

// CleanTelemetry returns what a node reported, within bounds and without values
// that are not numbers.
func CleanTelemetry(all []*linktrialv1.TelemetryState) []*linktrialv1.TelemetryState {
	var out []*linktrialv1.TelemetryState
	for _, s := range all[:min(len(all), maxSources)] {
		if s == nil || s.Source == "" {
			continue
		}
		c := &linktrialv1.TelemetryState{Source: clean(s.Source), Kind: clean(s.Kind), Error: clean(s.Error)}
		if s.AgeSeconds > 0 && s.AgeSeconds < 1e9 {
			c.AgeSeconds = s.AgeSeconds
		}
		for _, v := range s.Values[:min(len(s.Values), maxValues)] {
			if v != nil && !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
				c.Values = append(c.Values, &linktrialv1.TelemetryReading{Name: clean(v.Name), Value: v.Value, Unit: clean(v.Unit), Counter: v.Counter})
			}
		}
		out = append(out, c)
	}
	return out
}

// Aged returns what the node reported of its radio, with the ages that the
// readings have now.
func (h *Health) Aged(now time.Time) []*linktrialv1.TelemetryState {
	var out []*linktrialv1.TelemetryState
	for _, s := range h.Telemetry {
		c := proto.CloneOf(s)
		c.AgeSeconds += now.Sub(h.ReportedAt).Seconds()
		out = append(out, c)
	}
	return out
}
