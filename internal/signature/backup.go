package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fingerprint is the SHA-256 of the key in hexadecimal, for people to compare.
func (k PublicKey) Fingerprint() string {
	sum := sha256.Sum256(k[:])
	return hex.EncodeToString(sum[:])
}

// SignBackup signs a backup's manifest. The text that it returns has the public key.
func SignBackup(private ed25519.PrivateKey, manifest []byte) string {
	return PublicOf(private).String() + " " + encoding.EncodeToString(ed25519.Sign(private, slices.Concat([]byte(backupDomain), manifest))) + "\n"
}

// VerifyBackup returns the key that signed a backup's manifest, whoever's it is.
func VerifyBackup(manifest []byte, signed string) (PublicKey, error) {
	public, rest, ok := strings.Cut(strings.TrimSuffix(signed, "\n"), " ")
	if !ok {
		return PublicKey{}, errors.New("the signature is not a public key and a signature in one line")
	}
	k, err := ParsePublicKey(public)
	if err != nil {
		return PublicKey{}, fmt.Errorf("the signature: %w", err)
	}
	b, err := encoding.DecodeString(rest)
	if err != nil || len(b) != ed25519.SignatureSize || !ed25519.Verify(k[:], slices.Concat([]byte(backupDomain), manifest), b) {
		return PublicKey{}, fmt.Errorf("the manifest does not match its signature by key %s: the backup was changed after it was made", k.ID())
	}
	return k, nil
}
