package tun

import (
	"testing"
	"time"

	"linktrial/internal/radiocontrol"
)

// What is tolerated is nothing that was missed, and nothing is reported that nobody asks for.
func TestOverdue(t *testing.T) {
	var o overdue
	o.add(time.Second) // before the trial
	if got := o.report(); got != nil {
		t.Errorf("%v", got)
	}
	o.start(5 * time.Millisecond)
	for _, late := range []time.Duration{0, 4 * time.Millisecond, 25 * time.Millisecond, 6 * time.Millisecond} {
		o.add(late)
	}
	if got, want := *o.report(), (radiocontrol.Late{Missed: 21 * time.Millisecond, Longest: 25 * time.Millisecond}); got != want {
		t.Errorf("%v, expected %v", got, want)
	}
}

// What a busy machine explains is no stall; a stall counts whole, and none does that
// lies outside of a trial.
func TestPulse(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		looks []time.Duration // after the trial's beginning at 10 s
		want  time.Duration
	}{
		"runs":  {[]time.Duration{10 * s, 10*s + pulseEvery, 10*s + pulseEvery + pulseBound}, 0},
		"once":  {[]time.Duration{10*s + pulseEvery, 14 * s}, 4*s - pulseEvery},
		"twice": {[]time.Duration{12 * s, 12*s + pulseEvery, 15*s + pulseEvery}, 5 * s},
	} {
		var p pulse
		p.look(3 * s)
		p.look(9 * s) // before the trial
		p.start(10 * s)
		for _, at := range c.looks {
			p.look(at)
		}
		if got := p.stop(); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
}
