package terminal

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"linktrial/internal/service"
)

// Waiting names the step that a command is in, for steps that are usually over before
// anybody would read their names: nothing is written before a step has taken two seconds.
type Waiting struct {
	out  io.Writer
	stop func()

	mu    sync.Mutex
	step  string
	began time.Time // of the step
	said  time.Time // when the step was last written
}

// A step is written after waitFirst, and again after each waitAgain.
const (
	waitFirst = 2 * time.Second
	waitAgain = 10 * time.Second
)

// NewWaiting writes to out until Stop is called.
func NewWaiting(out io.Writer) *Waiting {
	w := &Waiting{out: out}
	w.stop = service.Go(context.Background(), w.watch)
	return w
}

// Step says what the command does from now on, such as "starting the orchestrator". The
// time of a step that has this name already goes on.
func (w *Waiting) Step(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name != w.step {
		w.step, w.began, w.said = name, time.Now(), time.Time{}
	}
}

// Stop ends it; nothing is written afterwards.
func (w *Waiting) Stop() { w.stop() }

func (w *Waiting) watch(ctx context.Context) {
	tick := time.NewTicker(waitFirst / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.look(now)
		}
	}
}

func (w *Waiting) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := w.began.Add(waitFirst)
	if !w.said.IsZero() {
		due = w.said.Add(waitAgain)
	}
	if w.step == "" || now.Before(due) {
		return
	}
	w.said = now
	fmt.Fprintf(w.out, "%s, for %.0f s now\n", w.step, now.Sub(w.began).Seconds())
}
