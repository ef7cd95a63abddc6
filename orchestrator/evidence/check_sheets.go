package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"linktrial/executor/runsheet"
	"linktrial/internal/signature"
)

// decodeSheetSignature reads sheet.signature.json.
func decodeSheetSignature(text []byte) (signature.Signature, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var s SheetSignature
	if err := dec.Decode(&s); err != nil {
		return signature.Signature{}, fmt.Errorf("it is no signature of a run sheet: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return signature.Signature{}, errors.New("something follows the signature")
	}
	return signature.Signature{KeyID: s.KeyID, Bytes: s.Signature}, nil
}

// checkSheets checks the run sheets' hashes and signatures.
func (c *checker) checkSheets() error {
	for i := range c.bag.Index.Runs {
		r := &c.bag.Index.Runs[i]
		if err := c.doing(SheetFile(r.ID)); err != nil {
			return err
		}
		if text, ok := c.get(SheetFile(r.ID), maxSheet); ok {
			c.checkSheet(r, text)
		}
	}
	return nil
}

func (c *checker) checkSheet(r *Run, text []byte) {
	x, name := c.check(CheckSheets), SheetFile(r.ID)
	x.Objects++
	if hash := runsheet.Hash(text); hash != r.SheetHash {
		x.find(name, "its hash is %s, the index has %s for run %s", hash, r.SheetHash, r.ID)
	}
	if _, err := runsheet.Decode(text); err != nil {
		// A sheet of an earlier Linktrial can be as it was signed and not be read any more.
		x.note("%s: this program does not run it: %s", name, err)
	}
	at := SheetSignatureFile(r.ID)
	if !c.bag.Has(at) {
		if r.SheetKey == "" {
			x.skip("the sheet of run %s is not signed", r.ID)
		} // else the check of contents has the finding
		return
	}
	signed, ok := c.get(at, maxInfo)
	if !ok {
		return
	}
	s, err := decodeSheetSignature(signed)
	switch {
	case err != nil:
		x.find(at, "%s", err)
		return
	case s.KeyID != r.SheetKey:
		x.find(at, "the sheet is signed by key %.64q, by the index %q did", s.KeyID, r.SheetKey)
	}
	if _, ok := c.inBag[s.KeyID]; !ok {
		x.find(at, "it is a foreign signature: by key %.64q, which is none of those in %s (%s)", s.KeyID, SigningKeys, orNone(c.inBag.IDs()))
		return
	}
	if err := c.inBag.VerifySheet(r.ID, text, s); err != nil {
		x.find(at, "the signature is wrong: %s", err)
		return
	}
	_, known := c.known[s.KeyID]
	c.verdict.Signed = append(c.verdict.Signed, Signed{What: "sheet of run " + r.ID, By: "orchestrator", Key: s.KeyID, Known: known})
}
