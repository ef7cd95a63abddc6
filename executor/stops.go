package executor

import (
	"sync"

	"linktrial/internal/notify"
)

// Stops counts how often something outside has stopped a process (SIGSTOP, a paused
// container). What a process measures while it is stopped is false. The zero value is
// ready; of a nil one nothing is known.
type Stops struct {
	mu      sync.Mutex
	n       int
	now     bool
	changed notify.Notifier
}

// Set tells that the process is stopped from now on, or goes on. One that goes on and
// was not known to be stopped has been stopped for a short time.
func (s *Stops) Set(stopped bool) {
	s.mu.Lock()
	if stopped || !s.now {
		s.n++
	}
	s.now = stopped
	s.mu.Unlock()
	s.changed.Notify()
}

// Forget forgets how often the process was stopped so far: before a driver that was
// prepared gets its parameters, it measures nothing.
func (s *Stops) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n = 0
}

// State is how often the process was stopped so far, and whether it is now; changed is
// closed at the next change.
func (s *Stops) State() (n int, now bool, changed <-chan struct{}) {
	if s == nil {
		return 0, false, nil
	}
	changed = s.changed.Changed()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.now, changed
}
