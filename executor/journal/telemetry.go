package journal

import (
	"fmt"
	"linktrial/internal/telemetrysource"
)

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

var telemetryKind = kindOf([]Type{TypeTelemetry},
	"all",
	"`source` and `kind` of the radio's profile, `values` with `name`, `value`, `unit` and `counter`: one reading (docs/radios.md). Not written when the disk is full",
	checkTelemetry,
	nil)

var telemetryFailedKind = kindOf([]Type{TypeTelemetryFailed},
	"all",
	"`source`, `kind`, `error`: why the source cannot be read; not repeated until the source answers or the reason changes",
	checkTelemetry,
	func(_ Type, b *Telemetry) string {
		return "telemetry " + b.Source + " cannot be read; the run continues without it" + because(b.Error)
	})

// Reading is one value of a source.
type Reading = telemetrysource.Reading

// maxReadings is the most values of one source, far above what a profile may name.
const maxReadings = 1000

func checkTelemetry(r *Record, b *Telemetry) error {
	failed := r.Type == TypeTelemetryFailed
	if b.Source == "" || len(b.Values) > maxReadings || failed != (b.Error != "") || failed == (len(b.Values) > 0) {
		return fmt.Errorf("source %q with %d values and error %q", b.Source, len(b.Values), b.Error)
	}
	seen := map[string]bool{}
	for _, v := range b.Values {
		if v.Name == "" || seen[Storable(v.Name)] {
			return fmt.Errorf("value %q of source %s is given twice, or has no name", v.Name, b.Source)
		}
		seen[Storable(v.Name)] = true
	}
	return nil
}
