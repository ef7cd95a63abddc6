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

// readLooks are what a run's rule to stop by found, in order.
func readLooks(ctx context.Context, q *storedb.Queries, run string) ([]journal.Look, error) {
	rows, err := q.Looks(ctx, run)
	if err != nil {
		return nil, err
	}
	out := make([]journal.Look, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Body, &out[i]); err != nil {
			return nil, fmt.Errorf("look in record %d: %w", r.Seq, err)
		}
	}
	return out, nil
}
