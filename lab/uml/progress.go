package uml

import (
	"bytes"
	"time"
)

// Progress is how far the sheets of [Run] have come.
type Progress struct {
	Sheets, SheetsEnded int
	Trials, TrialsEnded int
	// TrialsNotNeeded are those of TrialsEnded that a rule to stop by left out: they took no time.
	TrialsNotNeeded int
	// Attempts is how often the trial under way has been attempted; where several guests
	// run, the most of them.
	Attempts int
	Virtual  time.Duration // of all guests together
	Wall     time.Duration
}

// PerSecond is the virtual seconds that pass in a second of wall time.
func (p Progress) PerSecond() float64 {
	if p.Wall <= 0 {
		return 0
	}
	return p.Virtual.Seconds() / p.Wall.Seconds()
}

// Left is about how much longer the trials to come take, as those did that have run; false: too
// few have.
func (p Progress) Left() (time.Duration, bool) {
	ran, left := p.TrialsEnded-p.TrialsNotNeeded, p.Trials-p.TrialsEnded
	if left <= 0 || 100*ran <= ran+left {
		return 0, false
	}
	return time.Duration(float64(p.Wall) * float64(left) / float64(ran)), true
}

// counter counts the trials that have ended in lines of a journal, and the attempts since.
// It looks for the record's type alone: reading journals is others' work.
type counter struct {
	ended     int
	notNeeded int // of these
	attempts  int // started since the last trial ended
}

// These cannot occur inside a JSON string, whose quotes are escaped.
var (
	trialEnded     = []byte(`"type":"trial-ended"`)
	attemptStarted = []byte(`"type":"attempt-started"`)
	notNeeded      = []byte(`"reason":"not-needed"`) // of no other record
)

func (c *counter) take(lines []byte) {
	if last := bytes.LastIndex(lines, trialEnded); last >= 0 {
		c.ended += bytes.Count(lines, trialEnded)
		c.notNeeded += bytes.Count(lines, notNeeded)
		c.attempts = bytes.Count(lines[last:], attemptStarted)
	} else {
		c.attempts += bytes.Count(lines, attemptStarted)
	}
}
