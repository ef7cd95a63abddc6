package shelf

import (
	"sync"
	"time"
)

const (
	// estimateAfter is how long the work has taken before the rest is estimated from it.
	estimateAfter = 3 * time.Second
	// leastShare is the share of the work from which the rest is estimated.
	leastShare = 0.02
)

// Progress is how much of the work is done, in units of about the time that a trial takes.
type Progress struct {
	mu    sync.Mutex
	now   func() time.Time
	began time.Time
	doing string
	all   float64
	ended float64 // of parts that are done
	part  float64 // units of the part that is being done
	share float64 // of that part
}

// NewProgress begins now.
func NewProgress(now func() time.Time) *Progress { return &Progress{now: now, began: now()} }

// Plan states how much work there is in all.
func (p *Progress) Plan(units float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = units
}

// Begin ends the part before, and begins one of so many units.
func (p *Progress) Begin(units float64, doing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended += p.part
	p.part, p.share, p.doing = units, 0, doing
}

// Tell states how much of the part is done, 0 to 1.
func (p *Progress) Tell(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.share = min(max(share, 0), 1)
}

// State is how far the work is.
type State struct {
	Doing string
	Done  float64 // share of the work, 0 to 1
	// SecondsLeft is estimated: the rest takes as long a unit as what is done took. 0: it is
	// not known yet.
	SecondsLeft float64
}

// Now is how far the work is now.
func (p *Progress) Now() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{Doing: p.doing}
	if p.all > 0 {
		s.Done = min((p.ended+p.part*p.share)/p.all, 1)
	}
	if took := p.now().Sub(p.began); took >= estimateAfter && s.Done >= leastShare {
		s.SecondsLeft = took.Seconds() * (1 - s.Done) / s.Done
	}
	return s
}
