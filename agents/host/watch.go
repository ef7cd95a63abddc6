package host

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/executor/journal"
	"linktrial/internal/service"
)

// every is the time between two wake-ups of the measuring thread: shorter than the slice
// of time that another program gets where several are ready (some milliseconds to some
// tens), at a cost of some 10 µs each.
const every = 10 * time.Millisecond

// Watch measures while an attempt runs; it implements [executor.Host].
type Watch struct {
	counters func() counters
	stop     func()
	begun    chan struct{} // has an element where an attempt has begun

	mu      sync.Mutex
	attempt *measurement  // that is measured; nil: none
	due     time.Duration // when the thread is to wake up
}

// measurement is what the thread measures for one attempt. Times are those of the
// monotonic clock.
type measurement struct {
	tolerate time.Duration
	missed   time.Duration
	longest  time.Duration

	began time.Duration
	late  []journal.LateAt // in order of time
}

// add takes in by how much a wake-up was late.
func (m *measurement) add(late time.Duration) {
	m.longest = max(m.longest, late)
	m.missed += max(0, late-m.tolerate)
}

// addAt is [measurement.add] for a wake-up that was due at a moment. What was missed
// begins there, and goes into the steps that it lasted for.
func (m *measurement) addAt(due, late time.Duration) {
	m.add(late)
	from := due - m.began + m.tolerate
	for end := due - m.began + late; from < end; {
		step := from.Truncate(journal.HostLateStep)
		to := min(end, step+journal.HostLateStep)
		if n := len(m.late); n > 0 && m.late[n-1].After == step {
			m.late[n-1].Missed += to - from
		} else if n < maxSteps {
			m.late = append(m.late, journal.LateAt{After: step, Missed: to - from})
		}
		from = to
	}
}

// maxSteps bounds the steps of one measurement: of a node that was stopped for a day the
// rest is told otherwise.
const maxSteps = 10_000

// Start makes the measuring thread until [Watch.Stop]. Its priority is the agent's, which
// drivers inherit.
func Start() *Watch {
	w := &Watch{counters: readCounters, begun: make(chan struct{}, 1)}
	w.stop = service.Go(context.Background(), w.run)
	return w
}

// Stop ends the thread within a wake-up.
func (w *Watch) Stop() { w.stop() }

// Begin implements [executor.Host]. Neither it nor the end waits for the thread.
func (w *Watch) Begin(tolerate time.Duration) (end func() journal.HostLoad) {
	stop := w.BeginSpan(tolerate)
	return func() journal.HostLoad { return stop().HostLoad }
}

// BeginSpan is [Watch.Begin], whose end also tells when the time was missed.
func (w *Watch) BeginSpan(tolerate time.Duration) (end func() journal.HostWatched) {
	m, before := &measurement{tolerate: tolerate, began: monotonic()}, w.counters()
	w.mu.Lock()
	w.attempt, w.due = m, m.began+every
	w.mu.Unlock()
	select {
	case w.begun <- struct{}{}:
	default:
	}
	return func() journal.HostWatched {
		w.mu.Lock()
		m.addAt(w.due, max(0, monotonic()-w.due)) // a wake-up that is overdue was missed, too
		w.attempt = nil
		w.mu.Unlock()
		load := w.counters().since(before)
		load.Missed, load.Longest = m.missed, m.longest
		return journal.HostWatched{HostLoad: load, Late: m.late}
	}
}

// run sleeps again and again while there is an attempt, until ctx ends.
func (w *Watch) run(ctx context.Context) {
	runtime.LockOSThread() // what is measured is one thread's waiting, and not Go's
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		w.mu.Lock()
		due, measures := w.due, w.attempt != nil
		w.mu.Unlock()
		if !measures {
			select {
			case <-w.begun:
			case <-ctx.Done():
			}
			continue
		}
		sleepUntil(due)
		w.woken(monotonic())
	}
}

// woken takes in that the thread woke up.
func (w *Watch) woken(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attempt == nil || now < w.due { // another attempt may have begun meanwhile
		return
	}
	w.attempt.addAt(w.due, now-w.due)
	w.due = now + every
}

// sleepUntil sleeps by the kernel's own timer: one of Go's runtime would wait for the turn
// of another thread as well.
func sleepUntil(due time.Duration) {
	ts := unix.NsecToTimespec(int64(due))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
		continue
	}
}

// monotonic is the time of the clock that the thread sleeps by.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0 // Linux has it always
	}
	return time.Duration(ts.Nano())
}
