package bundle

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"aead.dev/minisign"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/hkdf"
)

// Names of files of the bundle's repository of packages.
const (
	releaseFile = "InRelease"
	archiveFile = "archive-key.gpg" // the key that signs it, as apt's signed-by takes it
)

// archiveTime is of the repository's key and its signatures: before every clock that a node
// may have, since gpgv refuses what is of the future.
var archiveTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// signArchive signs the list of packages in a folder, for apt. apt knows OpenPGP alone, so the
// signing key has another one derived from it. Where there is none, the key follows from
// the list itself: whoever changes the list could make it, too, and what vouches for the list
// is the bundle's checksums.
func signArchive(dir string, key *Key, suite, architecture string, modified time.Time) error {
	list, err := os.ReadFile(filepath.Join(dir, "Packages"))
	if err != nil {
		return fmt.Errorf("packages: %w", err)
	}
	secret := list
	if key != nil {
		// The same bytes each time (RFC 8032), which only the key can make.
		secret = minisign.SignWithComments(key.private, []byte("linktrial install bundle: secret of the key of its packages"), "", "")
	}
	signer, config, err := archiveKey(secret)
	if err != nil {
		return fmt.Errorf("packages: key: %w", err)
	}
	var ring bytes.Buffer
	if err := signer.Serialize(&ring); err != nil {
		return fmt.Errorf("packages: key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, archiveFile), ring.Bytes(), 0o644); err != nil {
		return fmt.Errorf("packages: %w", err)
	}
	var signed bytes.Buffer
	w, err := clearsign.Encode(&signed, signer.PrivateKey, config)
	if err != nil {
		return fmt.Errorf("packages: signature: %w", err)
	}
	if _, err := fmt.Fprintf(w, "Origin: Linktrial\nLabel: Linktrial install bundle\nSuite: %s\nArchitectures: %s all\nDate: %s\nSHA256:\n %x %d Packages\n",
		suite, architecture, modified.UTC().Format("Mon, 02 Jan 2006 15:04:05 UTC"), sha256.Sum256(list), len(list)); err != nil {
		return fmt.Errorf("packages: signature: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("packages: signature: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, releaseFile), append(signed.Bytes(), '\n'), 0o644); err != nil {
		return fmt.Errorf("packages: %w", err)
	}
	return nil
}

// archiveKey derives the key of the packages.
func archiveKey(secret []byte) (*openpgp.Entity, *packet.Config, error) {
	never := false
	config := &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, Curve: packet.Curve25519, DefaultHash: crypto.SHA512, Time: func() time.Time { return archiveTime },
		Rand: hkdf.New(sha256.New, secret, nil, []byte("linktrial archive key v1")), NonDeterministicSignaturesViaNotation: &never,
	}
	e, err := openpgp.NewEntity("Linktrial install bundle", "", "", config)
	if err != nil {
		return nil, nil, err
	}
	e.Subkeys = nil // nothing is encrypted for it
	return e, config, nil
}
