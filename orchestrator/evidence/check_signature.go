package evidence

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"

	"linktrial/internal/identity"
	"linktrial/internal/signature"
	"linktrial/internal/sshsig"
)

// signedBag is what [Signed] calls the bag.
const signedBag = "the bag"

// readTrust reads the keys and the authority that are in the bag. They prove nothing by
// themselves: whoever packed the bag has put them there.
func (c *checker) readTrust() error {
	c.inBag, c.known = signature.Keys{}, signature.NewKeys(c.trust.Keys...)
	if text, ok := c.get(SigningKeys, signature.MaxFile); ok {
		list, err := signature.ParseKeys(SigningKeys, text)
		if err != nil {
			c.check(CheckSignature).find(SigningKeys, "%s", strings.TrimPrefix(err.Error(), SigningKeys+":"))
		}
		c.inBag = signature.NewKeys(list...)
	}
	if c.bag.Has(EndorsedKeys) {
		if text, ok := c.get(EndorsedKeys, signature.MaxFile); ok {
			list, err := signature.ParseEndorsed(EndorsedKeys, text)
			if err != nil {
				c.check(CheckSignature).find(EndorsedKeys, "%s", strings.TrimPrefix(err.Error(), EndorsedKeys+":"))
			}
			c.known.Extend(list)
		}
	}
	if !c.bag.Has(Authority) {
		return nil // of a campaign whose nodes have no certificates
	}
	if text, ok := c.get(Authority, signature.MaxFile); ok {
		var err error
		if c.authority, err = certificates(text); err != nil {
			c.check(CheckStatements).find(Authority, "%s", err)
		}
	}
	return nil
}

// certificates reads certificates in PEM, at least one.
func certificates(text []byte) (out []*x509.Certificate, err error) {
	for rest := text; len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("expected certificates in PEM and nothing else")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("it has a certificate that cannot be read")
		}
		out = append(out, cert)
	}
	if len(out) == 0 {
		return nil, errors.New("it is empty, expected a certificate in PEM")
	}
	return out, nil
}

// signingKey is a key of an SSH signature as one that signs run sheets; false: it is of another
// kind.
func signingKey(key ssh.PublicKey) (k signature.PublicKey, ok bool) {
	if crypto, is := key.(ssh.CryptoPublicKey); is {
		var public ed25519.PublicKey
		if public, ok = crypto.CryptoPublicKey().(ed25519.PublicKey); ok {
			copy(k[:], public)
		}
	}
	return k, ok
}

// checkSignature checks the orchestrator's signature over the tag manifest.
func (c *checker) checkSignature() error {
	x := c.check(CheckSignature)
	if !c.bag.Has(TagSignature) {
		if len(c.trust.Keys) > 0 {
			x.find(TagSignature, "the bag is not signed: expected a signature by a key of %s", c.trust.From)
		} else {
			x.skip("the bag is not signed: it has no %s", TagSignature)
		}
		return nil
	}
	manifest, err := c.bag.unchecked(TagManifest, maxManifest)
	if err != nil {
		return err
	}
	armoured, err := c.bag.unchecked(TagSignature, sshsig.MaxBytes)
	if err != nil {
		var f *FileError
		if !errors.As(err, &f) {
			return err
		}
		x.find(TagSignature, "%s", f.Problem)
		return nil
	}
	x.Objects++
	key, err := sshsig.Verify(sshsig.Evidence, manifest, string(armoured))
	if err != nil {
		x.find(TagSignature, "the signature of %s is wrong: %s", TagManifest, err)
		return nil
	}
	k, ok := signingKey(key)
	if !ok {
		x.find(TagSignature, "it is by a key of kind %s (%s), orchestrators sign with Ed25519", key.Type(), ssh.FingerprintSHA256(key))
		return nil
	}
	c.judgeKey(x, k)
	return nil
}

// judgeKey says whose key signed the bag, where that is known.
func (c *checker) judgeKey(x *Check, k signature.PublicKey) {
	_, known := c.known[k.ID()]
	if _, ok := c.inBag[k.ID()]; !ok {
		x.find(TagSignature, "it is a foreign signature: by key %s, which is none of those in %s (%s)", k.ID(), SigningKeys, orNone(c.inBag.IDs()))
		return
	}
	switch {
	case known:
		x.note("the bag is signed by key %s, which %s has, or a key of it has endorsed", k.ID(), c.trust.From)
	case len(c.trust.Keys) > 0:
		x.find(TagSignature, "it is a foreign signature: by key %s, which is none of those in %s (%s)", k.ID(), c.trust.From, c.known.IDs())
		return
	default:
		x.skip("key %s signed the bag, and this machine does not know whose it is: compare its fingerprint %s with what the orchestrator shows (linktrial signing keys), or give the orchestrator's keys with --key", k.ID(), k.Fingerprint())
	}
	c.verdict.Signed = append(c.verdict.Signed, Signed{What: signedBag, By: "orchestrator", Key: k.ID(), Known: known})
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// checkSigners holds the keys that the bag gives to ssh-keygen against those of certificates
// and of the orchestrator: a foreign one there would have ssh-keygen accept what this check
// does not.
func (c *checker) checkSigners() error {
	text, ok := c.get(Signers, maxSigners)
	if !ok {
		return nil
	}
	x, n := c.check(CheckSignature), 0
	for l := range strings.Lines(string(text)) {
		n++
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		principal, rest, _ := strings.Cut(l, " ")
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
		if err != nil {
			x.find(Signers, "line %d is no line of allowed signers", n)
			continue
		}
		namespaces := strings.Join(options, ",")
		k, signs := signingKey(key)
		_, own := c.inBag[k.ID()]
		switch {
		case signs && own && principal == "orchestrator" && namespaces == `namespaces="`+sshsig.Evidence+`"`:
		case c.nodeKeys[principal][string(key.Marshal())] && namespaces == `namespaces="`+sshsig.Journal+`"`:
		default:
			x.find(Signers, "line %d has a foreign key for %.80q: it is neither the orchestrator's nor that of a node's certificate in the bag", n, principal)
		}
	}
	return nil
}

// knowsAuthority reports whether this machine trusts an authority.
func (c *checker) knowsAuthority(cert *x509.Certificate) bool {
	for _, known := range c.trust.Authorities {
		if identity.Fingerprint(known) == identity.Fingerprint(cert) {
			return true
		}
	}
	return false
}
