package client

import (
	"crypto/ed25519"
	"fmt"
	"path/filepath"

	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
)

// labKeyPath is where a lab puts its public key: beside the control socket, where the
// agents that it starts find it.
func labKeyPath(socket string) string { return socket + ".pub" }

// NewLabKey makes the key of a lab, for its emulator to vouch for nodes with, and writes
// the public one beside the emulator's control socket.
func NewLabKey(socket string) (ed25519.PrivateKey, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("key of the lab: %w", err)
	}
	public := signature.FormatKeys("the lab with the control socket "+filepath.Base(socket), signature.PublicOf(private))
	if err := atomicfile.Write(labKeyPath(socket), public, 0o644); err != nil {
		return nil, fmt.Errorf("public key of the lab: %w", err)
	}
	return private, nil
}

// LabKey reads the public key of the lab that a control socket belongs to.
func LabKey(socket string) (signature.PublicKey, error) {
	path := labKeyPath(socket)
	b, err := inputfile.Read(path, signature.MaxFile)
	if err != nil {
		return signature.PublicKey{}, fmt.Errorf("public key of the lab: %w", err)
	}
	keys, err := signature.ParseKeys(path, b)
	if err != nil {
		return signature.PublicKey{}, fmt.Errorf("public key of the lab: %w", err)
	}
	if len(keys) != 1 {
		return signature.PublicKey{}, fmt.Errorf("public key of the lab: %s has %d keys, expected one", path, len(keys))
	}
	return keys[0], nil
}
