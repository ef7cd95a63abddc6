package executor

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/protocols/contract"
)

// preparing is a runner of which drivers stay until those of the next trial are
// prepared: without that, until they are told to end.
type preparing struct {
	scripted
	mu       sync.Mutex
	ready    map[string]chan struct{} // by transfer, closed once prepared
	holds    map[string]string        // a transfer's driver stays until that of another is ready
	staying  []*staying
	unready  []string // clients that were started without
	held     int      // prepared, and neither started nor released
	released int
}

func (r *preparing) of(transfer string) chan struct{} {
	if r.ready == nil {
		r.ready = map[string]chan struct{}{}
	}
	if r.ready[transfer] == nil {
		r.ready[transfer] = make(chan struct{})
	}
	return r.ready[transfer]
}

func (r *preparing) Prepare(_ context.Context, _, transfer string) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.of(transfer): // and released again
	default:
		close(r.of(transfer))
	}
	r.held++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held--
		r.released++
	}
}

func (r *preparing) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	proc, err := r.scripted.Start(ctx, protocol, p, payload)
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.of(p.Transfer.ID):
	default:
		r.unready = append(r.unready, p.Transfer.ID)
	}
	if next := r.holds[p.Transfer.ID]; next != "" {
		s := &staying{Process: proc, end: make(chan struct{}), done: make(chan struct{})}
		ready := r.of(next)
		go func() {
			defer close(s.done)
			select {
			case <-ready:
			case <-s.end:
			}
		}()
		r.staying = append(r.staying, s)
		return s, err
	}
	return proc, err
}

// staying ends when another transfer's driver is prepared, or when it is told to.
type staying struct {
	Process
	once      sync.Once
	end, done chan struct{}
}

func (s *staying) Done() <-chan struct{} { return s.done }
func (s *staying) Terminate()            { s.once.Do(func() { close(s.end) }) }
func (s *staying) Kill()                 { s.Terminate() }

func (s *staying) told() bool {
	select {
	case <-s.end:
		return true
	default:
		return false
	}
}

func transfer(trial, attempt int) string { return runsheet.TransferID("r", trial, attempt, 0).String() }

func TestDriversArePreparedAhead(t *testing.T) {
	const trials = 4
	for _, c := range []struct {
		name     string
		fail     int // trial whose first attempt fails; -1 none
		skip     int // trial that is skipped while the one before it runs; -1 none
		holds    map[string]string
		prepared int
		story    []string
	}{
		{"one after the other", -1, -1, map[string]string{transfer(0, 1): transfer(1, 1), transfer(1, 1): transfer(2, 1), transfer(2, 1): transfer(3, 1)}, trials,
			[]string{"trial 0 succeeded", "trial 1 succeeded", "trial 2 succeeded", "trial 3 succeeded"}},
		// Trial 2 is prepared when trial 1 fails, goes unused, and is prepared again.
		{"a trial is repeated", 1, -1, map[string]string{transfer(0, 1): transfer(1, 1), transfer(1, 1): transfer(2, 1)}, trials + 2,
			[]string{"trial 0 succeeded", "trial 1 succeeded", "trial 2 succeeded", "trial 3 succeeded"}},
		{"a trial is skipped", -1, 1, map[string]string{transfer(0, 1): transfer(1, 1), transfer(2, 1): transfer(3, 1)}, trials,
			[]string{"trial 0 succeeded", "trial 1 aborted skipped", "trial 2 succeeded", "trial 3 succeeded"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, m := &commandList{}, &memory{}
			r := &preparing{holds: c.holds}
			r.fail = func(p *contract.Parameters) contract.Code {
				if c.skip >= 0 && p.Transfer.ID == transfer(c.skip-1, 1) {
					d.give(skip("1", c.skip))
				}
				if c.fail >= 0 && p.Transfer.ID == transfer(c.fail, 1) {
					return contract.CodeReset
				}
				return ""
			}
			cfg := config(testSheet(t, trials, 2), m, r, &fakeRadio{})
			cfg.Commands = d
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := Lead(ctx, cfg); err != nil {
				t.Fatal(err)
			}
			var ends []string
			for _, line := range story(t, read(t, m)) {
				if len(line) > 6 && line[:6] == "trial " {
					ends = append(ends, line)
				}
			}
			if !slices.Equal(ends, c.story) {
				t.Errorf("%q, expected %q", ends, c.story)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			for i, s := range r.staying {
				if s.told() {
					t.Errorf("trial %d: its driver had to be ended: the next driver was not prepared meanwhile", i)
				}
			}
			if len(r.unready) > 0 || r.held != 0 || r.released != c.prepared {
				t.Errorf("%d were started unprepared, %d of %d are not released; expected %d in all", len(r.unready), r.held, r.held+r.released, c.prepared)
			}
		})
	}
}
