package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/orchestrator/store/storedb"
)

// Absence is why a record is not kept as it was delivered.
type Absence string

const (
	// SamplesDeleted: it had samples, which were deleted by their age.
	SamplesDeleted Absence = "samples-deleted"
	// NotKept: it was stored by a version that kept no records as delivered.
	NotKept Absence = "not-kept"
)

// ErrDamaged reports a journal of which the store has something else than what was
// delivered.
var ErrDamaged = errors.New("what is stored is damaged")

// KeptRecord is one record of a journal as the node wrote it.
type KeptRecord struct {
	Seq    int64
	JSON   []byte // as delivered; nil: it is not kept
	SHA256 [sha256.Size]byte
	// Absent is why there is no JSON; empty where there is.
	Absent Absence
}

// JournalRecords reads a node's journal of a run as it was delivered, in order and without
// gaps, up to its end: records that came after it are not part of it. Each record is held
// against its digest, which was taken when it was stored; where they differ, the error wraps
// [ErrDamaged]. It ends after the first error.
// What it holds in memory does not grow with the journal.
func (s *Store) JournalRecords(ctx context.Context, run, node string) iter.Seq2[KeptRecord, error] {
	return func(yield func(KeptRecord, error) bool) {
		r := &keptReader{s: s, run: run, node: node}
		for after := int64(0); ; {
			rows, err := s.Records(ctx, run, node, after, false)
			if err != nil {
				yield(KeptRecord{}, err)
				return
			}
			if len(rows) == 0 {
				return
			}
			for i := range rows {
				if rows[i].Type == lateType {
					return
				}
				k, err := r.next(ctx, &rows[i])
				if !yield(k, err) || err != nil {
					return
				}
			}
			after = rows[len(rows)-1].Seq
		}
	}
}

// lateType is of a record that came after the end of its journal (ingest.TypeLate).
const lateType = "late"

// keptReader goes through the pages of a journal beside its records.
type keptReader struct {
	s         *Store
	run, node string
	pages     []Page // that were read and not yet reached
	asked     int64  // the first record of the last page that was read
	over      bool   // there are no more pages
	open      [][]byte
	first     int64 // number of the first record of open
	deleted   *bool // whether the run's samples were deleted; nil: not asked yet
}

// next is the next record, whose row in the table journal is known.
func (r *keptReader) next(ctx context.Context, row *Record) (KeptRecord, error) {
	k := KeptRecord{Seq: row.Seq, SHA256: [sha256.Size]byte(row.SHA256)}
	if err := r.reach(ctx, row.Seq); err != nil {
		return k, err
	}
	if len(r.open) == 0 || row.Seq < r.first {
		var err error
		k.Absent, err = r.absence(ctx, row)
		return k, err
	}
	k.JSON = r.open[0]
	r.open, r.first = r.open[1:], r.first+1
	if sum := sha256.Sum256(k.JSON); !bytes.Equal(sum[:], row.SHA256) {
		return k, fmt.Errorf("%w: record %d of %s's journal of run %s is not the one that was delivered: its SHA-256 is %x, and %x was stored with it", ErrDamaged, row.Seq, r.node, r.run, sum, row.SHA256)
	}
	return k, nil
}

// reach opens the page that has a record, if there is one.
func (r *keptReader) reach(ctx context.Context, seq int64) error {
	for len(r.open) == 0 && !r.over {
		if len(r.pages) == 0 {
			if err := r.readPages(ctx); err != nil {
				return err
			}
			continue
		}
		p := &r.pages[0]
		if p.First > seq {
			return nil
		}
		records, err := p.records()
		if err == nil && p.First != seq {
			err = fmt.Errorf("it begins with record %d, expected %d", p.First, seq)
		}
		if err != nil {
			return fmt.Errorf("%w: the page of records %d to %d of %s's journal of run %s: %w", ErrDamaged, p.First, p.Last, r.node, r.run, err)
		}
		r.open, r.first, r.pages = records, p.First, r.pages[1:]
	}
	return nil
}

// Bounds of how many pages are read at once.
const (
	pagesAtOnce     = 256
	pageBytesAtOnce = 1 << 20 // compressed
)

func (r *keptReader) readPages(ctx context.Context) error {
	rows, err := r.s.pool.Query(ctx, `SELECT first_seq, last_seq, samples, content FROM journal_pages WHERE run_id = $1 AND node = $2 AND first_seq > $3 ORDER BY first_seq LIMIT $4`,
		r.run, r.node, r.asked, pagesAtOnce)
	if err != nil {
		return fmt.Errorf("read pages of a journal: %w", err)
	}
	defer rows.Close()
	r.pages = nil
	for size := 0; size < pageBytesAtOnce && rows.Next(); {
		var p Page
		if err := rows.Scan(&p.First, &p.Last, &p.Samples, &p.Content); err != nil {
			return fmt.Errorf("read pages of a journal: %w", err)
		}
		r.pages, r.asked = append(r.pages, p), p.First
		size += len(p.Content)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read pages of a journal: %w", err)
	}
	r.over = len(r.pages) == 0
	return nil
}

// absence is why a record has no page.
func (r *keptReader) absence(ctx context.Context, row *Record) (Absence, error) {
	if row.Type != string(journal.TypeSamples) {
		return NotKept, nil
	}
	if r.deleted == nil {
		// After the page was missed: samples may be deleted while a journal is read.
		var at *time.Time
		err := r.s.pool.QueryRow(ctx, `SELECT dropped_at FROM sample_spans WHERE run_id = $1`, r.run).Scan(&at)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return "", fmt.Errorf("read when samples were deleted: %w", err)
		}
		r.deleted = new(at != nil)
	}
	if *r.deleted {
		return SamplesDeleted, nil
	}
	return NotKept, nil
}

// Signed is what a node signed of its journal of a run (docs/evidence.md).
type Signed struct {
	Statement   []byte // journal.Statement as it was signed; nil: the node has signed nothing
	Signature   string // SSHSIG, namespace sshsig.Journal
	Certificate []byte // DER, of the key that signed
	// Unsigned is why the statement that came last was refused; empty: none was.
	Unsigned string
}

// Statement reads what a node signed of its journal of a run. The error wraps [ErrNotFound]
// where the node has no part in the run.
func (s *Store) Statement(ctx context.Context, run, node string) (*Signed, error) {
	row, err := s.q.SignedJournal(ctx, storedb.SignedJournalParams{RunID: run, Node: node})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("run %q, node %q: %w", run, node, ErrNotFound)
	} else if err != nil {
		return nil, fmt.Errorf("read a node's statement: %w", err)
	}
	return &Signed{Statement: row.Statement, Signature: row.Signature, Certificate: row.StatementCertificate, Unsigned: row.Unsigned}, nil
}
