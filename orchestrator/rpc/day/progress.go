package day

import (
	"sync"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

const (
	// estimateAfter is how long the work has taken before the rest is estimated from it.
	estimateAfter = 3 * time.Second
	// leastShare is the share of the work from which the rest is estimated.
	leastShare = 0.02
)

// progress is how much of the work is done, in units of about the time that a trial takes.
type progress struct {
	mu    sync.Mutex
	now   func() time.Time
	began time.Time
	doing string
	all   float64
	ended float64 // of parts that are done
	part  float64 // units of the part that is being done
	share float64 // of that part
}

func newProgress(now func() time.Time) *progress { return &progress{now: now, began: now()} }

// plan states how much work there is in all.
func (p *progress) plan(units float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = units
}

// begin ends the part before, and begins one of so many units.
func (p *progress) begin(units float64, doing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended += p.part
	p.part, p.share, p.doing = units, 0, doing
}

// tell states how much of the part is done, 0 to 1.
func (p *progress) tell(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.share = min(max(share, 0), 1)
}

// message is the progress of now. What is left is estimated: the rest takes as long a unit
// as what is done took.
func (p *progress) message() *linktrialv1.DayProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &linktrialv1.DayProgress{Doing: p.doing}
	if p.all > 0 {
		m.Done = min((p.ended+p.part*p.share)/p.all, 1)
	}
	if took := p.now().Sub(p.began); took >= estimateAfter && m.Done >= leastShare {
		m.SecondsLeft = took.Seconds() * (1 - m.Done) / m.Done
	}
	return m
}
