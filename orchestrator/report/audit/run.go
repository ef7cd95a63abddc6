package audit

import (
	"io"
	"iter"
	"time"

	"linktrial/internal/faultlog"
)

// Run is one run as the orchestrator's API, its nodes' files and its exports have it.
type Run struct {
	ID      string
	State   string // queued … completed, aborted, stopped
	Message string
	// TrialsEnded and AttemptsFailed are the progress that lists and pages show.
	TrialsEnded    int
	AttemptsFailed int
	// TrialsNotNeeded are those of TrialsEnded that the plan's rule to stop by left out.
	TrialsNotNeeded int

	Sheet     []byte // as the nodes got it
	SheetHash string
	Trials    []Trial // as the store has them

	Parts []Part
	// Records reads what the store has of a node's journal.
	Records func(node string, bodies bool) iter.Seq2[StoredRecord, error]

	// Journals are those that nodes wrote; of a node without one, the store's records
	// are looked at in its place.
	Journals []Journal
	// Faults are those that were injected; nil: it is not known which.
	Faults []faultlog.Fault
	// Summary is what pages show; nil: it was not read.
	Summary *Summary
	Exports []Export
}

// Ended reports whether the run is over.
func (r *Run) Ended() bool {
	return r.State == "completed" || r.State == "aborted" || r.State == "stopped"
}

// Part is a node's part in the run, as the store has it.
type Part struct {
	Node      string
	Role      string
	Committed int64
	Ended     string
	EndReason string
}

// Trial is a trial of the store.
type Trial struct {
	Trial     int
	Iteration int
	Treatment string
	Verdict   string // empty: not ended
	NotNeeded bool
	Attempts  []Attempt
}

// lastReason is that of the attempt that counts; empty: there is none.
func (t *Trial) lastReason() string {
	if n := len(t.Attempts); n > 0 {
		return t.Attempts[n-1].Reason
	}
	return ""
}

// Attempt is an attempt of the store, as tables and pages count it.
type Attempt struct {
	Attempt int
	Verdict string // empty: not ended
	Reason  string
	Started time.Time
	Rate    float64 // bytes per second; 0: no value
	Elapsed time.Duration
	Connect time.Duration
	Control []ControlCount // of runs with in-band control
	// Mark is why its value was excluded afterwards; nil: it was not.
	Mark *Mark
}

// ControlCount is the packets between a node and the orchestrator during an attempt.
type ControlCount struct {
	Role    string
	Packets int64
	Bytes   int64
	Unknown string // why they are not known
}

// Mark is the decision that an attempt's value does not count.
type Mark struct {
	By, Reason string
	// Verdict and VerdictReason are those of the journal.
	Verdict, VerdictReason string
}

// StoredRecord is one record of a journal as the store has it.
type StoredRecord struct {
	Seq    int64
	Type   string
	At     time.Time
	SHA256 [32]byte // of the bytes that the node delivered
	Body   []byte   // where it was asked for
}

// Journal is the file of one node.
type Journal struct {
	Path string
	Open func() (io.ReadCloser, error)
}
