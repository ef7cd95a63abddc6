// Package replay derives from a run's journal what has happened so far: which
// trials ended, which attempt a crash left open, which commands were applied.
// The executor keeps the same [State] up to date while the run goes on, so that
// a resumed run continues exactly as an uninterrupted one would.
package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
)

// State is how far a run is.
type State struct {
	SheetHash  string // of run-started; empty when the journal is new
	Provenance bool   // it was recorded
	Ended      *journal.RunEnded
	Open       *journal.AttemptStarted      // an attempt without attempt-ended
	Restarts   map[journal.ListenerName]int // starts of the listeners so far

	// Looks of the plan's rule to stop by, in order.
	Looks []journal.Look

	Applied map[string]bool // commands by their identity, rejected ones included
	Paused  bool            // by command

	trials  map[int]*Trial
	repeats []int // trials to be repeated that have not ended again, oldest command first
}

// Trial is how far one trial is.
type Trial struct {
	Attempts int // the highest number given
	Ended    bool
	Skip     bool // no further attempt, by command
	Repeat   bool // one more attempt, by command, that has not ended

	counted  int // attempts that ended and say something of the protocol
	unclear  int // attempts of which nothing tells whose fault it was
	last     journal.Verdict
	final    bool // no attempt follows the last one, however many there may be
	repeated bool // the attempt asked for by command has ended: no other follows by itself

	spent time.Duration   // of attempts that the protocol failed
	took  []time.Duration // of the flows of the last attempt that succeeded, from connecting to the acknowledgement
}

// Records is the part of a journal that is read.
type Records interface {
	Records(func(journal.Record) error) error
}

// Journal reads a journal from its first record to its last.
func Journal(j Records) (*State, error) {
	s := &State{trials: map[int]*Trial{}, Restarts: map[journal.ListenerName]int{}, Applied: map[string]bool{}}
	err := j.Records(func(r journal.Record) error {
		if err := s.apply(r); err != nil {
			return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Type, err)
		}
		return nil
	})
	return s, err
}

func (s *State) apply(r journal.Record) error {
	switch r.Type {
	case journal.TypeRunStarted:
		b, err := body[journal.RunStarted](r)
		s.SheetHash = b.SheetHash
		return err
	case journal.TypeProvenance:
		s.Provenance = true
	case journal.TypeRunEnded:
		b, err := body[journal.RunEnded](r)
		s.Ended = &b
		return err
	case journal.TypeListenerReady:
		b, err := body[journal.Listener](r)
		if err != nil {
			return err
		}
		s.Restarts[b.Name()] = b.Restarts + 1
	case journal.TypeAttemptStarted:
		b, err := body[journal.AttemptStarted](r)
		if err != nil {
			return err
		}
		s.Open = &b
		t := s.Trial(b.Trial)
		t.Attempts = max(t.Attempts, b.Attempt)
	case journal.TypeAttemptEnded:
		b, err := body[journal.AttemptEnded](r)
		if err != nil {
			return err
		}
		s.Open = nil
		s.Trial(b.Trial).EndAttempt(&b)
	case journal.TypeTrialEnded:
		b, err := body[journal.TrialEnded](r)
		if err != nil {
			return err
		}
		s.EndTrial(b.Trial)
	case journal.TypeLook:
		b, err := body[journal.Look](r)
		if err != nil {
			return err
		}
		s.Looks = append(s.Looks, b)
	case journal.TypeCommand:
		b, err := body[journal.Command](r)
		if err != nil {
			return err
		}
		if b.Trial == nil && (b.Kind == journal.CommandSkip || b.Kind == journal.CommandRepeat) {
			return fmt.Errorf("%s of no trial", b.Kind)
		}
		s.Apply(&b)
	}
	return nil
}

func body[T any](r journal.Record) (b T, err error) {
	err = json.Unmarshal(r.Body, &b)
	return b, err
}

// Trial is one of the sheet, by its index.
func (s *State) Trial(i int) *Trial {
	t := s.trials[i]
	if t == nil {
		t = &Trial{}
		s.trials[i] = t
	}
	return t
}

