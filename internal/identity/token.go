package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// Token lets one node enrol once. It carries what the node needs in order to
// check that it talks to the right orchestrator before it sends the secret.
type Token struct {
	Node        string
	Secret      [32]byte
	Fingerprint [sha256.Size]byte // of the authority's certificate
}

// tokenForm begins every token, so that a token in the wrong place is recognized
// and a later form can be told from this one.
const tokenForm = "linktrial-node-1"

// NewToken makes a token with a secret of 256 random bits.
func NewToken(node string, authority [sha256.Size]byte) Token {
	t := Token{Node: node, Fingerprint: authority}
	rand.Read(t.Secret[:]) // never fails (crypto/rand, since Go 1.24)
	return t
}

// String is the token as it is handed over: form, node, secret and fingerprint,
// with colons between.
func (t Token) String() string {
	enc := base64.RawURLEncoding
	return strings.Join([]string{tokenForm, t.Node, enc.EncodeToString(t.Secret[:]), enc.EncodeToString(t.Fingerprint[:])}, ":")
}

var _ slog.LogValuer = Token{}

// LogValue keeps the secret out of logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(tokenForm + ":" + t.Node + ":…") }

// Hash is what the orchestrator keeps of the secret. It has 256 random bits, so
// a slow hash would add nothing.
func (t Token) Hash() [sha256.Size]byte { return HashSecret(t.Secret[:]) }

// HashSecret is [Token.Hash] for a secret alone.
func HashSecret(secret []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("linktrial node token 1\x00"), secret...))
}

// errToken never repeats what was given: it may be most of a secret.
var errToken = errors.New("not a node's token, expected " + tokenForm + ":NAME:…:… on one line, as 'linktrial node token' printed it")

// ParseToken reads a token. Space around it is ignored.
func ParseToken(s string) (Token, error) {
	s = strings.TrimSpace(s)
	parts := strings.Split(s, ":")
	if len(parts) != 4 || parts[0] != tokenForm || strings.ContainsAny(s, "\r\n") { // which base64 would ignore
		return Token{}, errToken
	}
	t := Token{Node: parts[1]}
	if err := CheckName(t.Node); err != nil {
		return Token{}, errToken
	}
	for i, into := range [][]byte{t.Secret[:], t.Fingerprint[:]} {
		b, err := base64.RawURLEncoding.Strict().DecodeString(parts[2+i])
		if err != nil || len(b) != len(into) {
			return Token{}, fmt.Errorf("%w; part %d of this one is damaged", errToken, 3+i)
		}
		copy(into, b)
	}
	return t, nil
}

// maxTokenFile is more than a token with the longest name.
const maxTokenFile = 4096

// ReadToken reads a file with one token in it. Errors of the file wrap those of
// package os.
func ReadToken(path string) (Token, error) {
	f, err := os.Open(path)
	if err != nil {
		return Token{}, fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	return ReadTokenFrom(f, "token file "+path)
}

// ReadTokenFrom reads one token from an open file, up to its end; name is for
// errors. Standard input has to be read in this way: a process that sudo started
// as another user cannot open it again by its path, but can read it.
func ReadTokenFrom(r io.Reader, name string) (Token, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxTokenFile+1))
	switch {
	case err != nil:
		return Token{}, fmt.Errorf("%s: %w", name, err)
	case len(bytes.TrimSpace(b)) == 0:
		return Token{}, fmt.Errorf("%s is empty, expected a token as 'linktrial node token' prints it", name)
	case len(b) > maxTokenFile:
		return Token{}, fmt.Errorf("%s has more than %d bytes: %w", name, maxTokenFile, errToken)
	}
	t, err := ParseToken(string(b))
	if err != nil {
		return Token{}, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}
