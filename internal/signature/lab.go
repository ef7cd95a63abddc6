package signature

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// labDomain is of what labs vouch for.
const labDomain = "linktrial lab v1\x00"

// LabKind is what a lab vouches for.
type LabKind string

// Kinds of statements of labs.
const (
	LabNode    LabKind = "node"    // that a start of a node's agent is in the lab
	LabRun     LabKind = "run"     // that a node is in it as a run begins
	LabVirtual LabKind = "virtual" // that a node is a guest of the virtual-time lab
)

// LabStatement is what a lab vouches for: the radio of a node is one that it emulates.
type LabStatement struct {
	Kind LabKind `json:"kind"`
	// Subject and Detail are a node and the incarnation of its agent, or a run and the hash
	// of its sheet: a signature is of no use elsewhere or later.
	Subject string `json:"subject"`
	Detail  string `json:"detail"`
	Role    string `json:"role"`
	Address string `json:"address"` // of the node on the radio network
}

// LabProof is a lab's signature over a [LabStatement].
type LabProof struct {
	Key       string `json:"key"` // the lab's public key: "ed25519:BASE64"
	Signature []byte `json:"signature"`
}

// IsZero reports whether there is no proof at all.
func (p LabProof) IsZero() bool { return p.Key == "" && len(p.Signature) == 0 }

func (s LabStatement) message() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings alone
	}
	return slices.Concat([]byte(labDomain), b)
}

// SignLab vouches for a node with the key of its lab.
func SignLab(private ed25519.PrivateKey, s LabStatement) LabProof {
	return LabProof{Key: PublicOf(private).String(), Signature: ed25519.Sign(private, s.message())}
}

// VerifyLab returns the key of the lab that vouches for s, whichever it is.
func VerifyLab(s LabStatement, p LabProof) (PublicKey, error) {
	if p.IsZero() {
		return PublicKey{}, errors.New("no lab vouches for it")
	}
	k, err := ParsePublicKey(p.Key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("the key of its lab: %w", err)
	}
	if len(p.Signature) != ed25519.SignatureSize || !ed25519.Verify(k[:], s.message(), p.Signature) {
		return PublicKey{}, fmt.Errorf("the signature of lab %s is not over this %s", k.ID(), s.Kind)
	}
	return k, nil
}
