package auditlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/atomicfile"
	"linktrial/internal/auditchain"
	"linktrial/internal/inputfile"
	"linktrial/internal/service"
	"linktrial/internal/signature"
	"linktrial/orchestrator/store"
)

// HeadFile has the newest signed head, in the data folder: whoever has the database alone
// can remove entries and their heads, and cannot change this.
const HeadFile = "audit-head.json"

const (
	tickEvery    = time.Minute
	signEvery    = 10 * time.Minute
	checkEvery   = time.Hour
	closeTimeout = 5 * time.Second
	maxHeadFile  = 4 << 10
)

// Signer signs heads; orchestrator/security/signing has it.
type Signer interface {
	SignAuditHead(head []byte) signature.Signature
	Keys() []signature.Endorsed
}

// Config says where the log is.
type Config struct {
	Store   *store.Store
	Signer  Signer // nil: no heads are made
	DataDir string // gets [HeadFile]; empty: there is no such file
	Logger  *slog.Logger
	Now     func() time.Time
}

// Checked is what a check of the whole log found.
type Checked struct {
	At      time.Time // zero: there was none yet
	Entries int64
	Problem string // empty: the log is whole
}

// Log is the audit log. Its methods may be called from several goroutines.
type Log struct {
	cfg Config
	// turn is held by who writes to the log: what was the last entry must not change
	// between the store's answer and what is remembered of it.
	turn chan struct{}
	stop func() // nil: not started

	mu     sync.Mutex
	bounds bounds
	last   auditchain.Entry // the newest one that this process wrote or signed; zero: not known
	filed  auditchain.Head  // what HeadFile has
	signed auditchain.Head  // the newest one
	broken string           // what writing found; empty: nothing
	check  Checked
}

// New reads the newest head of the data folder. A damaged one is a problem of the log,
// not a reason to be without an orchestrator.
func New(cfg Config) *Log {
	l := &Log{cfg: cfg, turn: make(chan struct{}, 1)}
	if cfg.DataDir == "" {
		return l
	}
	b, err := inputfile.Read(l.headFile(), maxHeadFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l
	}
	if err == nil {
		l.filed, err = auditchain.ParseHead(b)
	}
	if err != nil {
		l.filed, l.broken = auditchain.Head{}, fmt.Sprintf("the signed head in %s cannot be read: %s", l.headFile(), err)
	}
	return l
}

func (l *Log) headFile() string { return filepath.Join(l.cfg.DataDir, HeadFile) }

// Start checks the log, and from then on every hour, signs its head every ten minutes,
// and writes the sums of anonymous calls, until [Log.Stop].
func (l *Log) Start(ctx context.Context) {
	l.stop = service.Go(context.WithoutCancel(ctx), l.run)
}

func (l *Log) run(ctx context.Context) {
	l.Check(ctx)
	l.sign(ctx)
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	signed, checked := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		l.sumUp(ctx, false)
		if time.Since(checked) >= checkEvery {
			l.Check(ctx)
			checked = time.Now()
		}
		if time.Since(signed) >= signEvery {
			l.sign(ctx)
			signed = time.Now()
		}
	}
}

// Stop ends what Start began, writes the sum of anonymous calls, and signs the last entry.
func (l *Log) Stop() {
	if l.stop == nil {
		return
	}
	l.stop()
	l.stop = nil
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	l.sumUp(ctx, true)
	l.sign(ctx)
}

// Keep adds an entry.
func (l *Log) Keep(ctx context.Context, e auditchain.Entry) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	stored, before, err := l.cfg.Store.AppendAudit(ctx, e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		// It may have been stored nevertheless.
		l.last = auditchain.Entry{}
		return err
	}
	l.compare(before)
	l.last = stored
	return nil
}

func (l *Log) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) give() { <-l.turn }

// compare holds the end of the log against what this process wrote last. Any change of an
// earlier entry, with the chain made again, shows at the end. The caller holds mu and turn.
func (l *Log) compare(end auditchain.Entry) {
	text := ""
	switch {
	case l.last.ID == 0 || end.ID == l.last.ID && end.Hash == l.last.Hash:
		return
	case end.ID < l.last.ID:
		text = fmt.Sprintf("entries after entry %d were removed: this orchestrator wrote entries up to %d", end.ID, l.last.ID)
	case end.ID == l.last.ID:
		text = fmt.Sprintf("entry %d, or one before it, was changed and the chain made again: this orchestrator wrote it with another hash", end.ID)
	default:
		text = fmt.Sprintf("another program than this orchestrator wrote entries after entry %d", l.last.ID)
	}
	if l.broken == "" {
		l.broken = text
		l.check.Problem = text
		l.cfg.Logger.Error("the audit log is not intact", "problem", text)
	}
}

// KeepAnonymous adds an entry of a caller who has not logged in, or counts it where there
// are enough of these in this hour.
func (l *Log) KeepAnonymous(ctx context.Context, e auditchain.Entry) error {
	l.sumUp(ctx, false)
	l.mu.Lock()
	ok := l.bounds.allow(l.cfg.Now(), e.Address)
	if !ok {
		l.bounds.count(l.cfg.Now(), e.Action, e.Address)
	}
	l.mu.Unlock()
	if !ok {
		return nil
	}
	return l.Keep(ctx, e)
}

