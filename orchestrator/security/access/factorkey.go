package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"linktrial/internal/atomicfile"
	"linktrial/internal/filelock"
)

// Names of the key that seals secrets of second factors, in a data folder.
const (
	factorKeyDir  = "second-factors"
	factorKeyFile = "sealing-key.json"
	factorKeyLock = "lock"
)

const (
	factorKeySize = 32 // bytes: AES-256
	// factorContext keeps what is sealed for one purpose from being opened for another.
	factorContext = "linktrial second factor v1\x00"
)

// factorKey seals secrets of second factors (AES-256-GCM), so that the database alone does
// not give them away. What is sealed for one user opens for no other.
type factorKey struct {
	aead cipher.AEAD
	file string // for messages
}

// factorKeyDocument is the key as a file.
type factorKeyDocument struct {
	Format int    `json:"format"`
	Key    []byte `json:"key"`
}

// openFactors opens the key, and logs whose second factor it does not open.
func (a *Access) openFactors(ctx context.Context) error {
	var err error
	if a.factorKey, err = openFactorKey(a.cfg.DataDir); err != nil {
		return fmt.Errorf("key of second factors: %w", err)
	}
	factors, err := a.db.SecondFactors(ctx)
	if err != nil {
		return fmt.Errorf("look up second factors: %w", err)
	}
	var unreadable []string
	for _, f := range factors {
		if _, err := a.factorKey.open(f.UserName, f.Sealed); err != nil {
			unreadable = append(unreadable, f.UserName)
		}
	}
	if len(unreadable) > 0 {
		a.log.Error("second factors were sealed with another key than that of the data folder: put the key back and start again, or these users log in with a recovery code or have an admin remove theirs",
			"key", a.factorKey.file, "users", unreadable)
	}
	return nil
}

// openFactorKey reads the key of a data folder, and makes it where there is none.
func openFactorKey(data string) (factorKey, error) {
	if data == "" {
		return newFactorKey(random(factorKeySize), "")
	}
	dir := filepath.Join(data, factorKeyDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return factorKey{}, err
	}
	// Two processes must not make one each.
	lock, err := os.OpenFile(filepath.Join(dir, factorKeyLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return factorKey{}, err
	}
	defer filelock.Release(lock)
	if err := filelock.Lock(lock, filelock.Exclusive); err != nil {
		return factorKey{}, fmt.Errorf("lock %s: %w", dir, err)
	}
	path := filepath.Join(dir, factorKeyFile)
	key, err := readFactorKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = random(factorKeySize)
		err = writeFactorKey(path, key)
	}
	if err != nil {
		return factorKey{}, err
	}
	return newFactorKey(key, path)
}

func readFactorKey(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := st.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to others (mode %04o, expected 0600): who could read it and has the database can make codes; 'chmod 600' it, and set second factors up anew if that may have happened", path, mode)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d factorKeyDocument
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if d.Format != 1 || len(d.Key) != factorKeySize {
		return nil, fmt.Errorf("%s: format %d with a key of %d bytes, expected format 1 and %d bytes", path, d.Format, len(d.Key), factorKeySize)
	}
	return d.Key, nil
}

func writeFactorKey(path string, key []byte) error {
	b, err := json.MarshalIndent(factorKeyDocument{Format: 1, Key: key}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(b, '\n'), 0o600)
}

func newFactorKey(key []byte, file string) (factorKey, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return factorKey{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return factorKey{aead: aead, file: file}, err
}

// seal encrypts a secret, which is the base32 of its bytes, for one user.
func (k factorKey) seal(user, secret string) ([]byte, error) {
	plain, err := unpadded.DecodeString(secret)
	if err != nil {
		return nil, fmt.Errorf("secret of a second factor: %w", err)
	}
	return k.aead.Seal(nil, nil, plain, []byte(factorContext+user)), nil
}

// open returns the secret that was sealed for a user.
func (k factorKey) open(user string, sealed []byte) (string, error) {
	plain, err := k.aead.Open(nil, nil, sealed, []byte(factorContext+user))
	if err != nil {
		return "", refuse(NotNow, "the second factor of %s cannot be read: it was sealed with another key than this orchestrator's, as after a restore without the key; give a recovery code, or have an admin remove the second factor", user)
	}
	return unpadded.EncodeToString(plain), nil
}
