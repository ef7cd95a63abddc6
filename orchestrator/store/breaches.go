package store

import (
	"context"
	"encoding/json"
	"fmt"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
)

// Breaches reads what journals have of drivers that broke the contract, in the
// order of roles and records.
func Breaches(rows []storedb.BreachesRow) ([]report.Breach, error) {
	out := make([]report.Breach, 0, len(rows))
	for _, r := range rows {
		var m journal.Misbehaviour
		if err := json.Unmarshal(r.Body, &m); err != nil {
			return nil, fmt.Errorf("breach recorded by %s: %w", r.Node, err)
		}
		out = append(out, report.Breach{At: r.At.UTC(), Node: r.Node, Role: r.Role, Treatment: m.Treatment,
			Trial: m.Trial, Attempt: m.Attempt, Flow: m.Flow, Message: m.Message, Log: m.Log})
	}
	return out, nil
}

// addLooks gives a run what its rule to stop by found, if it has one.
func addLooks(ctx context.Context, q *storedb.Queries, run *report.Run) error {
	if run.Sheet == nil || run.Sheet.Stop == nil {
		return nil
	}
	rows, err := q.Looks(ctx, run.ID)
	if err != nil {
		return err
	}
	run.Looks = make([]journal.Look, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Body, &run.Looks[i]); err != nil {
			return fmt.Errorf("look in record %d: %w", r.Seq, err)
		}
	}
	return nil
}
