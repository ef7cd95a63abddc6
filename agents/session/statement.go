package session

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/sshsig"
)

// Sign has [Delivery.Run] sign the journal when it has ended and all of it is stored, with
// the key of the node's certificate; a node without one signs nothing. sheetHash is of the
// run's sheet.
func (d *Delivery) Sign(sheetHash string) { d.sheetHash = sheetHash }

// sign delivers the node's statement on the journal until it is answered. False: ctx
// ended, or the orchestrator no longer has all of the journal, which is to be delivered again.
func (d *Delivery) sign(ctx context.Context) bool {
	log := d.s.cfg.Logger.With("run", d.run)
	if d.sheetHash == "" || d.s.cfg.Identity == nil {
		return true
	}
	statement, err := d.statement()
	if errors.Is(err, journal.ErrNotEnded) {
		return true
	} else if err != nil {
		log.Error("the journal cannot be signed", "error", err)
		return true
	}
	retry, failing := newBackoff(), false
	for ctx.Err() == nil {
		stored, err := d.deliverStatement(ctx, statement)
		switch {
		case err == nil && d.committed.Load() < d.j.Last():
			return false
		case err == nil && stored:
			return true
		case err == nil:
			log.Warn("the orchestrator did not take the node's statement on the journal: its log has the reason, or it is of an earlier version")
			return true
		case errors.Is(err, errWindowFull):
			d.s.gate.AwaitClosed(ctx, d.full.Load())
			continue
		case d.s.gate.Suspended() || ctx.Err() != nil:
			continue
		}
		if !failing {
			log.Warn("the node's statement on the journal could not be delivered", "error", err)
		}
		failing = true
		switch connect.CodeOf(err) {
		case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeNotFound, connect.CodeUnimplemented:
			return true // the journal is stored, and no further try changes the answer
		case connect.CodeUnauthenticated, connect.CodePermissionDenied:
			backoff.Sleep(ctx, refusedWait)
		default:
			retry.Wait(ctx)
		}
	}
	return false
}

// statement is what is signed, encoded.
func (d *Delivery) statement() ([]byte, error) {
	s, err := d.j.Statement(d.sheetHash, d.s.cfg.Clock.Now())
	if err != nil {
		return nil, err
	}
	return s.Encode()
}

// deliverStatement signs a statement and delivers it in one call: the orchestrator verifies
// it with the certificate of the connection.
func (d *Delivery) deliverStatement(ctx context.Context, statement []byte) (stored bool, err error) {
	err = d.s.do(ctx, deliverLimit, func(ctx context.Context) error {
		d.s.renewing.RLock() // until the call has ended, new connections show the key that signs
		defer d.s.renewing.RUnlock()
		signature, err := d.s.cfg.Identity.Sign(sshsig.Journal, statement)
		if err != nil {
			return err
		}
		bytes := len(statement) + len(signature)
		if left, window := d.s.gate.Left(); window != 0 {
			if size, fits := d.pace.next(left); !fits || size < bytes {
				d.full.Store(window)
				return errWindowFull
			}
		}
		client := d.s.client
		if d.inBand {
			client = d.s.compressing
		}
		began := time.Now()
		resp, err := client.Deliver(ctx, connect.NewRequest(&linktrialv1.DeliverRequest{Name: d.s.cfg.Name, RunId: d.run, Incarnation: d.s.cfg.Incarnation, Statement: statement, StatementSignature: signature}))
		if err != nil {
			if ctx.Err() != nil {
				d.pace.cut(bytes)
			}
			return err
		}
		d.pace.stored(bytes, time.Since(began))
		stored = resp.Msg.StatementStored
		d.committed.Store(min(resp.Msg.CommittedSeq, d.j.Last()))
		return nil
	})
	return stored, err
}
