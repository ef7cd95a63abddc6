package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/ingest/ingestdb"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

// storeWithin bounds one delivery, the wait for another of the same journal included.
const storeWithin = 30 * time.Second

// Record is one journal record as delivered.
type Record struct {
	Seq  int64
	JSON []byte // executor/journal.Record
}

// Config is where records are stored, and what is called then.
type Config struct {
	Store  *store.Store
	Logger *slog.Logger
	// Stored is called after the commit of every delivery that brought
	// something new, from the goroutine that delivered; it must not block.
	// It can be nil.
	Stored func(Delta)
	// JournalBytes bounds one node's journal of one run, LateBytes what comes after its
	// end; 0: 4 GiB and 1 MiB.
	JournalBytes, LateBytes int64
}

// Ingester stores deliveries. Any number of goroutines may use it; deliveries
// of one node's journal of one run follow one another.
type Ingester struct {
	cfg     Config
	db      *ingestdb.Queries
	stating chan struct{} // has an element while a statement is checked

	mu     sync.Mutex
	hashes map[string]string // of runs' sheets
	clocks map[journalOf]stepped
}

// New returns an Ingester.
func New(cfg Config) *Ingester {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Stored == nil {
		cfg.Stored = func(Delta) {}
	}
	cfg.JournalBytes, cfg.LateBytes = cmp.Or(cfg.JournalBytes, defaultJournalBytes), cmp.Or(cfg.LateBytes, defaultLateBytes)
	return &Ingester{cfg: cfg, db: ingestdb.New(cfg.Store), stating: make(chan struct{}, 1), hashes: map[string]string{}, clocks: map[journalOf]stepped{}}
}

// Delta is what a delivery brought.
type Delta struct {
	Run     string
	Node    string
	Records int // newly stored
	Samples int // among them
	Late    int // among them: they came after the end of the node's journal and count nowhere
	// Structure is set when more than samples came: the state of the run, its
	// attempts or its listeners may have changed.
	Structure bool
	// Progress is the newest sample of each flow, as its client reported it.
	Progress []Progress
	// Fresh is the samples as the flows' clients took them, to be shown while
	// they are new; the slices are shared and must not be changed.
	Fresh []Samples
	// Wait is the newest record of why the run waits, or that it waits no longer; nil: none
	// came.
	Wait *Wait
}

// Wait is why a run that is under way waits.
type Wait struct {
	Trial int
	Fault string    // empty: it waits no longer
	Since time.Time // by the node's clock
}

// Samples are a few samples of one flow, in order of time.
type Samples struct {
	Trial, Attempt, Flow int
	Samples              []contract.Sample
}

// Progress is how far a flow is.
type Progress struct {
	Trial, Attempt, Flow int
	Bytes                int64 // acknowledged where the protocol knows, else sent
	Elapsed              time.Duration
}

// ErrNotFound reports a delivery of a run that does not exist, or from a node
// that has no part in it.
var ErrNotFound = errors.New("no such part of a run")

// RefusedError reports a journal that cannot be stored, because a record shows that
// it is another one; nothing of the delivery was stored. A record that cannot be
// stored for itself alone is [Refused].
type RefusedError struct {
	Run, Node string
	Seq       int64 // 0 where the database refused and did not say which
	Reason    string

	alone bool // only this record is concerned
}

func (e *RefusedError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("a record of %s's journal of run %s is refused: %s", e.Node, e.Run, e.Reason)
	}
	return fmt.Sprintf("record %d of %s's journal of run %s is refused: %s", e.Seq, e.Node, e.Run, e.Reason)
}

// ConflictError reports that a record other than the delivered one is stored
// in its place: the node has begun a new journal.
type ConflictError struct {
	Run, Node string
	Seq       int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("record %d of %s's journal of run %s differs from the one stored before: the node has begun a new journal or altered this one, so its records cannot be stored", e.Seq, e.Node, e.Run)
}

// Deliver stores those records that are new. The records follow one another without
// gaps. It returns the number of the last record of the node's journal that is
// stored. Where the records begin after the one that follows it, nothing is stored
// and the caller goes back to it; a call without records asks for the number. The
// call blocks while another delivery of the same journal runs, for at most half a
// minute, and does not end early when ctx does.
func (in *Ingester) Deliver(ctx context.Context, run, node string, records []Record) (committed int64, err error) {
	all, err := in.parseAll(run, node, records)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	// A caller that goes away must not leave open whether the commit succeeded: the
	// records would be stored and Config.Stored not called.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
	defer cancel()
	if d, err := in.append(ctx, run, node, all); err != nil {
		in.cfg.Stored(Delta{Run: run, Node: node, Structure: true}) // it may have been stored all the same
		return 0, err
	} else if d != nil {
		in.cfg.Stored(d.delta)
		return all[len(all)-1].Seq, nil
	}
	return in.deliverAround(ctx, run, node, all)
}

