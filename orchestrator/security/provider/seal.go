package provider

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// attempt is what the orchestrator must know again when the browser comes back.
type attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // of PKCE
	Redirect string `json:"r"`
	Back     string `json:"b"` // the page that the person came from
	Until    int64  `json:"u"` // Unix seconds
}

// attemptLife is how long a person may take at the provider.
const attemptLife = 10 * time.Minute

const maxUsed = 10_000

// seal encrypts attempts with a key that no other process has.
type seal struct {
	aead cipher.AEAD
	used *lru.Cache[[sha256.Size]byte, struct{}] // attempts that have come back
}

func newSeal() (*seal, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal of logins: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal of logins: %w", err)
	}
	used, err := lru.New[[sha256.Size]byte, struct{}](maxUsed)
	if err != nil {
		return nil, fmt.Errorf("seal of logins: %w", err)
	}
	return &seal{aead, used}, nil
}

var encoding = base64.RawURLEncoding

func (s *seal) close(a attempt) (string, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("seal a login: %w", err)
	}
	return encoding.EncodeToString(s.aead.Seal(nil, nil, b, nil)), nil
}

var errNoAttempt = errors.New("this login was not begun in this browser, or took longer than ten minutes: begin it again")

// open returns an attempt once.
func (s *seal) open(text string, now time.Time) (attempt, error) {
	var a attempt
	b, err := encoding.DecodeString(text)
	if err != nil {
		return a, errNoAttempt
	}
	if b, err = s.aead.Open(nil, nil, b, nil); err != nil || json.Unmarshal(b, &a) != nil || now.Unix() >= a.Until {
		return a, errNoAttempt
	}
	if found, _ := s.used.ContainsOrAdd(sha256.Sum256([]byte(a.State)), struct{}{}); found {
		return a, errors.New("this login has come back already: begin it again")
	}
	return a, nil
}
