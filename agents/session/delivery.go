package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/notify"
)

// Delivery hands one run's journal over, at least once and in order.
type Delivery struct {
	s         *Session
	run       string
	j         *journal.File
	inBand    bool
	committed atomic.Int64
	known     atomic.Bool
	answered  notify.Notifier // the orchestrator has reported how far it has stored the journal
	pace      pace            // of Run alone
	// cut: whether the last batch is stored is not known. Of Run alone.
	cut bool
	// full is the number of the window whose rest is too short for more of the journal.
	full atomic.Int64
	// sheetHash is of the run's sheet; empty: the journal is not to be signed.
	sheetHash string
}

// NewDelivery prepares to deliver a journal. With in-band control it delivers
// only what is durable anyway; otherwise it makes records durable about once
// a second, so that a run can be watched.
func (s *Session) NewDelivery(run string, j *journal.File, inBand bool) *Delivery {
	d := &Delivery{s: s, run: run, j: j, inBand: inBand, pace: pace{size: batchBytes, most: batchBytes}}
	if inBand {
		d.pace.size = firstBatch
	}
	return d
}

// Committed is the sequence number up to which the orchestrator has stored the journal.
func (d *Delivery) Committed() int64 { return d.committed.Load() }

// CaughtUp reports whether all durable records are stored.
func (d *Delivery) CaughtUp() bool { return d.known.Load() && d.committed.Load() >= d.j.Durable() }

// Settled reports whether the open window has no more to wait for: all durable records
// are stored, or its rest is too short for those that are left, which later windows
// deliver.
func (d *Delivery) Settled() bool {
	window := d.s.gate.OpenWindow()
	return d.CaughtUp() || window != 0 && d.full.Load() == window
}

// Await waits until all durable records are stored; false: ctx ended first.
func (d *Delivery) Await(ctx context.Context) bool {
	for {
		answered := d.answered.Changed()
		if d.CaughtUp() {
			return true
		}
		select {
		case <-answered:
		case <-ctx.Done():
			return false
		}
	}
}

// Run delivers until everything is stored after ended was closed, and the node's statement
// is answered where it is to sign ([Delivery.Sign]), and returns true then, or until ctx ends.
func (d *Delivery) Run(ctx context.Context, ended <-chan struct{}) bool {
	retry := newBackoff()
	synced := time.Now()
	failing := false
	for ctx.Err() == nil {
		changed := d.j.Changed()
		over := false
		select {
		case <-ended:
			over = true
		default:
		}
		if d.j.Last() > d.j.Durable() && !d.inBand && time.Since(synced) >= syncEvery {
			if err := d.j.Sync(); err != nil {
				// The executor meets the same error, and acts on it.
				d.s.cfg.Logger.Debug("journal could not be synced for delivery", "run", d.run, "error", err)
			}
			synced = time.Now()
		}
		next := d.committed.Load() + 1
		if d.known.Load() && next > d.j.Durable() || d.j.Durable() == 0 {
			if over && d.committed.Load() >= d.j.Last() {
				if d.sign(ctx) {
					return true
				}
				continue
			}
			d.idle(ctx, changed, ended, over)
			continue
		}
		err := d.deliver(ctx, next)
		var unreadable *unreadableError
		switch {
		case errors.As(err, &unreadable):
			d.s.cfg.Logger.Error("journal cannot be read for delivery", "run", d.run, "error", err)
			backoff.Sleep(ctx, refusedWait)
			continue
		case errors.Is(err, errWindowFull):
			d.s.gate.AwaitClosed(ctx, d.full.Load())
			continue
		}
		if err != nil && (d.s.gate.Suspended() || ctx.Err() != nil) {
			continue
		}
		if err != nil {
			if !failing {
				d.s.cfg.Logger.Warn("journal could not be delivered; it is kept and tried again", "run", d.run, "error", err)
			}
			failing = true
			d.report(err)
			switch connect.CodeOf(err) {
			case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeNotFound, connect.CodeDataLoss:
				backoff.Sleep(ctx, refusedWait)
			default:
				retry.Wait(ctx)
			}
			continue
		}
		failing = false
		retry.Reset()
	}
	return false
}

// report tells of a refusal that no further try changes.
func (d *Delivery) report(err error) {
	var ce *connect.Error
	if d.s.cfg.Refused == nil || !errors.As(err, &ce) {
		return
	}
	if c := ce.Code(); c == connect.CodeInvalidArgument || c == connect.CodeFailedPrecondition {
		d.s.cfg.Refused(d.run, errors.New(ce.Message()))
	}
}

// idle waits for something to deliver.
func (d *Delivery) idle(ctx context.Context, changed, ended <-chan struct{}, over bool) {
	if over {
		ended = nil
	}
	var sync <-chan time.Time
	if d.j.Last() > d.j.Durable() && !d.inBand {
		t := time.NewTimer(syncEvery)
		defer t.Stop()
		sync = t.C
	}
	select {
	case <-changed:
	case <-ended:
	case <-sync:
	case <-ctx.Done():
	}
}

// unreadableError: the journal's file could not be read.
type unreadableError struct{ error }

// deliver delivers a batch from record next on, as large as the link carries in the time
// that there is.
func (d *Delivery) deliver(ctx context.Context, next int64) error {
	return d.s.do(ctx, deliverLimit, func(ctx context.Context) error {
		left, window := d.s.gate.Left()
		if window == 0 {
			left = deliverLimit
		}
		size, fits := d.pace.next(left)
		switch {
		case !fits && window != 0:
			d.full.Store(window)
			return errWindowFull
		case !fits: // there is no better time
			size = leastBatch
		}
		var entries []journal.Entry
		var err error
		switch {
		case !d.known.Load(): // the answer to the first record has the record to continue with
			entries, err = d.j.Read(1, 1)
		case !d.cut:
			entries, err = d.j.Read(next, size)
		}
		if err != nil {
			return &unreadableError{err}
		}
		return d.send(ctx, entries)
	})
}

// send delivers a batch. Without records it asks how far the journal is stored, which
// takes less than sending again what may be stored.
func (d *Delivery) send(ctx context.Context, entries []journal.Entry) error {
	r := &linktrialv1.DeliverRequest{Name: d.s.cfg.Name, RunId: d.run, Incarnation: d.s.cfg.Incarnation}
	bytes := 0
	for _, e := range entries {
		r.Records = append(r.Records, &linktrialv1.JournalRecord{Seq: e.Seq, Json: e.JSON})
		bytes += len(e.JSON)
	}
	client := d.s.client
	if d.inBand {
		client = d.s.compressing
	}
	began := time.Now()
	resp, err := client.Deliver(ctx, connect.NewRequest(r))
	if err != nil {
		if ctx.Err() != nil && len(entries) > 0 { // the window or the time has ended
			d.pace.cut(bytes)
			d.cut = true
		}
		return err
	}
	if len(entries) > 0 {
		d.pace.stored(bytes, time.Since(began))
	}
	c := resp.Msg.CommittedSeq
	if c > d.j.Last() || c < 0 {
		// It knows records that this journal does not have: the journal was
		// lost and begun anew under the same run.
		return connect.NewError(connect.CodeFailedPrecondition, errForeign)
	}
	if len(entries) > 0 && c < entries[0].Seq && d.known.Load() && c >= d.committed.Load() {
		return errNoProgress
	}
	d.committed.Store(c)
	d.known.Store(true)
	d.cut = false
	d.answered.Notify()
	return nil
}