// deliverAround stores records, and in the place of each that cannot be stored why
// that is so: a node can do nothing about it, and the records after it must not wait.
func (in *Ingester) deliverAround(ctx context.Context, run, node string, all []*parsed) (committed int64, err error) {
	for {
		committed, err = in.deliver(ctx, run, node, all)
		var refused *RefusedError
		if err == nil || !errors.As(err, &refused) || !refused.alone {
			return committed, err
		}
		switch at := refused.Seq; {
		case at >= all[0].Seq && all[at-all[0].Seq].Type != TypeRefused:
			all[at-all[0].Seq] = in.quarantine(run, node, all[at-all[0].Seq], refused.Reason)
		case at == 0 && len(all) == 1 && all[0].Type != TypeRefused:
			all[0] = in.quarantine(run, node, all[0], refused.Reason)
		case at == 0 && len(all) > 1:
			// The database did not say which: each by itself.
			for i := range all {
				if committed, err = in.deliverAround(ctx, run, node, all[i:i+1]); err != nil || committed < all[i].Seq {
					return committed, err
				}
			}
			return committed, nil
		default:
			return 0, err
		}
	}
}

func (in *Ingester) quarantine(run, node string, p *parsed, reason string) *parsed {
	in.cfg.Logger.Error("a record cannot be stored; the reason takes its place", "run", run, "node", node, "seq", p.Seq, "type", string(p.Type), "reason", reason)
	p.Run, p.Node = run, node
	return quarantined(p, reason, time.Now())
}

func (in *Ingester) parseAll(run, node string, records []Record) ([]*parsed, error) {
	for i, r := range records {
		if r.Seq < 1 || i > 0 && r.Seq != records[i-1].Seq+1 {
			return nil, &RefusedError{Run: run, Node: node, Seq: r.Seq, Reason: "records of a delivery must follow one another without gaps, from 1"}
		}
	}
	all := make([]*parsed, len(records))
	for i, r := range records {
		var err error
		all[i], err = parse(r.JSON, run, node, r.Seq)
		switch {
		case errors.Is(err, errForeign):
			return nil, &RefusedError{Run: run, Node: node, Seq: r.Seq, Reason: err.Error()}
		case err != nil:
			all[i] = in.quarantine(run, node, &parsed{Record: journal.Record{Seq: r.Seq}, raw: r.JSON, digest: sha256.Sum256(r.JSON)}, err.Error())
		}
	}
	return all, nil
}

// deliver stores records of any types in one transaction.
func (in *Ingester) deliver(ctx context.Context, run, node string, all []*parsed) (committed int64, err error) {
	var d *delivery
	sheet, err := in.sheet(ctx, run)
	if err != nil {
		return 0, err
	}
	err = in.cfg.Store.InTx(ctx, func(tx store.Conn) error {
		q := ingestdb.New(tx)
		part, err := q.LockRunNode(ctx, ingestdb.LockRunNodeParams{RunID: run, Node: node})
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("run %q, node %q: %w", run, node, ErrNotFound)
		} else if err != nil {
			return err
		}
		committed = part.CommittedSeq
		if len(all) == 0 || all[0].Seq > committed+1 {
			return nil
		}
		known := min(committed-all[0].Seq+1, int64(len(all)))
		if err := sameAsStored(ctx, q, all[:known]); err != nil {
			return err
		}
		fresh := all[known:]
		if len(fresh) == 0 {
			return nil
		}
		d = &delivery{tx: tx, q: q, run: run, node: node, part: part, sheet: sheet, delta: Delta{Run: run, Node: node, Records: len(fresh)}}
		if d.stepped, err = in.steppedBefore(ctx, tx, run, node, part.CommittedSeq); err != nil {
			return err
		}
		if err := d.store(ctx, &in.cfg, fresh); err != nil {
			return err
		}
		committed = fresh[len(fresh)-1].Seq
		return nil
	})
	if err != nil {
		return 0, in.failed(run, node, d, err)
	}
	if d != nil {
		in.noteSteps(d, committed)
		in.noteWindows(ctx, d)
		in.cfg.Stored(d.delta)
	}
	return committed, nil
}

// failed is the error of a delivery as its caller gets it; d is nil where nothing
// was written.
func (in *Ingester) failed(run, node string, d *delivery, err error) error {
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		in.cfg.Logger.Error("journal conflicts with what is stored", "run", run, "node", node, "seq", conflict.Seq)
	}
	err = in.explain(d, err)
	var refused *RefusedError
	if d != nil && !errors.As(err, &refused) && conflict == nil {
		// The connection may have been lost after the commit.
		in.cfg.Stored(Delta{Run: run, Node: node, Structure: true})
	}
	return err
}