// Count adds a refused call to the sum, without an entry of its own.
func (l *Log) Count(ctx context.Context, action, address string) {
	l.sumUp(ctx, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds.count(l.cfg.Now(), action, address)
}

// sumUp writes the sum of an hour that is over, or in any case.
func (l *Log) sumUp(ctx context.Context, anyway bool) {
	now := l.cfg.Now()
	l.mu.Lock()
	var s sum
	var ok bool
	if anyway {
		s, ok = l.bounds.take()
	} else {
		s, ok = l.bounds.over(now)
	}
	l.mu.Unlock()
	if !ok {
		return
	}
	e := s.entry(now)
	if err := l.Keep(ctx, e); err != nil {
		l.cfg.Logger.Error("the sum of anonymous calls could not be written to the audit log", "sum", e.Message, "error", err)
	}
}

// sign signs the last entry, where it is not signed yet.
func (l *Log) sign(ctx context.Context) {
	if l.cfg.Signer == nil {
		return
	}
	if err := l.signLast(ctx); err != nil && ctx.Err() == nil {
		l.cfg.Logger.Error("the head of the audit log could not be signed", "error", err)
	}
}

func (l *Log) signLast(ctx context.Context) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	row, err := l.cfg.Store.LastAudit(ctx)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	end := auditchain.Entry{ID: row.ID}
	copy(end.Hash[:], row.Hash)
	l.mu.Lock()
	l.compare(end)
	l.last = end
	known := l.signed.Entry == end.ID && l.signed.Hash == end.Hash
	l.mu.Unlock()
	if end.ID == 0 || known {
		return nil
	}
	h := auditchain.Head{Entry: end.ID, Hash: end.Hash, Signed: l.cfg.Now().UTC().Truncate(time.Microsecond)}
	h.Signature = l.cfg.Signer.SignAuditHead(h.Message())
	if err := l.cfg.Store.AddAuditHead(ctx, h); err != nil {
		return err
	}
	l.mu.Lock()
	l.signed = h
	// The file keeps the last head of a log that was whole.
	file := l.cfg.DataDir != "" && !l.check.At.IsZero() && l.check.Problem == ""
	if file {
		l.filed = h
	}
	l.mu.Unlock()
	if !file {
		return nil
	}
	b, err := auditchain.FormatHead(h)
	if err != nil {
		return err
	}
	return atomicfile.Write(l.headFile(), b, os.FileMode(0o600))
}

// Check goes through the whole log. Where the store does not answer, the check before
// stays.
func (l *Log) Check(ctx context.Context) Checked {
	l.mu.Lock()
	last, filed := l.last, l.filed
	l.mu.Unlock()
	found := Checked{At: l.cfg.Now()}
	c := auditchain.NewCheck(l.keys())
	err := l.checkWith(ctx, c, last, filed)
	found.Entries = c.Entries
	var p *auditchain.Problem
	if errors.As(err, &p) {
		found.Problem, err = p.Text, nil
	}
	if err != nil {
		if ctx.Err() == nil {
			l.cfg.Logger.Error("the audit log could not be checked", "error", err)
		}
		return l.LastCheck()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if found.Problem == "" {
		found.Problem = l.broken
	}
	if found.Problem != "" && found.Problem != l.check.Problem {
		l.cfg.Logger.Error("the audit log is not intact", "problem", found.Problem)
	}
	l.check = found
	return found
}

func (l *Log) keys() signature.Keys {
	if l.cfg.Signer == nil {
		return nil
	}
	return auditchain.Trusting(nil, l.cfg.Signer.Keys())
}

func (l *Log) checkWith(ctx context.Context, c *auditchain.Check, last auditchain.Entry, filed auditchain.Head) error {
	if filed.Entry > 0 {
		if err := c.Head(filed); err != nil {
			return err
		}
	}
	if last.ID > 0 {
		if err := c.Expect(last.ID, last.Hash, "was written by this orchestrator"); err != nil {
			return err
		}
	}
	return l.cfg.Store.CheckAudit(ctx, c)
}

// LastCheck is what the last check found.
func (l *Log) LastCheck() Checked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.check
}

// Export returns a page of the log, oldest first. Its last page has a head of the last
// entry.
func (l *Log) Export(ctx context.Context, after int64, most int) (*store.AuditPage, error) {
	l.sign(ctx)
	l.mu.Lock()
	filed := l.filed
	l.mu.Unlock()
	page, err := l.cfg.Store.AuditPageAfter(ctx, after, most)
	if err != nil {
		return nil, err
	}
	// That of the data folder may be of an entry that is not there any more.
	here := !page.More || filed.Entry <= page.Entries[len(page.Entries)-1].ID
	if filed.Entry > after && here && !slices.ContainsFunc(page.Heads, func(h auditchain.Head) bool { return h.Entry == filed.Entry && h.Hash == filed.Hash }) {
		page.Heads = append(page.Heads, filed)
		slices.SortStableFunc(page.Heads, func(a, b auditchain.Head) int { return cmp.Compare(a.Entry, b.Entry) })
	}
	return page, nil
}
