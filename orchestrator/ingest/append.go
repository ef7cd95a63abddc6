package ingest

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5/pgconn"

	"linktrial/executor/journal"
	"linktrial/orchestrator/ingest/ingestdb"
	"linktrial/orchestrator/store"
)

// append stores records that are all samples, which most deliveries are while a
// trial runs, in one round trip. Nil without an error: they are not, or do not
// follow on what is stored, or are refused; the way of all other deliveries
// finds out. An error leaves it open whether they were stored.
func (in *Ingester) append(ctx context.Context, run, node string, all []*parsed) (*delivery, error) {
	if len(all) == 0 {
		return nil, nil
	}
	sheet, err := in.sheet(ctx, run)
	if err != nil {
		return nil, err
	}
	d := &delivery{run: run, node: node, sheet: sheet, delta: Delta{Run: run, Node: node, Records: len(all)}}
	d.part = ingestdb.LockRunNodeRow{Role: string(all[0].Role), Trials: math.MaxInt32} // compared by the statement
	var known bool
	if d.stepped, known = in.knownSteps(run, node, all[0].Seq-1); !known {
		return nil, nil
	}
	for _, r := range all {
		b, ok := r.body.(*journal.Samples)
		if !ok || r.Role != all[0].Role {
			return nil, nil
		}
		if err := d.addSamples(r, b); err != nil {
			return nil, nil
		}
	}
	pages := pagesOf(all)
	if len(pages) != 1 { // more than an agent delivers at once
		return nil, nil
	}
	d.delta.Samples = len(d.samples)
	stored, err := in.cfg.Store.AppendSamples(ctx, &store.Batch{Run: run, Node: node, Role: d.part.Role, First: all[0].Seq, Bytes: sizeOf(all), Limit: in.cfg.JournalBytes, Journal: d.rows(all), Samples: d.samples, Page: pages[0].Content})
	var refused *pgconn.PgError
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	if err != nil || !stored {
		return nil, nil
	}
	in.noteSteps(d, all[len(all)-1].Seq)
	return d, nil
}
