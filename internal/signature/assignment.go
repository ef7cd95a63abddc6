package signature

import (
	"crypto/ed25519"
	"slices"
)

// assignmentDomain is of assignments.
const assignmentDomain = "linktrial assignment v1\x00"

func assignmentMessage(encoded []byte) []byte {
	return slices.Concat([]byte(assignmentDomain), encoded)
}

// SignAssignment signs an encoded assignment, exactly as it will be sent.
func SignAssignment(private ed25519.PrivateKey, encoded []byte) Signature {
	return Signature{KeyID: PublicOf(private).ID(), Bytes: ed25519.Sign(private, assignmentMessage(encoded))}
}

// VerifyAssignment returns nil for an encoded assignment that a trusted key has
// signed, else an error that says why it is not trusted.
func (ks Keys) VerifyAssignment(encoded []byte, s Signature) error {
	return ks.verify("assignment", "it was changed on its way", assignmentMessage(encoded), s)
}
