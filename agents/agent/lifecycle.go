package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
)

// run executes the run and delivers its journal. ctx is the agent's, ectx the
// execution's. When the disk fails meanwhile, it goes on, as after a start of the
// agent, when the disk works again.
func (r *run) run(ctx, ectx context.Context) error {
	defer func() {
		select {
		case <-r.ended:
		default:
			close(r.ended)
		}
	}()
	for {
		err := r.once(ctx, ectx)
		if ctx.Err() != nil || !r.outlastsDisk() || !diskFailed(err) {
			return err
		}
		if err := r.awaitDisk(ctx, err); err != nil {
			return err
		}
	}
}

// once is [run.run] until the disk fails.
func (r *run) once(ctx, ectx context.Context) (err error) {
	encoded, sheet, refused := r.readSheet()
	if diskFailed(refused) && r.outlastsDisk() {
		return refused
	}
	j, err := r.openJournal()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := j.Close(); cerr != nil && !errors.Is(cerr, journal.ErrDiskFull) {
			err = errors.Join(err, cerr)
		}
	}()
	dctx, drop := context.WithCancel(ctx) // of the delivery
	defer drop()
	delivered := make(chan bool, 1)
	if r.node.session != nil {
		r.delivery = r.node.session.NewDelivery(r.id, j, refused == nil && sheet.Control == runsheet.ControlInBand)
		r.delivery.Sign(r.hash)
		go func() { delivered <- r.delivery.Run(dctx, r.ended) }()
	} else {
		delivered <- false
	}
	over, err := ended(j)
	if err == nil && !over { // else only its delivery is left
		if err = refused; err == nil {
			x := &execution{run: r, encoded: encoded, sheet: sheet, journal: j}
			err = r.whileDiskWorks(ectx, j, x.execute)
		}
	}
	if r.outlastsDisk() && diskFailed(err) {
		drop()
		<-delivered
		return err
	}
	if err == nil || ctx.Err() == nil {
		err = r.closeJournal(j, err)
	}
	close(r.ended)
	if <-delivered && ctx.Err() == nil {
		stored, known := r.node.orchestratorTime() // before mu: it takes the node's
		if !known {
			stored = r.node.cfg.Clock.Now().UTC()
		}
		r.mu.Lock()
		r.note.Stored = stored
		werr := r.note.write(r.dir)
		r.mu.Unlock()
		err = errors.Join(err, werr)
	}
	return err
}

// readSheet reads the run's sheet from the state folder, or reports why it must not
// be executed; the journal tells the orchestrator then.
func (r *run) readSheet() ([]byte, *runsheet.Sheet, error) {
	path := filepath.Join(r.dir, sheetFile)
	encoded, err := inputfile.Read(path, maxSheet)
	if err != nil {
		return nil, nil, fmt.Errorf("the run sheet is damaged or missing: %w; start the run anew", err)
	}
	sheet, err := r.checkSheet(encoded)
	if err != nil && runsheet.Hash(encoded) != r.hash {
		err = fmt.Errorf("the run sheet %s is damaged: its hash is %.12s…, the assignment says %.12s…; start the run anew (%w)", path, runsheet.Hash(encoded), r.hash, err)
	}
	return encoded, sheet, err
}

// checkSheet decodes a run's sheet from the state folder, or reports why it must
// not be executed. Nothing of an untrusted sheet is decoded. With an orchestrator the
// run's assignment is verified first.
func (r *run) checkSheet(sheet []byte) (*runsheet.Sheet, error) {
	if r.node.session != nil {
		if err := r.checkAssignment(); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	sig := signature.Signature{KeyID: r.note.KeyID, Bytes: r.note.Signature}
	r.mu.Unlock()
	if err := r.node.trust.CheckSheet(r.id, sheet, sig); err != nil {
		return nil, err
	}
	if h := runsheet.Hash(sheet); h != r.hash {
		return nil, fmt.Errorf("refused: the run sheet's hash is %s, the assignment says %s", h, r.hash)
	}
	decoded, err := runsheet.Decode(sheet)
	if err != nil {
		return nil, fmt.Errorf("refused: %w", err)
	}
	return decoded, nil
}

// checkAssignment verifies the run's assignment in the state folder, and keeps it for
// the run. Its expiry and challenge counted when it was accepted: a run that was
// interrupted goes on however long that took.
func (r *run) checkAssignment() error {
	r.mu.Lock()
	n := r.note
	r.mu.Unlock()
	as, err := r.node.decodeAssignment(n.Assignment, signature.Signature{KeyID: n.AssignmentKeyID, Bytes: n.AssignmentSignature})
	if err != nil && len(n.Assignment) == 0 {
		return fmt.Errorf("%w; the run was assigned by a version that did not sign assignments: start the plan again", err)
	}
	if err != nil {
		return err
	}
	if as.RunId != r.id || as.SheetHash != r.hash {
		return fmt.Errorf("refused: the assignment is of run %.140q with the sheet %.12s…, and the node's folder has run %s with the sheet %.12s…", as.RunId, as.SheetHash, r.id, r.hash)
	}
	r.assignment = as
	return nil
}
