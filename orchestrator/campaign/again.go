package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/store"
)

// Judge decides about the attempts of a run as an engine does, in a store in which the run's
// journals are and which no engine moves along. Of a run that has ended everything is decided,
// as at its end. No trial is repeated. Whether the nodes have real radios is taken from what
// they recorded.
func Judge(ctx context.Context, st *store.Store, log *slog.Logger, id string) error {
	e := newEngine(Config{Store: st, Logger: log})
	e.judgesOnly = true
	o, err := st.RunOverview(ctx, id)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	state := State(o.State)
	if o.EndedAt == nil && state != Running && state != Collecting {
		return nil
	}
	sheet, err := e.sheetOf(ctx, id, o.SheetHash)
	if err != nil {
		return err
	}
	r := &run{id: id, campaign: o.CampaignID, state: state, sheetInfo: sheet}
	if r.realRadios, err = recordedRealRadios(ctx, st, id); err != nil {
		return err
	}
	return e.attemptsEnded(ctx, r, o.EndedAt != nil)
}

// recordedRealRadios reports whether the leading node of a run recorded that its radio is a
// real one.
func recordedRealRadios(ctx context.Context, st *store.Store, run string) (bool, error) {
	nodes, err := st.RunNodes(ctx, run)
	if err != nil {
		return false, fmt.Errorf("nodes of run %s: %w", run, err)
	}
	for _, n := range nodes {
		if radio.Role(n.Role) != leader || n.Provenance == nil {
			continue
		}
		var p journal.Provenance
		if err := json.Unmarshal(n.Provenance, &p); err != nil {
			return false, fmt.Errorf("provenance of %s in run %s: %w", n.Node, run, err)
		}
		return p.Place != journal.PlaceEmulated && p.Place != journal.PlaceVirtual, nil
	}
	return false, nil
}
