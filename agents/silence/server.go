package silence

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/internal/service"
)

// followerWindow is how long an agent that does not lead may call once it may:
// it has more to deliver than the leading one, and disturbs no trial.
const followerWindow = 5 * time.Second

// preparedStep is how often the server looks whether its preparation is complete.
const preparedStep = 50 * time.Millisecond

// Records is the part of the run's journal that is read.
type Records interface {
	Records(func(journal.Record) error) error
}

// Server is the policy of the server's agent.
type Server struct {
	executor.NopObserver
	gate      *Gate
	delivery  Delivery
	journal   Records
	idle      time.Duration // see [runsheet.Sheet.IdleBeforeControl]
	listeners int           // that the sheet asks for
	flush     func()        // makes durable what is recorded, before a window

	mu        sync.Mutex
	transfers int
	last      time.Time // when a listener last reported anything of a transfer
}

// NewServer returns the policy of one run, of which j is the journal. flush is
// called before each window: it makes durable what is to be delivered.
func NewServer(g *Gate, d Delivery, j Records, sheet *runsheet.Sheet, flush func()) *Server {
	return &Server{flush: flush, gate: g, delivery: d, journal: j, idle: sheet.IdleBeforeControl(), last: time.Now(), listeners: len(sheet.Listeners(radio.RoleServer))}
}

// Transfers implements [executor.Observer].
func (s *Server) Transfers(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transfers, s.last = n, time.Now()
}

// untilIdle is how long from now the listeners will have been idle for long
// enough; zero or less: they have.
func (s *Server) untilIdle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transfers > 0 {
		return s.idle
	}
	return time.Until(s.last.Add(s.idle))
}

// Start suspends calls when the preparation is delivered, and opens windows
// after that. stop ends it, resumes calls and waits for it.
func (s *Server) Start(ctx context.Context) (stop func()) {
	return service.Go(ctx, s.run)
}

func (s *Server) run(ctx context.Context) {
	if !prepared(ctx, s.journal, s.delivery, s.listeners) {
		return
	}
	s.gate.Suspend()
	defer s.gate.Resume()
	for backoff.Sleep(ctx, max(s.untilIdle(), 10*time.Millisecond)) {
		if s.untilIdle() > 0 {
			continue
		}
		s.flush()
		s.gate.Window(ctx, followerWindow, followerWindow, s.delivery.Settled)
		s.mu.Lock()
		s.last = time.Now()
		s.mu.Unlock()
	}
}

// prepared waits until the journal has a record of each of so many listeners and
// all is delivered; false: ctx ended first.
func prepared(ctx context.Context, j Records, d Delivery, listeners int) bool {
	for {
		recorded := map[journal.ListenerName]bool{}
		err := j.Records(func(r journal.Record) error {
			if r.Type == journal.TypeListenerReady || r.Type == journal.TypeListenerFailed {
				recorded[listenerOf(r)] = true
			}
			return nil
		})
		if err == nil && len(recorded) >= listeners {
			return d.Await(ctx)
		}
		if !backoff.Sleep(ctx, preparedStep) {
			return false
		}
	}
}

func listenerOf(r journal.Record) journal.ListenerName {
	var l journal.Listener
	if err := json.Unmarshal(r.Body, &l); err != nil {
		return journal.ListenerName{}
	}
	return l.Name()
}
