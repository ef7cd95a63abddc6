package agent

import (
	"errors"
	"fmt"
	"io/fs"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
)

// SignaturePath is where [RunSheet] looks for the signature of a run sheet.
func SignaturePath(sheetPath string) string { return sheetPath + ".sig" }

// readSignature reads the signature beside a sheet. Where there is none, the
// sheet is not signed, and will be refused as such.
func readSignature(sheetPath string) (signature.Signature, error) {
	b, err := inputfile.Read(SignaturePath(sheetPath), signature.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return signature.Signature{}, nil
	}
	if err != nil {
		return signature.Signature{}, fmt.Errorf("signature of the run sheet: %w", err)
	}
	s, err := signature.ParseSignature(string(b))
	if err != nil {
		return s, fmt.Errorf("%s: %w", SignaturePath(sheetPath), err)
	}
	return s, nil
}

// learnKeys takes over the signing keys that the orchestrator shows.
func (a *agent) learnKeys(shown []*linktrialv1.SigningKey) {
	var list []signature.Endorsed
	for _, s := range shown {
		k, err := signature.NewPublicKey(s.PublicKey)
		if err != nil {
			a.cfg.Logger.Warn("the orchestrator shows an invalid signing key", "error", err)
			continue
		}
		list = append(list, signature.Endorsed{Key: k, By: s.EndorsedBy, Endorsement: s.Endorsement})
	}
	if err := a.trust.Learn(list); err != nil {
		// It is shown again; until then the sheets signed with it are refused.
		a.cfg.Logger.Error("signing key could not be stored", "error", err)
	}
}

// checkSheet decodes a run's sheet from the state folder, or reports why it must
// not be executed. Nothing of an untrusted sheet is decoded. With an orchestrator the
// run's assignment is verified first.
func (r *run) checkSheet(sheet []byte) (*runsheet.Sheet, error) {
	if r.a.session != nil {
		if err := r.checkAssignment(); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	sig := signature.Signature{KeyID: r.note.KeyID, Bytes: r.note.Signature}
	r.mu.Unlock()
	if err := r.a.trust.CheckSheet(r.id, sheet, sig); err != nil {
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

// ended reports whether this node's part in the run is over.
func ended(j *journal.File) (over bool, err error) {
	err = j.Records(func(r journal.Record) error {
		over = over || r.Type == journal.TypeRunEnded
		return nil
	})
	return over, err
}
