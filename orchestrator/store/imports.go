package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
)

// ErrImported reports that something is asked of an imported campaign that its file does
// not hold.
var ErrImported = errors.New("was imported: the file that it came from has the values of each attempt, but no journals, samples, channels, readings or commands")

// findImported is the imported campaign that name names, or a run of it; the identity, or
// of a campaign also a unique prefix.
func findImported(ctx context.Context, q *storedb.Queries, name string) (scope Scope, found bool, err error) {
	campaign, _, isRun := strings.Cut(name, "-")
	ids, err := q.ImportsLike(ctx, campaign)
	switch {
	case err != nil:
		return scope, false, fmt.Errorf("find import: %w", err)
	case slices.Contains(ids, campaign):
		scope = Scope{Campaign: campaign, Imported: true}
	case len(ids) == 0 || isRun:
		return scope, false, nil
	case len(ids) > 1:
		return scope, false, fmt.Errorf("campaign %q: %w begin so, give more of its name", name, ErrAmbiguous)
	default:
		scope = Scope{Campaign: ids[0], Imported: true}
	}
	if isRun {
		scope.Run = name
	}
	return scope, true, nil
}

// importedDataset reads a campaign of another orchestrator, or one run of it.
func importedDataset(ctx context.Context, q *storedb.Queries, scope Scope) (*report.Dataset, error) {
	x, err := q.ImportedCampaign(ctx, scope.Campaign)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("imported campaign %q: %w", scope.Campaign, ErrNotFound)
	} else if err != nil {
		return nil, fmt.Errorf("read import %s: %w", scope.Campaign, err)
	}
	ds, err := report.ReadJSON(x.Content)
	if err != nil {
		return nil, fmt.Errorf("read import %s: %w", scope.Campaign, err)
	}
	if scope.Run != "" {
		ds.Runs = slices.DeleteFunc(ds.Runs, func(r report.Run) bool { return r.ID != scope.Run })
		if len(ds.Runs) == 0 {
			return nil, fmt.Errorf("run %q of the imported campaign %s: %w", scope.Run, scope.Campaign, ErrNotFound)
		}
	}
	from := &report.Import{Campaign: scope.Campaign, Origin: x.Origin, File: x.FileName, SHA256: x.Sha256, By: x.GivenBy, At: x.GivenAt.UTC().Round(0)}
	for i := range ds.Runs {
		ds.Runs[i].Imported = from
	}
	for i := range ds.Words {
		ds.Words[i].Imported = from
	}
	return ds, nil
}

// importedMeasured is the same with heads as of one's own runs.
func importedMeasured(ctx context.Context, q *storedb.Queries, scope Scope) (Measured, error) {
	ds, err := importedDataset(ctx, q, scope)
	if err != nil {
		return Measured{}, err
	}
	f := Measured{Dataset: *ds}
	for i := range ds.Runs {
		f.Heads = append(f.Heads, importedHead(ds, &ds.Runs[i]))
	}
	return f, nil
}

func importedHead(ds *report.Dataset, r *report.Run) Head {
	h := Head{RunHeadsRow: storedb.RunHeadsRow{ID: r.ID, CampaignID: ds.Campaign, Plan: ds.Plan, State: r.State, Message: r.Message, SheetHash: r.SheetHash,
		Radio: r.Sheet.Cell.Radio, Topology: r.Sheet.Cell.Topology, SizeBytes: r.Sheet.Cell.SizeBytes, Trials: int32(len(r.Trials)),
		CreatedAt: ds.Created, EndedAt: &r.Ended, Place: r.Place, Nodes: slices.Sorted(maps.Keys(r.Provenance)), Sealed: true, ActiveAt: r.Ended}}
	if !r.Started.IsZero() {
		h.StartedAt = &r.Started
	}
	for k := range r.Trials {
		t := &r.Trials[k]
		if t.Verdict != "" {
			h.TrialsEnded++
		}
		for n := range t.Attempts {
			if v := t.Attempts[n].Verdict; v != "" && v != journal.Succeeded {
				h.AttemptsFailed++
			}
		}
	}
	return h
}
