package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"linktrial/internal/backoff"
)

// Supervision is a child to be kept running.
type Supervision struct {
	Name string // for the log and for people
	Log  *slog.Logger
	// Start returns a started command. It must return soon after its context has
	// ended, which Stop ends.
	Start func(context.Context) (*exec.Cmd, error)
	// LastWords is what a child that ended by itself wrote before, on one line; nil:
	// its exit status alone says why it has ended.
	LastWords func() string
	// MaxEnds is how often the child may end within a minute, or fail to start, before
	// it is started no more; 0: 20 times.
	MaxEnds int
	// Changed is called, by one goroutine, whenever the child has ended or was started
	// again; nil: nobody needs to know.
	Changed func(State)
}

// State is what a supervised child does now.
type State struct {
	PID      int
	Restarts int       // how often it was started again
	Since    time.Time // when it ended; zero while it runs
	Reason   string    // why it ended; empty while it runs
	Failed   bool      // it ended so often that it is not started again
}

// Supervisor keeps one child running: when it ends without being asked to, it
// is started again, after a pause that grows while it keeps ending. A child that ends
// too often within a minute is started no more: see [Supervisor.Failed].
type Supervisor struct {
	child  Supervision
	cancel context.CancelFunc
	done   chan struct{} // closed when watch has ended
	failed chan struct{} // closed when it has given up

	mu       sync.Mutex
	current  *exec.Cmd
	state    State
	stopping bool
}

const (
	restartPause    = 200 * time.Millisecond
	restartPauseMax = 2 * time.Second
	steadyAfter     = 10 * time.Second // a child that ran so long is not in a crash loop

	// A child that always ends at once reaches the bound after 35 s.
	maxEnds  = 20
	endsTime = time.Minute
)

// Supervise starts the child through start, which must return a started
// command, and keeps it running until Stop. The first start must succeed.
func Supervise(name string, log *slog.Logger, start func() (*exec.Cmd, error)) (*Supervisor, error) {
	return Supervision{Name: name, Log: log, Start: func(context.Context) (*exec.Cmd, error) { return start() }}.Run(context.Background())
}

// Run starts the child and keeps it running until Stop. The first start must succeed;
// ctx ends only that one.
func (c Supervision) Run(ctx context.Context) (*Supervisor, error) {
	cmd, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{child: c, done: make(chan struct{}), failed: make(chan struct{}), current: cmd, state: State{PID: cmd.Process.Pid}}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go s.watch(own, cmd)
	return s, nil
}

func (s *Supervisor) watch(ctx context.Context, cmd *exec.Cmd) {
	defer close(s.done)
	w := watch{Supervisor: s, retry: backoff.Backoff{Min: restartPause, Max: restartPauseMax}}
	for cmd != nil {
		began := time.Now()
		err := cmd.Wait()
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steadyAfter {
			w.retry.Reset()
		}
		reason := s.why(err)
		s.changed(State{Since: time.Now(), Reason: reason})
		if w.tooOften(reason) {
			return
		}
		s.child.Log.Warn("process ended by itself and is started again", "process", s.child.Name, "reason", reason)
		if cmd = w.again(ctx); cmd != nil {
			s.changed(State{PID: cmd.Process.Pid})
		}
	}
}

// watch is what the supervisor's goroutine remembers.
type watch struct {
	*Supervisor
	retry backoff.Backoff
	ends  []time.Time // the ends, and the starts that failed, of the last minute
}

// again starts the child until that succeeds; nil where ctx ended first, or it failed
// too often.
func (w *watch) again(ctx context.Context) *exec.Cmd {
	for w.retry.Wait(ctx) {
		next, err := w.child.Start(ctx)
		switch {
		case err == nil && w.replace(next):
			return next
		case err == nil:
			_ = next.Process.Kill() // an error means that it has ended already
			_ = next.Wait()
		case ctx.Err() == nil:
			w.child.Log.Warn("process could not be started again", "process", w.child.Name, "error", err)
			w.say(err.Error(), false)
			if w.tooOften(err.Error()) {
				return nil
			}
		}
	}
	return nil
}

// tooOften counts an end, and gives up at the bound.
func (w *watch) tooOften(reason string) bool {
	now := time.Now()
	for len(w.ends) > 0 && now.Sub(w.ends[0]) > endsTime {
		w.ends = w.ends[1:]
	}
	w.ends = append(w.ends, now)
	bound := cmp.Or(w.child.MaxEnds, maxEnds)
	if len(w.ends) < bound {
		return false
	}
	reason = fmt.Sprintf("it ended %d times within a minute and is not started again; the last time: %s", bound, reason)
	w.child.Log.Error("process ends again and again and is not started any more", "process", w.child.Name, "reason", reason)
	w.say(reason, true)
	close(w.failed)
	return true
}

func (s *Supervisor) why(err error) string {
	how := "it ended without an error"
	if err != nil {
		how = err.Error()
	}
	var exit *exec.ExitError
	if s.child.LastWords == nil || errors.As(err, &exit) && !exit.Exited() { // a signal ended it
		return how
	}
	if words := s.child.LastWords(); words != "" {
		return how + ": " + words
	}
	return how
}

// say notes why the child is still not running.
func (s *Supervisor) say(reason string, failed bool) {
	s.mu.Lock()
	st := s.state
	s.mu.Unlock()
	st.Reason, st.Failed = reason, failed
	s.changed(st)
}

// changed notes a state and passes it on.
func (s *Supervisor) changed(st State) {
	s.mu.Lock()
	st.PID, st.Restarts = cmp.Or(st.PID, s.state.PID), s.state.Restarts
	s.state = st
	s.mu.Unlock()
	if s.child.Changed != nil {
		s.child.Changed(st)
	}
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
	s.state.Restarts++
	return true
}

// State returns what the child does now.
func (s *Supervisor) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Restarts counts how often the child was started again.
func (s *Supervisor) Restarts() int { return s.State().Restarts }

// PID of the child that was started last.
func (s *Supervisor) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Process.Pid
}

// Failed returns a channel that is closed when the child has ended so often that it is
// not started again; Failure then says why.
func (s *Supervisor) Failed() <-chan struct{} { return s.failed }

// Failure names the child and says why it is not started again; nil while it is.
func (s *Supervisor) Failure() error {
	select {
	case <-s.failed:
		return fmt.Errorf("%s: %s", s.child.Name, s.State().Reason)
	default:
		return nil
	}
}

// Stop asks the child to end, kills it when grace has passed or ctx ends, and
// waits for it.
func (s *Supervisor) Stop(ctx context.Context, grace time.Duration) {
	s.mu.Lock()
	s.stopping = true
	cmd := s.current
	s.mu.Unlock()
	s.cancel()
	_ = cmd.Process.Signal(syscall.SIGTERM) // an error means that it has gone already
	select {
	case <-s.done:
		return
	case <-time.After(grace):
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill() // an error means that it has gone already
	<-s.done
}

// LastLine is the last line of a log that has text; "": there is none.
func LastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(b))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