// Apply brings a command into effect that the journal has.
func (s *State) Apply(c *journal.Command) {
	if c.ID != "" {
		s.Applied[c.ID] = true
	}
	if c.Rejected != "" {
		return
	}
	switch c.Kind {
	case journal.CommandPause:
		s.Paused = true
	case journal.CommandResume:
		s.Paused = false
	case journal.CommandSkip:
		s.Trial(*c.Trial).Skip = true
	case journal.CommandRepeat:
		t := s.Trial(*c.Trial)
		t.Ended, t.Skip, t.Repeat = false, false, true
		s.repeats = append(s.repeats, *c.Trial)
	}
}

// EndTrial takes note of a trial's terminal record.
func (s *State) EndTrial(trial int) {
	t := s.Trial(trial)
	t.Ended, t.Skip, t.Repeat = true, false, false
	s.repeats = slices.DeleteFunc(s.repeats, func(i int) bool { return i == trial })
}

// Next is the trial to continue with, of a sheet of n: one that was begun, then
// those to be repeated, then the sheet's in order; false when all have ended.
func (s *State) Next(n int) (trial int, ok bool) {
	for _, begun := range []bool{true, false} {
		if !begun {
			// A command may name a trial that the sheet does not have.
			if i := slices.IndexFunc(s.repeats, func(trial int) bool { return trial >= 0 && trial < n }); i >= 0 {
				return s.repeats[i], true
			}
		}
		for i := range n {
			if t := s.Trial(i); !t.Ended && !t.Repeat && (!begun || t.Attempts > 0) {
				return i, true
			}
		}
	}
	return 0, false
}

// After is the trial that follows the current one, of a sheet of n, if that
// one's attempt is its last.
func (s *State) After(current, n int) (trial int, ok bool) {
	for i := range n {
		if t := s.Trial(i); i != current && !t.Ended && !t.Repeat {
			return i, true
		}
	}
	return 0, false
}

// EndAttempt takes note of an attempt's outcome.
func (t *Trial) EndAttempt(e *journal.AttemptEnded) {
	v, reason := e.Verdict, e.Reason
	if reason == journal.ReasonInterrupted || v == journal.Invalid && journal.ApparatusFault(reason) {
		return
	}
	if v == journal.Invalid && reason == journal.ReasonUndetermined {
		if t.unclear++; t.unclear <= journal.FreeUndetermined {
			return
		}
	}
	t.counted++
	t.last = v
	t.final = v == journal.Invalid && journal.Final(reason)
	t.repeated = t.repeated || t.Repeat
	t.Repeat = false
	switch v {
	case journal.Failed, journal.TimedOut:
		t.spent += e.Duration
	case journal.Succeeded:
		t.took = t.took[:0]
		for i := range e.Flows {
			took := time.Duration(e.Flows[i].ConnectNS)
			if r := e.Flows[i].Result; r != nil {
				took += time.Duration(r.ElapsedNS)
			}
			t.took = append(t.took, took)
		}
	}
}

// Outcome is what the last attempt that says something of the protocol ended with, empty where
// none did; how long attempts took that the protocol failed; and, where the last succeeded,
// how long each of its flows took, from connecting to the acknowledgement.
func (t *Trial) Outcome() (v journal.Verdict, spent time.Duration, took []time.Duration) {
	return t.last, t.spent, t.took
}

// Over reports whether no further attempt follows by itself, where a sheet
// allows limit attempts. None follows one that is final, such as one whose values
// cannot be true: of a driver that reports false values, attempts would be repeated
// until one is not found out. A repetition by command is a single attempt, whatever
// the limit and however it ends.
func (t *Trial) Over(limit int) bool {
	switch {
	case t.Skip:
		return true
	case t.Repeat:
		return false
	case t.repeated:
		return true
	}
	return t.counted > 0 && (t.last == journal.Succeeded || t.final || t.counted >= limit)
}

// Verdict is what the trial ends with. A trial skipped before any attempt of it
// ended is aborted. Where a repetition was skipped before its attempt ended, or
// the command came too late to stop a success, the last attempt's verdict stays.
func (t *Trial) Verdict() (v journal.Verdict, reason string) {
	switch {
	case !t.Skip:
		return t.last, ""
	case t.Repeat || t.last == journal.Succeeded:
		return t.last, journal.ReasonSkipped
	}
	return journal.Aborted, journal.ReasonSkipped
}
