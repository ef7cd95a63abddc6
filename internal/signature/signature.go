// Package signature signs run sheets, assignments, the keys that sign them, backups, heads of
// the audit log and what labs vouch for with Ed25519 (RFC 8032), and writes keys and
// signatures as lines of text. Comes in: bytes and text. Goes out: signatures, sets of trusted keys, one clear error. Pure;
// imports the standard library alone.
package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// What is signed begins with one of these, so that no signature of one kind
// is valid as the other.
const (
	sheetDomain = "linktrial run sheet v1\x00"
	keyDomain   = "linktrial signing key v1\x00"
	// backupDomain is of backups' manifests.
	backupDomain = "linktrial backup v1\x00"
	// auditDomain is of heads of the audit log.
	auditDomain = "linktrial audit head v1\x00"
)

// PublicKey is an Ed25519 public key.
type PublicKey [ed25519.PublicKeySize]byte

// NewPublicKey takes 32 bytes.
func NewPublicKey(b []byte) (PublicKey, error) {
	var k PublicKey
	if len(b) != len(k) {
		return k, fmt.Errorf("a public key of %d bytes, expected %d", len(b), len(k))
	}
	copy(k[:], b)
	return k, nil
}

// PublicOf is the public key of a private one.
func PublicOf(private ed25519.PrivateKey) PublicKey {
	var k PublicKey
	copy(k[:], private[len(private)-ed25519.PublicKeySize:])
	return k
}

// ID names the key: the first 16 hexadecimal digits of its SHA-256.
func (k PublicKey) ID() string {
	sum := sha256.Sum256(k[:])
	return hex.EncodeToString(sum[:8])
}

// Signature is a detached signature and the identity of the key that made it.
type Signature struct {
	KeyID string
	Bytes []byte // 64
}

// IsZero reports whether there is no signature at all.
func (s Signature) IsZero() bool { return s.KeyID == "" && len(s.Bytes) == 0 }

// sheetMessage is the signed text. It binds a sheet to its run: the signature is not
// valid for another run.
func sheetMessage(run string, sheet []byte) []byte {
	return slices.Concat([]byte(sheetDomain), []byte(run), []byte{0}, sheet)
}

// SignSheet signs an encoded run sheet, exactly as it will be sent, for one run.
func SignSheet(private ed25519.PrivateKey, run string, sheet []byte) Signature {
	return Signature{KeyID: PublicOf(private).ID(), Bytes: ed25519.Sign(private, sheetMessage(run, sheet))}
}

// Endorsed is a key with a signature over it by the key before it. Of a first key
// By and Endorsement are empty: it must be trusted for another reason.
type Endorsed struct {
	Key         PublicKey
	By          string // identity of the endorsing key
	Endorsement []byte // its signature
}

// Endorse signs a key with another key.
func Endorse(private ed25519.PrivateKey, k PublicKey) Endorsed {
	return Endorsed{Key: k, By: PublicOf(private).ID(), Endorsement: ed25519.Sign(private, slices.Concat([]byte(keyDomain), k[:]))}
}

// Keys are trusted public keys by their identity.
type Keys map[string]PublicKey

// NewKeys makes a set.
func NewKeys(list ...PublicKey) Keys {
	ks := Keys{}
	for _, k := range list {
		ks[k.ID()] = k
	}
	return ks
}

// IDs are the identities of the keys, in order, for people.
func (ks Keys) IDs() string {
	ids := make([]string, 0, len(ks))
	for id := range ks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}

// Extend adds the keys that one of the set endorses, and those these endorse,
// and returns the endorsements that it used. It ignores all others: they prove
// nothing.
func (ks Keys) Extend(list []Endorsed) []Endorsed {
	var taken []Endorsed
	for again := true; again; {
		again = false
		for _, e := range list {
			if _, known := ks[e.Key.ID()]; known {
				continue
			}
			by, ok := ks[e.By]
			if !ok || !ed25519.Verify(by[:], slices.Concat([]byte(keyDomain), e.Key[:]), e.Endorsement) {
				continue
			}
			ks[e.Key.ID()] = e.Key
			taken = append(taken, e)
			again = true
		}
	}
	return taken
}

// VerifySheet returns nil for a sheet that a trusted key has signed for this run,
// else an error that says why the sheet is not trusted.
func (ks Keys) VerifySheet(run string, sheet []byte, s Signature) error {
	return ks.verify("run sheet", "it was changed on its way, or signed for another run", sheetMessage(run, sheet), s)
}

// verify checks the signature of a message. what names it in errors, and otherwise is
// what has happened where the signature is another message's.
func (ks Keys) verify(what, otherwise string, message []byte, s Signature) error {
	if s.IsZero() {
		return fmt.Errorf("the %s is not signed", what)
	}
	k, ok := ks[s.KeyID]
	if !ok {
		return fmt.Errorf("the %s is signed by key %.64q, which this node does not trust (it trusts %s)", what, s.KeyID, ks.IDs())
	}
	if len(s.Bytes) != ed25519.SignatureSize {
		return fmt.Errorf("the %s has a signature of %d bytes, expected %d", what, len(s.Bytes), ed25519.SignatureSize)
	}
	if !ed25519.Verify(k[:], message, s.Bytes) {
		return fmt.Errorf("the %s does not match its signature by key %s: %s", what, s.KeyID, otherwise)
	}
	return nil
}

var encoding = base64.StdEncoding.Strict()

const keyPrefix = "ed25519:"

// String is the key as files have it.
func (k PublicKey) String() string { return keyPrefix + encoding.EncodeToString(k[:]) }

// ParsePublicKey reads what [PublicKey.String] wrote.
func ParsePublicKey(text string) (PublicKey, error) {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	if !ok {
		return PublicKey{}, fmt.Errorf("%.80q, expected a public key such as ed25519:AAAA…=", text)
	}
	b, err := encoding.DecodeString(rest)
	if err != nil {
		return PublicKey{}, fmt.Errorf("public key %.80q is not base64: %w", text, err)
	}
	return NewPublicKey(b)
}

// String is the signature as one line of text, without its end.
func (s Signature) String() string { return s.KeyID + " " + encoding.EncodeToString(s.Bytes) }

// ParseSignature reads what [Signature.String] wrote, with or without the
// line's end.
func ParseSignature(text string) (Signature, error) {
	id, rest, ok := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	if !ok || !isID(id) {
		return Signature{}, fmt.Errorf("%.80q, expected a key's identity and a signature", text)
	}
	b, err := encoding.DecodeString(rest)
	if err != nil || len(b) != ed25519.SignatureSize || strings.ContainsAny(rest, "\r\n") {
		return Signature{}, fmt.Errorf("signature %.80q, expected %d bytes in base64", rest, ed25519.SignatureSize)
	}
	return Signature{KeyID: id, Bytes: b}, nil
}

func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 8 && strings.ToLower(s) == s
}
