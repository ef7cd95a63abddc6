package driver

import (
	"time"

	"linktrial/protocols/contract"
)

// Signalled is a process that can be told to end. Neither method waits.
type Signalled interface {
	Terminate()
	Kill()
}

// Stopper ends a process: SIGTERM, and SIGKILL after [contract.StopPatience]. It is used by
// one goroutine, which selects on Fired and then calls Step.
type Stopper struct {
	process Signalled
	clock   Clock
	release func() // of the timer behind Fired

	Fired  <-chan time.Time // when the next signal is due; nil: none is
	Asked  bool             // SIGTERM or SIGKILL was sent
	killed bool
}

// NewStopper returns a stopper that sends nothing by itself yet.
func NewStopper(p Signalled, clock Clock) *Stopper { return &Stopper{process: p, clock: clock} }

// After makes the next signal due after d.
func (s *Stopper) After(d time.Duration) {
	s.Release()
	s.Fired, s.release = s.clock.Timer(max(0, d))
}

// Release makes no signal due.
func (s *Stopper) Release() {
	if s.release != nil {
		s.release()
	}
	s.Fired, s.release = nil, nil
}

// Step sends the next stronger signal.
func (s *Stopper) Step() {
	switch {
	case !s.Asked:
		s.Asked = true
		s.process.Terminate()
		s.After(contract.StopPatience)
	case !s.killed:
		s.Kill()
	}
}

// Kill sends SIGKILL.
func (s *Stopper) Kill() {
	s.Release()
	s.Asked, s.killed = true, true
	s.process.Kill()
}
