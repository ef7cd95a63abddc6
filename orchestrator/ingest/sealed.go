package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/quota"
)

// TypeLate is the type under which the journal's table keeps a record that a node sent
// after the end of its journal: its body is [Refused]. It changes nothing that results
// are made from. No node writes it.
const TypeLate journal.Type = "late"

// Bounds of what one node may have stored of one run, in bytes as delivered. A
// transfer that is sampled ten times a second makes some 200 MB in a day.
const (
	defaultJournalBytes = 4 << 30
	defaultLateBytes    = 1 << 20
	// keptOfLate is how much of a record that came late is kept.
	keptOfLate = 4 << 10
	// maxEnd is the size of a run-ended that is taken of a journal that is full.
	maxEnd = 4 << 10
)

// BoundError reports that a node has stored as much of a run as it may; nothing of the
// delivery was stored.
type BoundError struct {
	Run, Node string
	Bound     int64 // in bytes
	Late      bool  // of what came after the end of the journal
}

func (e *BoundError) Error() string {
	if e.Late {
		return fmt.Sprintf("%s's journal of run %s has ended, and more than %d bytes came after the end: nothing more of it is kept", e.Node, e.Run, e.Bound)
	}
	return fmt.Sprintf("%s's journal of run %s would be larger than %d bytes, which is the most that the orchestrator stores of a node's journal: sample at longer intervals, or divide the plan into shorter runs", e.Node, e.Run, e.Bound)
}

// split divides records where the journal ends: those after its run-ended are late.
func split(ended bool, records []*parsed) (counted, late []*parsed) {
	if ended {
		return nil, records
	}
	for i, r := range records {
		if r.Type == journal.TypeRunEnded {
			return records[:i+1], records[i+1:]
		}
	}
	return records, nil
}

// asLate is the record that takes the place of one that came after the journal's end.
func asLate(r *parsed, now time.Time) *parsed {
	return inPlaceOf(r, TypeLate, "it came after the end of the node's journal of the run: it is kept and counts nowhere", keptOfLate, now)
}

func sizeOf(records []*parsed) (n int64) {
	for _, r := range records {
		n += int64(len(r.raw))
	}
	return n
}

// checkBounds refuses a delivery that would exceed what a node may have stored. The end
// of a journal is taken in any case, or the run would wait for it.
func (d *delivery) checkBounds(cfg *Config, counted, late []*parsed) error {
	onlyEnd := len(counted) == 1 && counted[0].Type == journal.TypeRunEnded && len(counted[0].raw) <= maxEnd
	if d.part.JournalBytes+sizeOf(counted) > cfg.JournalBytes && !onlyEnd && len(counted) > 0 {
		return quota.Exceeded(quota.Journal, &BoundError{Run: d.run, Node: d.node, Bound: cfg.JournalBytes})
	}
	if d.part.LateBytes+sizeOf(late) > cfg.LateBytes && len(late) > 0 {
		return quota.Exceeded(quota.Late, &BoundError{Run: d.run, Node: d.node, Bound: cfg.LateBytes, Late: true})
	}
	return nil
}

// maxKnownRuns bounds the runs whose sheet's hash is remembered.
const maxKnownRuns = 1000

// sheet is a run's sheet. The error wraps [ErrNotFound] where there is no such run.
func (in *Ingester) sheet(ctx context.Context, run string) (*runsheet.Sheet, error) {
	in.mu.Lock()
	hash, known := in.hashes[run]
	in.mu.Unlock()
	if !known {
		var err error
		if hash, err = in.cfg.Store.SheetHash(ctx, run); errors.Is(err, pgx.ErrNoRows) {
			return nil, fmt.Errorf("run %q: %w", run, ErrNotFound)
		} else if err != nil {
			return nil, err
		}
		in.mu.Lock()
		if len(in.hashes) >= maxKnownRuns {
			clear(in.hashes)
		}
		in.hashes[run] = hash
		in.mu.Unlock()
	}
	return in.cfg.Store.Sheet(ctx, run, hash)
}

// checkSide refuses samples of an end of a flow that is not at the node.
func (d *delivery) checkSide(r *parsed, b *journal.Samples) error {
	if b.Trial >= len(d.sheet.Trials) {
		return d.refuse("trial %d, the run has %d", b.Trial, len(d.sheet.Trials))
	}
	flows := d.sheet.Trials[b.Trial].Carried()
	if b.Flow >= len(flows) {
		return d.refuse("samples of flow %d, trial %d has %d", b.Flow, b.Trial, len(flows))
	}
	end := flows[b.Flow].ServerAt()
	if b.Side == "client" {
		end = flows[b.Flow].ClientAt()
	}
	if string(end) != d.part.Role {
		return d.refuse("samples of the %s of flow %d from the run's %s; that end of the flow is at the %s", b.Side, b.Flow, d.part.Role, end)
	}
	return nil
}
