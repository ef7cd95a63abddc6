package ingest

import (
	"context"
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/store"
)

// journalOf names the journal of a node in a run.
type journalOf struct{ run, node string }

// stepped is by how much a node's clock has stepped in all, up to a record of its journal
// that is stored.
type stepped struct {
	committed int64
	sum       time.Duration
}

// knownSteps is that sum, where it is known up to this very record.
func (in *Ingester) knownSteps(run, node string, committed int64) (time.Duration, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s, ok := in.clocks[journalOf{run, node}]
	return s.sum, ok && s.committed == committed
}

// steppedBefore is that sum, read from the store where it is not known.
func (in *Ingester) steppedBefore(ctx context.Context, c store.Conn, run, node string, committed int64) (time.Duration, error) {
	if sum, known := in.knownSteps(run, node, committed); known {
		return sum, nil
	}
	rows, err := c.ClockOffsets(ctx, run)
	if err != nil {
		return 0, err
	}
	return store.NodeClocks(rows)[node].Stepped(committed), nil
}

// noteSteps keeps the sum of a delivery that is stored.
func (in *Ingester) noteSteps(d *delivery, committed int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.clocks[journalOf{d.run, d.node}] = stepped{committed, d.stepped}
}

// steady is a record's time by the node's clock as it was when its part in the run began
// (see [store.NodeClock]). Steps that lead out of what can be stored are no node's.
func (d *delivery) steady(at time.Time) time.Time {
	t := at.Add(-d.stepped)
	if t.Before(journal.Earliest) || !t.Before(journal.Latest) {
		return at
	}
	return t
}
