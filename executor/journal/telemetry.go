package journal

import "linktrial/internal/radio"

// TypeTelemetry is one reading of one source of what the radio, or the laptop
// beside it, tells of itself: [Telemetry].
const TypeTelemetry Type = "telemetry"

// Telemetry is what one source told at the record's time. A source that cannot
// be read has one record with the reason, and no other until it answers again
// or the reason is another.
type Telemetry struct {
	Source string              `json:"source"` // name in the radio's profile
	Kind   radio.TelemetryKind `json:"kind"`
	Values []Reading           `json:"values,omitempty"`
	Error  string              `json:"error,omitempty"`
}

// Reading is one figure.
type Reading struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit,omitempty"`
	Counter bool    `json:"counter,omitempty"` // only grows
}
