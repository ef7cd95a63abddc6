package access

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Kinds of secrets by how they begin, so that people and scanners of leaked
// secrets know one when they see it.
const (
	tokenPrefix   = "ltp_"
	setupPrefix   = "lts_"
	localPrefix   = "ltl_"
	sessionPrefix = "ltc_"
)

const secretBytes = 32

// secret is 256 random bits behind a prefix. Only its hash is kept: at this
// length a plain one is enough.
type secret struct {
	prefix string
	bits   [secretBytes]byte
}

func newSecret(prefix string) secret {
	s := secret{prefix: prefix}
	copy(s.bits[:], random(secretBytes))
	return s
}

func (s secret) text() string { return s.prefix + base64.RawURLEncoding.EncodeToString(s.bits[:]) }

func (s secret) hash() []byte {
	h := sha256.Sum256([]byte(s.text()))
	return h[:]
}

// parseSecret reads a secret of one of the prefixes. It never quotes what it read.
func parseSecret(text string, prefixes ...string) (secret, error) {
	for _, p := range prefixes {
		rest, ok := strings.CutPrefix(text, p)
		if !ok {
			continue
		}
		if len(rest) != base64.RawURLEncoding.EncodedLen(secretBytes) {
			return secret{}, fmt.Errorf("%s… is %d characters long, expected %d: was all of it copied?", p, len(text), len(p)+base64.RawURLEncoding.EncodedLen(secretBytes))
		}
		b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
		if err != nil || len(b) != secretBytes {
			return secret{}, fmt.Errorf("%s… has characters that such a text never has: was it changed on the way?", p)
		}
		s := secret{prefix: p}
		copy(s.bits[:], b)
		return s, nil
	}
	return secret{}, fmt.Errorf("does not begin with %s", strings.Join(prefixes, " or "))
}

// bearer is the secret of an Authorization header; ok says that there is one.
func bearer(h http.Header) (s secret, ok bool, err error) {
	values := h.Values("Authorization")
	if len(values) == 0 {
		return secret{}, false, nil
	}
	if len(values) > 1 {
		return secret{}, true, fmt.Errorf("%d Authorization headers, expected one", len(values))
	}
	scheme, rest, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return secret{}, true, fmt.Errorf("the Authorization header, expected \"Bearer %s…\"", tokenPrefix)
	}
	s, err = parseSecret(strings.TrimSpace(rest), tokenPrefix, setupPrefix, localPrefix)
	if err != nil {
		return secret{}, true, fmt.Errorf("the token %w", err)
	}
	return s, true, nil
}

// Names of the session's cookie. A browser takes the first only over TLS, for
// the whole host, and from nobody but the host itself.
const (
	secureCookie = "__Host-linktrial"
	plainCookie  = "linktrial"
)

func cookieName(secure bool) string {
	if secure {
		return secureCookie
	}
	return plainCookie
}

// sessionSecret is the secret of the session's cookie; anything else by its name is no session.
func sessionSecret(h http.Header, secure bool) (secret, bool) {
	r := http.Request{Header: h}
	for _, c := range r.CookiesNamed(cookieName(secure)) {
		if s, err := parseSecret(c.Value, sessionPrefix); err == nil {
			return s, true
		}
	}
	return secret{}, false
}

func sessionCookie(value string, secure bool, maxAgeSeconds int) *http.Cookie {
	return &http.Cookie{Name: cookieName(secure), Value: value, Path: "/", MaxAge: maxAgeSeconds, Secure: secure, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}
