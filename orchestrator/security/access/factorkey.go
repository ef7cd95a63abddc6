package access

import (
	"context"
	"fmt"
	"path/filepath"

	"linktrial/orchestrator/security/sealing"
)

// factorKeyDir is the folder of the key that seals secrets of second factors, in a data folder.
const factorKeyDir = "second-factors"

// factorContext keeps what is sealed for one purpose from being opened for another.
const factorContext = "linktrial second factor v1\x00"

// factorKey seals secrets of second factors, so that the database alone does not give them
// away. What is sealed for one user opens for no other.
type factorKey struct{ sealing.Key }

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
			"key", a.factorKey.File(), "users", unreadable)
	}
	return nil
}

// openFactorKey reads the key of a data folder, and makes it where there is none.
func openFactorKey(data string) (factorKey, error) {
	if data == "" {
		k, err := sealing.Ephemeral()
		return factorKey{k}, err
	}
	k, err := sealing.Open(filepath.Join(data, factorKeyDir), "who could read it and has the database can make codes; 'chmod 600' it, and set second factors up anew if that may have happened")
	return factorKey{k}, err
}

// seal encrypts a secret, which is the base32 of its bytes, for one user.
func (k factorKey) seal(user, secret string) ([]byte, error) {
	plain, err := unpadded.DecodeString(secret)
	if err != nil {
		return nil, fmt.Errorf("secret of a second factor: %w", err)
	}
	return k.Seal(factorContext+user, plain), nil
}

// open returns the secret that was sealed for a user.
func (k factorKey) open(user string, sealed []byte) (string, error) {
	plain, err := k.Open(factorContext+user, sealed)
	if err != nil {
		return "", refuse(NotNow, "the second factor of %s cannot be read: it was sealed with another key than this orchestrator's, as after a restore without the key; give a recovery code, or have an admin remove the second factor", user)
	}
	return unpadded.EncodeToString(plain), nil
}
