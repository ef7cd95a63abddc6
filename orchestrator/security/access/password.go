package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Cost of a password's hash, as RFC 9106 names its parameters.
type Cost struct {
	Passes    uint32
	MemoryKiB uint32
	Lanes     uint8
}

// defaultCost is RFC 9106 section 4's second recommended option.
var defaultCost = Cost{Passes: 3, MemoryKiB: 64 << 10, Lanes: 4}

const (
	saltBytes = 16 // RFC 9106 section 4
	hashBytes = 32

	minPassword = 10  // characters
	maxPassword = 256 // bytes

	// leastEntropy of a new password, in bits: a hundred million guesses. With the
	// limit on attempts a guesser has some three million a year of them ([limiter]).
	leastEntropy = 26.6
	// assessed is how much of a password counts for its entropy, in bytes: what takes
	// longest grows with the square of the length.
	assessed = 64
)

// checkPassword says what is wrong with a new password.
func checkPassword(user, password string) error {
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return errors.New("the password is not UTF-8 text")
	case n < minPassword:
		return fmt.Errorf("the password has %d characters, expected at least %d", n, minPassword)
	case len(password) > maxPassword:
		return fmt.Errorf("the password is %d bytes long, expected at most %d", len(password), maxPassword)
	case entropy(password[:min(len(password), assessed)], user, "linktrial") < leastEntropy:
		return errors.New("the password would be guessed soon: it is, or is little more than, a frequent password, a word, a name, a date, keys that lie side by side, or a repetition; take several words that have nothing to do with each other")
	}
	return nil
}

// prepared is the password as it is hashed: the same text typed on two
// keyboards can be composed differently.
func prepared(password string) []byte { return []byte(norm.NFC.String(password)) }

// phc is a password's hash, as a PHC string has it.
type phc struct {
	Cost
	salt, hash []byte
}

func (p phc) String() string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.MemoryKiB, p.Passes, p.Lanes, b.EncodeToString(p.salt), b.EncodeToString(p.hash))
}

// Bounds on what is read, so that no stored text makes a login take minutes or
// all memory.
const (
	maxPasses    = 64
	maxMemoryKiB = 1 << 20
	minSalt      = 8
	maxSalt      = 64
	minHash      = 16
	maxHash      = 64
)

// parsePHC reads the form that String writes, and no other.
func parsePHC(text string) (phc, error) {
	bad := func(what string) (phc, error) {
		return phc{}, fmt.Errorf("password hash: %s; expected $argon2id$v=%d$m=KIB,t=PASSES,p=LANES$SALT$HASH", what, argon2.Version)
	}
	part := strings.Split(text, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" {
		return bad("not an argon2id hash")
	}
	if part[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return bad(fmt.Sprintf("version %q", part[2]))
	}
	var p phc
	cost := strings.Split(part[3], ",")
	if len(cost) != 3 {
		return bad(fmt.Sprintf("cost %q", part[3]))
	}
	for i, c := range []struct {
		key string
		max uint64
		set func(uint64)
	}{
		{"m=", maxMemoryKiB, func(v uint64) { p.MemoryKiB = uint32(v) }},
		{"t=", maxPasses, func(v uint64) { p.Passes = uint32(v) }},
		{"p=", 255, func(v uint64) { p.Lanes = uint8(v) }},
	} {
		digits, ok := strings.CutPrefix(cost[i], c.key)
		v, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || v == 0 || v > c.max || digits != strconv.FormatUint(v, 10) {
			return bad(fmt.Sprintf("cost %q", part[3]))
		}
		c.set(v)
	}
	var err error
	strict := base64.RawStdEncoding.Strict()
	if p.salt, err = strict.DecodeString(part[4]); err != nil || len(p.salt) < minSalt || len(p.salt) > maxSalt || strings.ContainsAny(part[4], "\r\n") {
		return bad("the salt")
	}
	if p.hash, err = strict.DecodeString(part[5]); err != nil || len(p.hash) < minHash || len(p.hash) > maxHash || strings.ContainsAny(part[5], "\r\n") {
		return bad("the hash")
	}
	return p, nil
}

// hasher computes password hashes, a few at a time: each takes much memory on
// purpose, and logins must not take all of it.
type hasher struct {
	cost  Cost
	slots chan struct{}
	decoy phc // of a password that nobody has
}

func newHasher(cost Cost) *hasher {
	if cost == (Cost{}) {
		cost = defaultCost
	}
	h := &hasher{cost: cost, slots: make(chan struct{}, 2)}
	h.decoy = phc{Cost: cost, salt: random(saltBytes), hash: random(hashBytes)}
	return h
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the program where the kernel gives nothing
	return b
}

// derive blocks while others compute, or until ctx ends.
func (h *hasher) derive(ctx context.Context, password string, p phc) ([]byte, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey(prepared(password), p.salt, p.Passes, p.MemoryKiB, p.Lanes, uint32(len(p.hash))), nil
}

// hash makes the PHC string of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	p := phc{Cost: h.cost, salt: random(saltBytes), hash: make([]byte, hashBytes)}
	var err error
	if p.hash, err = h.derive(ctx, password, p); err != nil {
		return "", err
	}
	return p.String(), nil
}

// verify reports whether the password is the one of the PHC string, and whether
// that was made at another cost than today's. An empty string takes as long
// and is no password's.
func (h *hasher) verify(ctx context.Context, password, text string) (ok, stale bool, err error) {
	p := h.decoy
	if text != "" {
		if p, err = parsePHC(text); err != nil {
			return false, false, err
		}
	}
	if len(password) > maxPassword {
		return false, false, nil
	}
	got, err := h.derive(ctx, password, p)
	if err != nil {
		return false, false, err
	}
	return text != "" && subtle.ConstantTimeCompare(got, p.hash) == 1, p.Cost != h.cost, nil
}
