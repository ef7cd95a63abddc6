package executor

import (
	"context"
	"sync/atomic"
)

// attemptID is an attempt at a trial.
type attemptID struct{ trial, attempt int }

// prestart prepares the drivers of the attempt that comes next, where drivers
// take long to start: as soon as the last flow of this attempt has its outcome,
// while its drivers exit and the journal is synced, and never while anything is
// measured.
type prestart struct {
	node    *node
	pending *prestarted // nil: nothing is prepared ahead
}

// prestarted is the drivers of one attempt that are prepared ahead of it.
type prestarted struct {
	of      attemptID
	done    chan struct{}
	release func() // once done is closed
}

func (p *prestarted) drop() {
	<-p.done
	p.release()
}

// during has the flows of an attempt prepare the drivers of the next one once
// all that start on this node are decided. The next attempt is known before
// this one begins; where another one follows, its drivers go unused.
func (p *prestart) during(ctx context.Context, flows []*flow, next attemptID) {
	if _, ok := p.node.Runner.(Preparer); !ok {
		return
	}
	own, _ := split(flows, p.node.Role)
	var undecided atomic.Int64
	undecided.Store(int64(len(own)))
	for _, f := range own {
		f.onDecided = func() {
			if undecided.Add(-1) > 0 {
				return
			}
			// The flows end before anybody else reads or sets p.pending.
			ahead := &prestarted{of: next, done: make(chan struct{})}
			p.pending = ahead
			go func() { // take or drop wait for its end
				defer close(ahead.done)
				// Also where this attempt is the last before a stop: what was prepared is released.
				ahead.release = prepareDrivers(context.WithoutCancel(ctx), p.node, newFlows(p.node, next.trial, next.attempt))
			}()
		}
	}
}

// prepare readies the drivers of an attempt's flows on this node, where that has
// not been done ahead.
func (p *prestart) prepare(ctx context.Context, flows []*flow, of attemptID) (release func()) {
	ahead := p.pending
	p.pending = nil
	if ahead == nil {
		return prepareDrivers(ctx, p.node, flows)
	}
	<-ahead.done
	if ahead.of == of {
		return ahead.release
	}
	ahead.release()
	return prepareDrivers(ctx, p.node, flows)
}

// drop releases what no attempt took.
func (p *prestart) drop() {
	if p.pending != nil {
		p.pending.drop()
	}
}
