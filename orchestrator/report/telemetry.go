package report

// Telemetry is one figure that a radio, or the laptop beside it, reported during an
// attempt. Of a number that only grows it is the growth a second.
type Telemetry struct {
	Node   string `json:"node"`
	Role   string `json:"role"`
	Source string `json:"source"` // of the radio's profile
	Kind   string `json:"-"`      // of the source
	Figure string `json:"figure"` // snr, in_bytes, latitude …
	Unit   string `json:"unit,omitempty"`
	// Readings is how many lay within the attempt. Where none did, the figures
	// are those of the last reading before it and the first one after it, as of
	// sources that are read between trials.
	Readings int     `json:"readings"`
	Minimum  float64 `json:"minimum"`
	Mean     float64 `json:"mean"`
	Maximum  float64 `json:"maximum"`
}
