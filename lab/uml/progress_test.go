package uml

import (
	"testing"
	"time"
)

// What is left is estimated from the trials that have run, and not from those that a rule to stop
// by left out: these end at once, many together.
func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		p     Progress
		left  time.Duration
		known bool
	}{
		{Progress{Trials: 100, TrialsEnded: 50, Wall: time.Minute}, time.Minute, true},
		{Progress{Trials: 100, TrialsEnded: 75, TrialsNotNeeded: 50, Wall: time.Minute}, time.Minute, true},
		{Progress{Trials: 100, TrialsEnded: 1, Wall: time.Minute}, 0, false},
		{Progress{Trials: 100, TrialsEnded: 100, TrialsNotNeeded: 50, Wall: time.Minute}, 0, false},
	} {
		if left, known := c.p.Left(); left != c.left || known != c.known {
			t.Errorf("%+v: %s, %t; expected %s, %t", c.p, left, known, c.left, c.known)
		}
	}
}

func TestTrialsNotNeededAreCounted(t *testing.T) {
	var c counter
	c.take([]byte(`{"seq":1,"type":"trial-ended","body":{"trial":0,"attempts":1,"verdict":"succeeded"}}
{"seq":2,"type":"trial-ended","body":{"trial":1,"attempts":0,"verdict":"aborted","reason":"not-needed"}}
`))
	if c.ended != 2 || c.notNeeded != 1 {
		t.Errorf("%+v", c)
	}
}
