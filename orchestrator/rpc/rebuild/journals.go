package rebuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/ingest"
)

const (
	longestLine   = journal.MaxRecord + 64
	deliveryBytes = 1 << 20 // of records in one delivery
	deliveryCount = 500
)

// checksum is how long a line is before its record: eight digits and a space.
const checksum = 9

// delivering is one journal on its way into the store.
type delivering struct {
	ingest  *ingest.Ingester
	conn    *pgx.Conn
	run     string
	node    *evidence.Node
	batch   []ingest.Record
	bytes   int
	last    int64 // number of the newest record that was read
	lacking int64 // how many numbers have no record
	told    func(records int64)
}

// errJournal is of a journal that is not taken any further.
var errJournal = errors.New("not taken any further")

// journal delivers a node's journal. Its error is of the store; what is wrong with the journal
// is a problem, and what came before it is stored.
func (d *delivering) journal(ctx context.Context, b Bag, problem func(format string, args ...any)) error {
	name := evidence.JournalFile(d.run, d.node.Name)
	if !has(b, name) {
		if d.node.Records > 0 {
			problem("the bag has no %s, so nothing follows from this journal", name)
		}
		return nil
	}
	err := eachLine(b, name, longestLine, func(_ int, line []byte, whole bool) error { return d.add(ctx, line, whole) })
	if err == nil || errors.Is(err, errJournal) {
		if delivered := d.deliver(ctx); delivered != nil {
			err = fmt.Errorf("%s: %w", name, delivered)
		}
	}
	var refused *ingest.RefusedError
	var conflict *ingest.ConflictError
	var bound *ingest.BoundError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errJournal), errors.Is(err, errLongLine), errors.Is(err, ingest.ErrNotFound), errors.As(err, &refused), errors.As(err, &conflict), errors.As(err, &bound):
		problem("%v", err)
	default:
		return err
	}
	if d.lacking > 0 && !d.node.SamplesDeleted {
		problem("%s lacks %d records between its first and its last one", name, d.lacking)
	}
	return nil
}

// add takes a line of the journal.
func (d *delivering) add(ctx context.Context, line []byte, whole bool) error {
	if len(line) < checksum || !bytes.Equal(journal.AppendLine(nil, line[checksum:]), append(bytes.Clone(line), '\n')) || !whole {
		return fmt.Errorf("its checksum is not that of its record, so the journal is %w", errJournal)
	}
	record := bytes.Clone(line[checksum:])
	var head struct{ Seq int64 }
	if err := json.Unmarshal(record, &head); err != nil || head.Seq <= d.last {
		return fmt.Errorf("record %d follows on record %d, so the journal is %w", head.Seq, d.last, errJournal)
	}
	if head.Seq != d.last+1 {
		if err := d.skip(ctx, head.Seq-1); err != nil {
			return err
		}
	}
	d.last = head.Seq
	d.batch, d.bytes = append(d.batch, ingest.Record{Seq: head.Seq, JSON: record}), d.bytes+len(record)
	if d.bytes < deliveryBytes && len(d.batch) < deliveryCount {
		return nil
	}
	return d.deliver(ctx)
}

// skip leaves out the records up to a number, which the bag has not: they had samples, which
// were deleted, or the journal is not complete.
func (d *delivering) skip(ctx context.Context, to int64) error {
	if err := d.deliver(ctx); err != nil {
		return err
	}
	d.lacking += to - d.last
	_, err := d.conn.Exec(ctx, `UPDATE run_nodes SET committed_seq = $3 WHERE run_id = $1 AND node = $2`, d.run, d.node.Name, to)
	return err
}

func (d *delivering) deliver(ctx context.Context) error {
	if len(d.batch) == 0 {
		return nil
	}
	_, err := d.ingest.Deliver(ctx, d.run, d.node.Name, d.batch)
	d.told(int64(len(d.batch)))
	d.batch, d.bytes = nil, 0
	return err
}
