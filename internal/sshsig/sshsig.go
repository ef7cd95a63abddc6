// Package sshsig signs bytes as `ssh-keygen -Y sign` does (OpenSSH, PROTOCOL.sshsig), so
// that people check with `ssh-keygen -Y verify` and without Linktrial. Comes in: bytes, a
// key, the namespace of what is signed. Goes out: an armoured signature, or one clear
// error. Pure.
package sshsig

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Namespaces of what Linktrial signs: a signature of one is not valid as another.
const (
	// Journal is of a node's statement on its journal of a run.
	Journal = "linktrial-journal"
	// Evidence is of a bag of evidence.
	Evidence = "linktrial-evidence"
)

const (
	armour  = "SSH SIGNATURE"
	preface = "SSHSIG"
	version = 1
	hash    = "sha512"
	// MaxBytes bounds an armoured signature; one of Ed25519 has about 300.
	MaxBytes = 16 << 10
)

// signature is the blob within the armour (PROTOCOL.sshsig, section 2).
type signature struct {
	Preface   [6]byte
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// message is what is signed (PROTOCOL.sshsig, section 2).
type message struct {
	Preface   [6]byte
	Namespace string
	Reserved  string
	Hash      string
	Digest    []byte
}

func magic() (out [6]byte) {
	copy(out[:], preface)
	return out
}

func signed(namespace string, content []byte) []byte {
	sum := sha512.Sum512(content)
	return ssh.Marshal(message{Preface: magic(), Namespace: namespace, Hash: hash, Digest: sum[:]})
}

// Sign signs content with an Ed25519 or ECDSA key.
func Sign(key crypto.Signer, namespace string, content []byte) (string, error) {
	s, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	x, err := s.Sign(rand.Reader, signed(namespace, content))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	blob := ssh.Marshal(signature{Preface: magic(), Version: version, PublicKey: s.PublicKey().Marshal(), Namespace: namespace, Hash: hash, Signature: ssh.Marshal(x)})
	return string(pem.EncodeToMemory(&pem.Block{Type: armour, Bytes: blob})), nil
}

// Verify returns the key that signed content in a namespace, whoever's it is. The error says
// why the signature proves nothing.
func Verify(namespace string, content []byte, armoured string) (ssh.PublicKey, error) {
	if len(armoured) > MaxBytes {
		return nil, fmt.Errorf("the signature is longer than %d bytes", MaxBytes)
	}
	block, rest := pem.Decode([]byte(armoured))
	if block == nil || block.Type != armour || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is no SSH signature: expected one between the lines BEGIN and END SSH SIGNATURE")
	}
	var x signature
	if err := ssh.Unmarshal(block.Bytes, &x); err != nil {
		return nil, fmt.Errorf("the signature cannot be read: %w", err)
	}
	switch {
	case x.Preface != magic() || x.Version != version:
		return nil, fmt.Errorf("the signature is of format %q version %d, expected %q version %d", x.Preface[:], x.Version, preface, version)
	case x.Namespace != namespace:
		return nil, fmt.Errorf("the signature is of namespace %.64q, expected %q", x.Namespace, namespace)
	case x.Hash != hash:
		return nil, fmt.Errorf("the signature is over a digest by %.16q, expected %q", x.Hash, hash)
	case x.Reserved != "":
		return nil, errors.New("the signature has a reserved field that is not empty")
	}
	key, err := ssh.ParsePublicKey(x.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("the key of the signature: %w", err)
	}
	var inner ssh.Signature
	if err := ssh.Unmarshal(x.Signature, &inner); err != nil {
		return nil, fmt.Errorf("the signature cannot be read: %w", err)
	}
	if err := key.Verify(signed(namespace, content), &inner); err != nil {
		return nil, errors.New("what is signed is something else: it was changed, or the signature is another file's")
	}
	return key, nil
}

// AllowedSigner is a line of a file of allowed signers, as `ssh-keygen -Y verify -f` takes
// it.
func AllowedSigner(principal, namespace string, key ssh.PublicKey) string {
	return fmt.Sprintf("%s namespaces=%q %s\n", principal, namespace, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
}
