package executor

import (
	"sync"

	"linktrial/executor/runsheet"
)

// transferTable is what the listeners of a run share: which attempt a transfer
// belongs to, and which transfers are under way.
type transferTable struct {
	observer Observer

	mu     sync.Mutex
	ids    *transferIDs
	active map[string]bool
}

func newTransferTable(run string, s *runsheet.Sheet, o Observer) *transferTable {
	return &transferTable{observer: o, ids: newTransferIDs(run, s), active: map[string]bool{}}
}

// place is where a transfer belongs in the sheet; false: to no attempt of the run.
func (t *transferTable) place(id string) (place, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids.find(id)
}

// begin takes note that a transfer is under way, end that it has ended.
func (t *transferTable) begin(id string) { t.set(id, true) }
func (t *transferTable) end(id string)   { t.set(id, false) }

func (t *transferTable) set(id string, active bool) {
	t.mu.Lock()
	if active {
		t.active[id] = true
	} else {
		delete(t.active, id)
	}
	n := len(t.active)
	t.mu.Unlock()
	t.observer.Transfers(n)
}

// place is where a transfer belongs in a sheet.
type place struct{ trial, attempt, flow int }

// transferIDs finds the place of a transfer: the identities are hashes, so
// they are made in advance, a few attempts at a time.
type transferIDs struct {
	run      string
	sheet    *runsheet.Sheet
	known    map[string]place
	attempts int // made so far
}

// maxAttempt bounds the search for an identity that belongs to no attempt.
// Interrupted attempts do not count against a sheet's limit, so there can be
// more of them than its limit.
const maxAttempt = 256

func newTransferIDs(run string, sheet *runsheet.Sheet) *transferIDs {
	t := &transferIDs{run: run, sheet: sheet, known: map[string]place{}}
	t.extend(sheet.Limits.Attempts + 1)
	return t
}

func (t *transferIDs) extend(to int) {
	to = min(to, maxAttempt)
	for ; t.attempts < to; t.attempts++ {
		for i := range t.sheet.Trials {
			for f := range t.sheet.Trials[i].Carried() {
				a := t.attempts + 1
				t.known[runsheet.TransferID(t.run, i, a, f).String()] = place{trial: i, attempt: a, flow: f}
			}
		}
	}
}

func (t *transferIDs) find(id string) (place, bool) {
	for {
		if p, ok := t.known[id]; ok {
			return p, true
		}
		if t.attempts >= maxAttempt {
			return place{}, false
		}
		t.extend(2 * t.attempts)
	}
}
