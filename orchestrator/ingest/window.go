package ingest

import (
	"context"

	"linktrial/orchestrator/ingest/ingestdb"
	"linktrial/orchestrator/store"
)

// noteWindows makes the common windows of the attempts that a delivery may have
// completed. The client's journal and the server's come independently; after its
// commit, the later one of the two sees both. What fails here is made when the
// orchestrator starts the next time: the records themselves are stored.
func (in *Ingester) noteWindows(ctx context.Context, d *delivery) {
	if len(d.attemptsEnded) == 0 && len(d.transfersReceived) == 0 {
		return
	}
	if err := in.tryWindows(ctx, d); err != nil {
		in.cfg.Logger.Error("a value could not be made of samples; the orchestrator's next start tries again", "run", d.run, "error", err)
	}
}

func (in *Ingester) tryWindows(ctx context.Context, d *delivery) error {
	sheet, err := in.cfg.Store.Sheet(ctx, d.run, d.part.SheetHash)
	if err != nil || !store.HasWindows(sheet) {
		return err
	}
	attempts := d.attemptsEnded
	if len(d.transfersReceived) > 0 {
		rows, err := in.db.AttemptsOfTransfers(ctx, ingestdb.AttemptsOfTransfersParams{RunID: d.run, Transfers: d.transfersReceived})
		if err != nil {
			return err
		}
		for _, r := range rows {
			attempts = append(attempts, [2]int32{r.Trial, r.Attempt})
		}
	}
	for _, a := range attempts {
		if err := in.cfg.Store.NoteWindow(ctx, d.run, sheet, a[0], a[1]); err != nil {
			return err
		}
	}
	return nil
}
