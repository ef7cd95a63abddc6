// Package identity holds what agents and orchestrator must agree on about the
// identities of machines: the form of a one-time token, how a certificate names
// its node, the name that the orchestrator's certificate has for nodes, and the
// error texts of failed connections. Comes in: tokens, certificates, errors of
// connections. Goes out: parsed tokens and names, errors with an explanation.
package identity

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// OrchestratorName is the name that nodes expect in the orchestrator's
// certificate, whatever its address is: the orchestrator has other addresses at
// every site. The domain is reserved for private use and never in the public DNS.
const OrchestratorName = "orchestrator.linktrial.internal"

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// CheckName returns an error unless the name can be a node's.
func CheckName(name string) error {
	if !nodeName.MatchString(name) {
		return fmt.Errorf("name %q of a node, expected letters, digits, dots, hyphens and underscores, at most 63", name)
	}
	return nil
}

// NameOfHost makes the name of a host that of a node, "laptop" where nothing of it can be in
// one.
func NameOfHost(host string) string {
	host, _, _ = strings.Cut(host, ".")
	name := strings.Trim(strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, host), "-_")
	return cmp.Or(strings.TrimRight(name[:min(len(name), 63)], "-_"), "laptop")
}

// NodeURI is how a certificate names an agent: linktrial://agent/NAME as a URI
// among the alternative names (RFC 5280, section 4.2.1.6).
func NodeURI(name string) *url.URL {
	return &url.URL{Scheme: "linktrial", Host: "agent", Path: "/" + name}
}

// KeyHash stands for the public key of a certificate: the SHA-256 of its
// SubjectPublicKeyInfo (RFC 5280, section 4.1).
func KeyHash(cert *x509.Certificate) [sha256.Size]byte {
	return sha256.Sum256(cert.RawSubjectPublicKeyInfo)
}

// NodeOf is the name of the agent that a certificate is for; false where it is
// for something else.
func NodeOf(cert *x509.Certificate) (string, bool) {
	if len(cert.URIs) != 1 {
		return "", false
	}
	u := cert.URIs[0]
	name, ok := strings.CutPrefix(u.Path, "/")
	if !ok || u.Scheme != "linktrial" || u.Host != "agent" || CheckName(name) != nil || *u != *NodeURI(name) {
		return "", false
	}
	return name, true
}

// Fingerprint is the SHA-256 of a certificate as it is on the wire.
func Fingerprint(cert *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(cert.Raw) }

// FormatFingerprint writes a fingerprint as people compare it: 64 hex digits.
func FormatFingerprint(f [sha256.Size]byte) string { return hex.EncodeToString(f[:]) }

// ParseFingerprint reads 64 hex digits, with or without colons and in either
// case, as linktrial and openssl print them.
func ParseFingerprint(s string) (f [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
	if err != nil || len(b) != len(f) {
		return f, fmt.Errorf("fingerprint %q, expected 64 hex digits", s)
	}
	copy(f[:], b)
	return f, nil
}
