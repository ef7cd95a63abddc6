package nodes

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

// DesiredState is how far a node may go with a run.
type DesiredState int

// The desired states, as agents know them.
const (
	DesirePrepare DesiredState = iota + 1
	DesireRun
	DesireFinish
	DesireAbort
)

// Assignment is one run that a node takes part in.
type Assignment struct {
	Run          string
	SheetHash    string
	Sheet        []byte
	Signature    signature.Signature // of run and sheet; zero where the sheet is not signed
	DesiredState DesiredState
	Reason       string     // of an abort
	Role         radio.Role // of the node in the run; empty: the one that it is registered with
	// Addresses on the radio network by role, as the nodes registered them.
	Addresses map[radio.Role]string
	Radio     *radio.Profile // of the run
	Commands  []Command      // of people, for the leading agent, oldest first
}

// Command is a person's instruction to a run as its leading agent gets it.
type Command struct {
	ID    string
	Kind  string
	Trial int // of skip and repeat
	By    string
}

// Work is what all nodes are to do, as the engine has decided.
type Work struct {
	Assignments map[string][]Assignment // by node
	RunOf       map[string]string       // by node: the open run that it takes part in
	Active      map[string][]string     // by run under way: its nodes that are to be in contact
	Silent      map[string]bool         // nodes of a run under way with in-band control, which are not
}

// Assign replaces what all nodes are to do. It answers the polls that wait
// where a node is to do something else than before.
func (r *Registry) Assign(w Work) {
	watched := map[string]bool{}
	for _, names := range w.Active {
		for _, name := range names {
			watched[name] = true
		}
	}
	r.mu.Lock()
	r.runOf, r.active, r.watched, r.silent = w.RunOf, w.Active, watched, w.Silent
	r.mu.Unlock()
	r.board.assign(w.Assignments)
}

// SetPendingWork tells a node that the orchestrator has something else for it
// beside its runs, such as a preflight: its poll is answered at once, and again
// when id changes. The caller of [Registry.Poll] adds to the answer what the
// work is. An empty id means that there is none.
func (r *Registry) SetPendingWork(node, id string) { r.board.setPendingWork(node, id) }

// board holds what each node is to do. There may be thousands of nodes: each has a
// notifier of its own, so that a change wakes only the polls of those that it concerns.
type board struct {
	mu          sync.Mutex
	changed     map[string]*notify.Notifier // by node, of those that have polled
	assigned    map[string]assignments
	pendingWork map[string]int64 // by node: a hash that stands for the work
}

// assignments is all that a node is to do in runs. The revision is made from
// the content, so that it means the same to an orchestrator that was started
// again.
type assignments struct {
	revision int64
	list     []Assignment
}

var noAssignments = newAssignments(nil)

func newAssignments(as []Assignment) assignments {
	h := sha256.New()
	for _, a := range as {
		fmt.Fprintf(h, "%q %s %d %q %q\n", a.Run, a.SheetHash, a.DesiredState, a.Reason, a.Addresses) // maps print in order of their keys
		for _, c := range a.Commands {
			fmt.Fprintf(h, "%q %q %d\n", c.ID, c.Kind, c.Trial)
		}
	}
	return assignments{revision: max(positive(h.Sum(nil)), 1), list: as} // an agent starts with revision 0
}

// positive makes a number of at least 0 from a hash.
func positive(sum []byte) int64 { return int64(binary.BigEndian.Uint64(sum) & math.MaxInt64) }

func (b *board) assign(all map[string][]Assignment) {
	next := map[string]assignments{}
	for name, list := range all {
		next[name] = newAssignments(list)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.assigned
	b.assigned = next
	for name, n := range b.changed {
		if revisionOf(before, name) != revisionOf(next, name) {
			n.Notify()
		}
	}
}

func revisionOf(all map[string]assignments, node string) int64 {
	if a, ok := all[node]; ok {
		return a.revision
	}
	return noAssignments.revision
}

// changedOf returns a channel that is closed when the node is to do something else, or
// is to look again.
func (b *board) changedOf(node string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.changed[node]
	if n == nil {
		n = &notify.Notifier{}
		if b.changed == nil {
			b.changed = map[string]*notify.Notifier{}
		}
		b.changed[node] = n
	}
	return n.Changed()
}

// wake ends the wait of a node's polls, which look again.
func (b *board) wake(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.changed[node]; n != nil {
		n.Notify()
	}
}

func (b *board) setPendingWork(node, id string) {
	b.mu.Lock()
	if id == "" {
		delete(b.pendingWork, node)
	} else {
		if b.pendingWork == nil {
			b.pendingWork = map[string]int64{}
		}
		sum := sha256.Sum256([]byte(id))
		b.pendingWork[node] = positive(sum[:])
	}
	b.mu.Unlock()
	b.wake(node)
}

// of returns what a node is to do; the revision covers its pending work too.
func (b *board) of(node string) assignments {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.assigned[node]
	if !ok {
		a = noAssignments
	}
	a.revision ^= b.pendingWork[node]
	return a
}
