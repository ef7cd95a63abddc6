package journal

import "linktrial/internal/telemetrysource"

// Readings of the radio, or of the laptop beside it. Both are [Telemetry].
const (
	TypeTelemetry Type = "telemetry" // one reading of one source
	// TypeTelemetryFailed has the reason why a source cannot be read; there is no other
	// until it answers again or the reason is another.
	TypeTelemetryFailed Type = "telemetry-failed"
)

// Telemetry is what one source answered at the record's time.
type Telemetry struct {
	Source string               `json:"source"` // name in the radio's profile
	Kind   telemetrysource.Kind `json:"kind"`
	Values []Reading            `json:"values,omitempty"`
	Error  string               `json:"error,omitempty"`
}

// Reading is one value of a source.
type Reading = telemetrysource.Reading
