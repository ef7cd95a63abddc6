package process

import (
	"context"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"linktrial/internal/backoff"
)

// Supervisor keeps one child running: when it ends without being asked to, it
// is started again, after a pause that grows while it keeps ending.
type Supervisor struct {
	name  string
	start func() (*exec.Cmd, error)
	log   *slog.Logger

	mu       sync.Mutex
	current  *exec.Cmd
	restarts int
	stopping bool
	wake     chan struct{}
	done     chan struct{}
}

const (
	restartPause    = 200 * time.Millisecond
	restartPauseMax = 5 * time.Second
	steadyAfter     = 10 * time.Second // a child that ran so long is not in a crash loop
)

// Supervise starts the child through start, which must return a started
// command, and keeps it running until Stop. The first start must succeed.
func Supervise(name string, log *slog.Logger, start func() (*exec.Cmd, error)) (*Supervisor, error) {
	s := &Supervisor{name: name, start: start, log: log, wake: make(chan struct{}), done: make(chan struct{})}
	cmd, err := start()
	if err != nil {
		return nil, err
	}
	s.current = cmd
	go s.watch(cmd)
	return s, nil
}

func (s *Supervisor) watch(cmd *exec.Cmd) {
	defer close(s.done)
	retry := backoff.Backoff{Min: restartPause, Max: restartPauseMax}
	for {
		began := time.Now()
		err := cmd.Wait()
		if s.isStopping() {
			return
		}
		s.log.Warn("process ended by itself and is started again", "process", s.name, "error", err)
		if time.Since(began) > steadyAfter {
			retry.Reset()
		}
		for {
			select {
			case <-time.After(retry.Next()):
			case <-s.wake:
				return
			}
			next, err := s.start()
			if err != nil {
				s.log.Warn("process could not be started again", "process", s.name, "error", err)
				continue
			}
			if !s.replace(next) {
				next.Process.Kill()
				next.Wait()
				return
			}
			cmd = next
			break
		}
	}
}

func (s *Supervisor) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// replace reports whether the new child was accepted: false when Stop was called
// in between.
func (s *Supervisor) replace(cmd *exec.Cmd) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.current = cmd
	s.restarts++
	return true
}

// Restarts counts how often the child was started again.
func (s *Supervisor) Restarts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restarts
}

// PID of the child that runs now.
func (s *Supervisor) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Process.Pid
}

// Stop asks the child to end, kills it when grace has passed or ctx ends, and
// waits for it.
func (s *Supervisor) Stop(ctx context.Context, grace time.Duration) {
	s.mu.Lock()
	if !s.stopping {
		s.stopping = true
		close(s.wake)
	}
	cmd := s.current
	s.mu.Unlock()
	cmd.Process.Signal(syscall.SIGTERM) // an error means that it has gone already
	select {
	case <-s.done:
		return
	case <-time.After(grace):
	case <-ctx.Done():
	}
	cmd.Process.Kill()
	<-s.done
}
