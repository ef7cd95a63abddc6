package live

import (
	"cmp"
	"sync"

	"linktrial/internal/notify"
	"linktrial/orchestrator/ingest"
)

// Runs is the live state of all runs. Its methods may be called from several
// goroutines.
type Runs struct {
	changed notify.Notifier

	mu   sync.Mutex
	runs map[string]*run
}

// New returns a Runs that knows nothing yet.
func New() *Runs { return &Runs{runs: map[string]*run{}} }

type run struct {
	version    uint64
	progress   map[int]ingest.Progress // by flow of the newest attempt
	samples    recentSamples
	waitingFor []string
	wait       *ingest.Wait
}

// forget drops what only a run that is under way has.
func (r *run) forget() { *r = run{version: r.version} }

// Run is what is known of a run beyond the store.
type Run struct {
	Version    uint64           // rises when the run's tables change
	Progress   *ingest.Progress // of the attempt that runs, all flows together; nil before its first sample
	WaitingFor []string         // what the run waits for before it begins, for people
	Wait       *ingest.Wait     // why a run that has begun waits, or that it waits no longer; nil: nothing was said
}

// Changed returns a channel that is closed at the next change of any run or node.
func (s *Runs) Changed() <-chan struct{} { return s.changed.Changed() }

// Notify wakes everybody who waits for a change.
func (s *Runs) Notify() { s.changed.Notify() }

// Of returns what is known of one run.
func (s *Runs) Of(id string) Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return Run{}
	}
	out := Run{Version: r.version, WaitingFor: r.waitingFor, Wait: r.wait}
	for _, p := range r.progress {
		if out.Progress == nil {
			out.Progress = &ingest.Progress{Trial: p.Trial, Attempt: p.Attempt}
		}
		out.Progress.Bytes += p.Bytes
		out.Progress.Elapsed = max(out.Progress.Elapsed, p.Elapsed)
	}
	return out
}

// Samples returns the samples of a run that came since the batch numbered from,
// as far as they are kept, and the number to go on with. The samples are
// shared and must not be changed.
func (s *Runs) Samples(id string, from int64) ([]ingest.Samples, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return nil, from
	}
	return r.samples.since(from)
}

// Stored takes in a delivery that was stored.
func (s *Runs) Stored(d ingest.Delta) {
	s.mu.Lock()
	r := s.runLocked(d.Run)
	for _, p := range d.Progress {
		if last, ok := anyOf(r.progress); !ok || last.Trial != p.Trial || last.Attempt != p.Attempt {
			r.progress = map[int]ingest.Progress{}
		}
		r.progress[p.Flow] = p
	}
	r.samples.add(d.Fresh)
	r.wait = cmp.Or(d.Wait, r.wait)
	if d.Structure {
		r.version++
	}
	s.mu.Unlock()
	s.Notify()
}

// TablesChanged notes that a run's tables have changed.
func (s *Runs) TablesChanged(id string) {
	s.mu.Lock()
	s.runLocked(id).version++
	s.mu.Unlock()
	s.Notify()
}

// Ended notes that a run has ended.
func (s *Runs) Ended(id string) {
	s.mu.Lock()
	r := s.runLocked(id)
	r.version++
	r.forget()
	s.mu.Unlock()
	s.Notify()
}

// SetOpen says which runs have not ended, and what each of them waits for. What
// is delivered late, of runs that have ended, is dropped: it is in the store,
// and nobody waits for it.
func (s *Runs) SetOpen(waitingFor map[string][]string) {
	s.mu.Lock()
	for id, r := range s.runs {
		if _, open := waitingFor[id]; !open {
			r.forget()
		}
	}
	for id, w := range waitingFor {
		s.runLocked(id).waitingFor = w
	}
	s.mu.Unlock()
	s.Notify()
}

func (s *Runs) runLocked(id string) *run {
	r := s.runs[id]
	if r == nil {
		r = &run{}
		s.runs[id] = r
	}
	return r
}

func anyOf(m map[int]ingest.Progress) (ingest.Progress, bool) {
	for _, p := range m {
		return p, true
	}
	return ingest.Progress{}, false
}
