package agent

import (
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
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
func (n *node) learnKeys(shown []*linktrialv1.SigningKey) {
	var list []signature.Endorsed
	for _, s := range shown {
		k, err := signature.NewPublicKey(s.PublicKey)
		if err != nil {
			n.cfg.Logger.Warn("the orchestrator shows an invalid signing key", "error", err)
			continue
		}
		list = append(list, signature.Endorsed{Key: k, By: s.EndorsedBy, Endorsement: s.Endorsement})
	}
	if err := n.trust.Learn(list); err != nil {
		// It is shown again; until then the sheets signed with it are refused.
		n.cfg.Logger.Error("signing key could not be stored", "error", err)
	}
}

// decodeAssignment decodes an assignment that a trusted key has signed for this node,
// or reports why nothing of it must be used. Nothing of an untrusted one is decoded.
func (n *node) decodeAssignment(encoded []byte, sig signature.Signature) (*linktrialv1.Assignment, error) {
	if err := n.trust.CheckAssignment(encoded, sig); err != nil {
		return nil, err
	}
	as := new(linktrialv1.Assignment)
	if err := proto.Unmarshal(encoded, as); err != nil {
		return nil, fmt.Errorf("refused: the assignment cannot be decoded: %w", err)
	}
	if as.Node != n.cfg.Name {
		return nil, fmt.Errorf("refused: the assignment is for node %.100q, and this is node %q; nothing was started", as.Node, n.cfg.Name)
	}
	if as.RunId != "" && as.Role != string(n.cfg.Role) {
		return nil, fmt.Errorf("refused: the assignment of run %.140q is for a %.40s, and this node is a %s; nothing was started", as.RunId, as.Role, n.cfg.Role)
	}
	return as, nil
}
