package agent

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

// connectGrace is what the executor allows a client past its connect limit.
const connectGrace = 3 * time.Second

// quietAfter is how long the server's listeners must have carried nothing
// before its agent may speak: two attempts that do not reach the server.
func quietAfter(s *runsheet.Sheet) time.Duration {
	return 2*(s.Limits.Connect+connectGrace) + s.Limits.Pause
}

// longest is how long a sheet can take when no trial is repeated.
func longest(s *runsheet.Sheet) time.Duration {
	return time.Duration(len(s.Trials)) * (s.Limits.Connect + s.Limits.Transfer + 2*connectGrace + s.Limits.Pause)
}

// quiet keeps the server's agent silent while transfers may run.
type quiet struct {
	r     *run
	j     *journal.File
	after time.Duration
	want  int // listeners to hear of before falling silent

	mu        sync.Mutex
	transfers int
	last      time.Time // of the last sign of a transfer
}

func newQuiet(r *run, s *runsheet.Sheet, j *journal.File) *quiet {
	q := &quiet{r: r, j: j, after: quietAfter(s), last: time.Now()}
	for _, t := range s.Treatments {
		if t.Missing == "" {
			q.want++
		}
	}
	return q
}

func (q *quiet) activity(transfers int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.transfers, q.last = transfers, time.Now()
}

// due is how long from now the air will have been quiet for long enough.
func (q *quiet) due() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.transfers > 0 {
		return q.after
	}
	return time.Until(q.last.Add(q.after))
}

// watch falls silent when the preparation is delivered, and opens windows
// after. The returned function ends it and waits for it.
func (q *quiet) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if !q.prepared(ctx) {
			return
		}
		q.r.a.session.Silence()
		defer q.r.a.session.Speak()
		for {
			t := time.NewTimer(max(q.due(), 10*time.Millisecond))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
			if q.due() > 0 {
				continue
			}
			q.r.a.session.Window(ctx, windowOfOthers, q.r.delivery.CaughtUp)
			q.mu.Lock()
			q.last = time.Now()
			q.mu.Unlock()
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// windowMost is how far the leading agent's windows grow while it hears nothing
// in them: over a slow radio an answer may take several round trips, and a
// window that is too short would never bring an order.
const windowMost = 3 * time.Second

// windowOfOthers is how long an agent that does not lead speaks once it may: it
// has more to deliver than the leading one, and disturbs no trial.
const windowOfOthers = 5 * time.Second

// prepared waits until every listener has been heard of and all is delivered.
func (q *quiet) prepared(ctx context.Context) bool {
	for {
		heard := map[string]bool{}
		err := q.j.Records(func(r journal.Record) error {
			if r.Type == journal.TypeListenerReady || r.Type == journal.TypeListenerFailed {
				heard[treatmentOf(r)] = true
			}
			return nil
		})
		if err == nil && len(heard) >= q.want {
			return q.r.delivery.Await(ctx)
		}
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false
		}
	}
}

// attendInBand is a relay's part where it must not speak while trials run and
// cannot tell when they do.
func (r *run) attendInBand(ctx context.Context, ex executor.Config, s *runsheet.Sheet) error {
	ectx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := ex.Begun
	ex.Begun = func(ctx context.Context, resumed bool) error {
		err := begun(ctx, resumed)
		cancel(executor.ErrFinish) // provenance and clock are all of it
		return err
	}
	if err := executor.Attend(ectx, ex); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	if !r.delivery.Await(ctx) {
		return nil
	}
	r.silence()
	// A run can take longer than its trials, where people pause it or have
	// trials repeated. From then on the relay asks now and then, and no more.
	for quiet := longest(s); ; quiet = max(time.Minute, quiet/4) {
		select {
		case <-time.After(quiet):
		case <-ctx.Done():
			return nil
		}
		r.a.session.Window(ctx, windowOfOthers, r.delivery.CaughtUp)
	}
}

func treatmentOf(r journal.Record) string {
	var l journal.Listener
	if err := json.Unmarshal(r.Body, &l); err != nil {
		return ""
	}
	return l.Treatment
}
