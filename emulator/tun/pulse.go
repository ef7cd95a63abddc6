package tun

import "time"

// A loop that was stopped (SIGSTOP) has emulated another channel than the trial's: what
// was due came out late, and what came in met the channel of a later moment. During a
// trial it therefore looks at the clock ten times a second, and reports when it did not
// get to it.
const (
	pulseEvery = 100 * time.Millisecond
	// pulseBound is the longest time between two looks that a busy machine explains. The
	// loop's thread has a higher priority than other programs.
	pulseBound = 250 * time.Millisecond
)

// pulse is for how long a loop did not run in a trial. Where the loop shares its
// thread, it is started only with [Config.Stoppable].
type pulse struct {
	on      bool
	last    time.Duration // look at the clock, since the loop's start
	stalled time.Duration // all times between two looks that are over the bound
}

func (p *pulse) start(now time.Duration) { *p = pulse{on: true, last: now} }

// stop returns for how long the loop did not run.
func (p *pulse) stop() time.Duration {
	p.on = false
	return p.stalled
}

func (p *pulse) look(now time.Duration) {
	if gap := now - p.last; p.on && gap > pulseBound {
		p.stalled += gap
	}
	p.last = now
}

// until is the moment of the trial's clock until which a loop may wait that has to do
// something at next, or, where ok is false, nothing.
func (p *pulse) until(l *loop, next time.Duration, ok bool) (time.Duration, bool) {
	if !p.on {
		return next, ok
	}
	now := l.now()
	if ok && next <= now+pulseEvery {
		return next, true
	}
	if l.isArmed && l.armed > now && l.armed <= now+pulseEvery {
		return l.armed, true // without another system call
	}
	return now + pulseEvery, true
}
