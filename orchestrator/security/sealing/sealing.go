// Package sealing encrypts secrets that the orchestrator needs again, so that the database
// alone does not give them away: those of second factors, and those of notification channels.
// Comes in: a folder for the key, secrets with what they are for. Goes out: bytes for a table.
package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"linktrial/internal/atomicfile"
	"linktrial/internal/filelock"
)

// Names in the folder of a key.
const (
	keyFile  = "sealing-key.json"
	lockFile = "lock"
)

const keySize = 32 // bytes: AES-256

// Key seals secrets with AES-256-GCM. What is sealed for one purpose opens for no other.
type Key struct {
	aead cipher.AEAD
	file string
}

// document is the key as a file.
type document struct {
	Format int    `json:"format"`
	Key    []byte `json:"key"`
}

// Open reads the key of a folder, and makes folder and key where there are none. Where others
// may read the key, the error ends with danger: what they can do, and what is to be done.
func Open(dir, danger string) (Key, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Key{}, err
	}
	// Two processes must not make one each.
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Key{}, err
	}
	defer filelock.Release(lock)
	if err := filelock.Lock(lock, filelock.Exclusive); err != nil {
		return Key{}, fmt.Errorf("lock %s: %w", dir, err)
	}
	path := filepath.Join(dir, keyFile)
	key, err := read(path, danger)
	if errors.Is(err, fs.ErrNotExist) {
		key = fresh()
		err = write(path, key)
	}
	if err != nil {
		return Key{}, err
	}
	return from(key, path)
}

// Ephemeral returns a key that lasts as long as the process.
func Ephemeral() (Key, error) { return from(fresh(), "") }

func fresh() []byte {
	b := make([]byte, keySize)
	_, _ = rand.Read(b) // never fails: it ends the program where the kernel gives nothing
	return b
}

func read(path, danger string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := st.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to others (mode %04o, expected 0600): %s", path, mode, danger)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if d.Format != 1 || len(d.Key) != keySize {
		return nil, fmt.Errorf("%s: format %d with a key of %d bytes, expected format 1 and %d bytes", path, d.Format, len(d.Key), keySize)
	}
	return d.Key, nil
}

func write(path string, key []byte) error {
	b, err := json.MarshalIndent(document{Format: 1, Key: key}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(b, '\n'), 0o600)
}

func from(key []byte, file string) (Key, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return Key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Key{aead: aead, file: file}, err
}

// File is where the key is, for messages; empty: in memory alone.
func (k Key) File() string { return k.file }

// Seal encrypts a secret for a purpose, which names whose it is.
func (k Key) Seal(purpose string, plain []byte) []byte {
	return k.aead.Seal(nil, nil, plain, []byte(purpose))
}

// Open returns what was sealed for a purpose with this key; an error says nothing of it.
func (k Key) Open(purpose string, sealed []byte) ([]byte, error) {
	return k.aead.Open(nil, nil, sealed, []byte(purpose))
}