// sameAsStored compares delivered records with those that are stored in their place.
func sameAsStored(ctx context.Context, q *ingestdb.Queries, records []*parsed) error {
	if len(records) == 0 {
		return nil
	}
	first := records[0]
	rows, err := q.JournalDigests(ctx, ingestdb.JournalDigestsParams{RunID: first.Run, Node: first.Node, First: first.Seq, Last: records[len(records)-1].Seq})
	if err != nil {
		return err
	}
	if len(rows) != len(records) {
		return fmt.Errorf("journal of %s in run %s: %d records stored where %d are committed", first.Node, first.Run, len(rows), len(records))
	}
	for i, r := range rows {
		if string(r.Digest) != string(records[i].digest[:]) {
			return &ConflictError{first.Run, first.Node, r.Seq}
		}
	}
	return nil
}

// delivery is one transaction.
type delivery struct {
	tx        store.Conn
	q         *ingestdb.Queries
	run, node string
	part      ingestdb.LockRunNodeRow
	sheet     *runsheet.Sheet
	delta     Delta
	samples   []store.Sample
	telemetry []ingestdb.InsertTelemetryParams
	at        int64         // record being applied, for errors
	stepped   time.Duration // the sum of the steps of the node's clock so far

	// What may complete an attempt: its end, or what the server received.
	attemptsEnded     [][2]int32 // trial and attempt
	transfersReceived []string
}

func (d *delivery) store(ctx context.Context, cfg *Config, fresh []*parsed) error {
	counted, late := split(d.part.Ended, fresh)
	if err := d.checkBounds(cfg, counted, late); err != nil {
		return err
	}
	for _, r := range counted {
		if r.Type != TypeRefused && string(r.Role) != d.part.Role {
			return &RefusedError{Run: d.run, Node: d.node, Seq: r.Seq, Reason: fmt.Sprintf("it is of a %s, and the node is the run's %s", r.Role, d.part.Role)}
		}
	}
	rows := d.rows(counted)
	for _, r := range late {
		rows = append(rows, d.rows([]*parsed{asLate(r, time.Now())})...)
	}
	if _, err := d.tx.InsertJournal(ctx, rows); err != nil {
		return err
	}
	d.delta.Late, d.delta.Structure = len(late), len(late) > 0
	for _, r := range counted {
		d.at = r.Seq
		if err := d.apply(ctx, r); err != nil {
			return err
		}
	}
	d.at = 0
	if len(d.samples) > 0 {
		if err := d.tx.InsertSamples(ctx, d.samples); err != nil {
			return err
		}
		d.delta.Samples = len(d.samples)
	}
	if len(d.telemetry) > 0 {
		if _, err := d.q.InsertTelemetry(ctx, d.telemetry); err != nil {
			return err
		}
	}
	advance := ingestdb.AdvanceCommittedParams{RunID: d.run, Node: d.node, CommittedSeq: fresh[len(fresh)-1].Seq,
		Bytes: sizeOf(counted), LateRecords: int64(len(late)), LateBytes: sizeOf(late)}
	for _, p := range pagesOf(counted) {
		advance.Firsts, advance.Lasts = append(advance.Firsts, p.First), append(advance.Lasts, p.Last)
		advance.Samples, advance.Contents = append(advance.Samples, p.Samples), append(advance.Contents, p.Content)
	}
	return d.q.AdvanceCommitted(ctx, advance)
}

// pagesOf are records as they were delivered, those that are refused included.
func pagesOf(records []*parsed) []store.Page {
	var w store.PageWriter
	for _, r := range records {
		w.Add(r.Seq, r.raw, r.Type == journal.TypeSamples)
	}
	return w.Pages()
}

// rows are records as the journal's table has them.
func (d *delivery) rows(records []*parsed) []store.InsertJournalParams {
	out := make([]store.InsertJournalParams, len(records))
	for i, r := range records {
		out[i] = store.InsertJournalParams{RunID: d.run, Node: d.node, Seq: r.Seq, Type: string(r.Type), At: r.At, Body: r.stored, Digest: r.digest[:]}
	}
	return out
}

// explain turns an error that the schema's types, constraints and limits make
// (SQLSTATE classes 22, 23 and 54) into a refusal of the record: delivered again, it
// would fail again. The text of the database, which names tables and columns, is for
// the log.
func (in *Ingester) explain(d *delivery, err error) error {
	var pg *pgconn.PgError
	if d == nil || !errors.As(err, &pg) || len(pg.Code) != 5 {
		return err
	}
	reason := ""
	switch pg.Code[:2] {
	case "22":
		reason = "a value of it cannot be stored"
	case "23":
		reason = "it contradicts what is stored, or a value is outside of its range"
	case "54":
		reason = "it is larger than can be stored"
	default:
		return err
	}
	in.cfg.Logger.Error("the database refuses a record", "run", d.run, "node", d.node, "seq", d.at, "error", pg.Error(), "detail", pg.Detail)
	return &RefusedError{Run: d.run, Node: d.node, Seq: d.at, Reason: reason, alone: true}
}

func (d *delivery) refuse(format string, args ...any) error {
	return &RefusedError{Run: d.run, Node: d.node, Seq: d.at, Reason: fmt.Sprintf(format, args...), alone: true}
}
