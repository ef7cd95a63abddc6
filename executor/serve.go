package executor

import (
	"context"
	"sync"

	"linktrial/executor/runsheet"
)

// Serve keeps a listener up for every treatment of the sheet until ctx is
// cancelled with [ErrFinish] or an [AbortError] as its cause, and returns nil
// then, or until it is interrupted, and returns the cause. Each listener's
// readiness or failure is in the journal, durable, as soon as it is known.
func Serve(ctx context.Context, cfg Config) error {
	p, err := begin(ctx, cfg)
	if p == nil || err != nil {
		return err
	}
	s := &server{part: p, ids: newTransferIDs(p.RunID, p.sheet), active: map[string]bool{}}
	var running sync.WaitGroup
	for i := range p.sheet.Treatments {
		t := &p.sheet.Treatments[i]
		if t.Missing != "" {
			continue
		}
		l := &listener{server: s, treatment: t, restarts: p.past.restarts[t.Name]}
		running.Go(func() { l.keep(ctx) })
	}
	ordersEnd := p.takeAssignments(ctx)
	running.Wait()
	ordersEnd()
	<-ctx.Done() // every listener may have given up
	return p.stopped(ctx)
}

// server is what the listeners of a run share.
type server struct {
	*part

	mu     sync.Mutex
	ids    *transferIDs
	active map[string]bool // transfers that run
}

func (s *server) place(id string) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.find(id)
}

// activity notes that a transfer runs or has ended.
func (s *server) activity(id string, runs bool) {
	s.mu.Lock()
	if runs {
		s.active[id] = true
	} else {
		delete(s.active, id)
	}
	n := len(s.active)
	s.mu.Unlock()
	if s.Activity != nil {
		s.Activity(n)
	}
}

// place is where a transfer belongs in a sheet.
type place struct{ trial, attempt, flow int }

// transferIDs finds the place of a transfer: the identities are hashes, so
// they are made in advance, a few attempts at a time.
type transferIDs struct {
	run   string
	sheet *runsheet.Sheet
	known map[string]place
	upTo  int // attempts made so far
}

// maxAttempt bounds the search for an identity that belongs to no attempt.
// Interrupted attempts do not count against a sheet's limit, so there can be
// more of them than it says.
const maxAttempt = 256

func newTransferIDs(run string, sheet *runsheet.Sheet) *transferIDs {
	t := &transferIDs{run: run, sheet: sheet, known: map[string]place{}}
	t.extend(sheet.Limits.Attempts + 1)
	return t
}

func (t *transferIDs) extend(to int) {
	to = min(to, maxAttempt)
	for ; t.upTo < to; t.upTo++ {
		for i := range t.sheet.Trials {
			for f := range t.sheet.Trials[i].Flows {
				a := t.upTo + 1
				t.known[runsheet.TransferID(t.run, i, a, f).String()] = place{trial: i, attempt: a, flow: f}
			}
		}
	}
}

func (t *transferIDs) find(id string) (place, bool) {
	for {
		if p, ok := t.known[id]; ok {
			return p, true
		}
		if t.upTo >= maxAttempt {
			return place{}, false
		}
		t.extend(2 * t.upTo)
	}
}
