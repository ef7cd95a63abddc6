package report

import "time"

// MostSequences is of how many runs a report has a time–sequence diagram.
const MostSequences = 12

// Sampled is the iteration of a run of which a report draws the time–sequence diagram.
type Sampled struct {
	Iteration  int
	Valid      int      // how many treatments have a valid trial in it
	Treatments int      // how many there are
	Series     []Series // of its trials' last attempts; none: no samples of it are stored
}

// Series is how one flow of an attempt went on, as its client's samples say.
type Series struct {
	Trial   int // index in the sheet
	Attempt int
	Flow    int
	Points  []SeriesPoint // in order of time
}

// SeriesPoint is one sample.
type SeriesPoint struct {
	Elapsed     time.Duration // since the transfer's clock started
	Bytes       int64         // acknowledged, or sent where Sent
	Sent        bool          // the protocol does not report what is acknowledged
	Retransmits *int64        // in all so far
}
