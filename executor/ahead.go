package executor

import (
	"context"
	"sync/atomic"
)

// Where drivers take long to start, those of the trial that comes next are
// readied as soon as the last flow of this one has its outcome: while its
// drivers end and the journal is synced, and never while anything is measured.

// early is the drivers of one attempt that are readied ahead of it.
type prestarted struct {
	trial, attempt int
	done           chan struct{}
	release        func() // once done is closed
}

func (e *prestarted) drop() {
	<-e.done
	e.release()
}

// expect has the attempt's own flows ready the drivers of the next trial once
// all of them are decided. That trial is known before the attempt begins; where
// it turns out to be another, its drivers go unused.
func (l *leader) prestartNext(ctx context.Context, current int, flows []*flow) {
	if _, ok := l.Runner.(Preparer); !ok {
		return
	}
	next, ok := l.after(current)
	if !ok {
		return
	}
	attempt := l.past.trial(next).attempts + 1
	var own []*flow
	for _, f := range flows {
		if f.spec.From == l.Role {
			own = append(own, f)
		}
	}
	var undecided atomic.Int64
	undecided.Store(int64(len(own)))
	for _, f := range own {
		f.settled = func() {
			if undecided.Add(-1) > 0 {
				return
			}
			// The flows end before the leader goes on, so nobody else is at l.early.
			e := &prestarted{trial: next, attempt: attempt, done: make(chan struct{})}
			l.prestarted = e
			go func() { // waited for by ready or by the walk's end
				defer close(e.done)
				// Also where this attempt is the last before a stop: what has been readied is released.
				e.release = l.part.ready(context.WithoutCancel(ctx), l.flows(next, attempt))
			}()
		}
	}
}

// after is the trial that follows the current one if that counts.
func (l *leader) after(current int) (trial int, ok bool) {
	for i := range l.sheet.Trials {
		if t := l.past.trial(i); i != current && !t.ended && !t.repeat {
			return i, true
		}
	}
	return 0, false
}

// flows are those of an attempt at a trial.
func (l *leader) flows(trial, attempt int) []*flow {
	flows := make([]*flow, len(l.sheet.Trials[trial].Flows))
	for i := range flows {
		flows[i] = newFlow(l.part, trial, attempt, i)
	}
	return flows
}

// ready has the drivers of an attempt's flows on this node prepared, where that
// has not been done ahead.
func (l *leader) ready(ctx context.Context, trial, attempt int, flows []*flow) (release func()) {
	e := l.prestarted
	l.prestarted = nil
	if e == nil {
		return l.part.ready(ctx, flows)
	}
	<-e.done
	if e.trial == trial && e.attempt == attempt {
		return e.release
	}
	e.release()
	return l.part.ready(ctx, flows)
}
