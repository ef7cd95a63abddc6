package signature

import (
	"crypto/ed25519"
	"fmt"
	"slices"
)

// SignAuditHead signs a head of the audit log.
func SignAuditHead(private ed25519.PrivateKey, head []byte) Signature {
	return Signature{KeyID: PublicOf(private).ID(), Bytes: ed25519.Sign(private, slices.Concat([]byte(auditDomain), head))}
}

// VerifyAuditHead returns nil for a head of the audit log that a trusted key has signed.
func (ks Keys) VerifyAuditHead(head []byte, s Signature) error {
	k, ok := ks[s.KeyID]
	if !ok {
		return fmt.Errorf("it is signed by key %.64q, expected one of %s", s.KeyID, ks.IDs())
	}
	if len(s.Bytes) != ed25519.SignatureSize || !ed25519.Verify(k[:], slices.Concat([]byte(auditDomain), head), s.Bytes) {
		return fmt.Errorf("it does not match its signature by key %s", s.KeyID)
	}
	return nil
}
