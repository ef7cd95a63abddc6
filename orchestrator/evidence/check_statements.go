package evidence

import (
	"bytes"
	"crypto/x509"
	"time"

	"golang.org/x/crypto/ssh"

	"linktrial/executor/journal"
	"linktrial/internal/identity"
	"linktrial/internal/sshsig"
	"linktrial/internal/unit"
)

// checkStatement checks what a node signed of its journal.
func (c *checker) checkStatement(j *readJournal) {
	x, run, node := c.check(CheckStatements), j.run.ID, j.node.Name
	at, signatureFile := StatementFile(run, node), StatementSignatureFile(run, node)
	if !c.bag.Has(at) {
		if j.node.Unsigned != "" {
			c.unsigned.Add(run, node, j.node.Unsigned)
		} // else the check of contents has the finding
		return
	}
	text, ok := c.get(at, journal.MaxStatement)
	if !ok {
		return
	}
	x.Objects++
	s, err := journal.DecodeStatement(text)
	if err != nil {
		x.find(at, "%s", err)
		return
	}
	good := c.checkAbout(j, s)
	armoured, ok := c.get(signatureFile, sshsig.MaxBytes)
	if !ok {
		return
	}
	key, err := sshsig.Verify(sshsig.Journal, text, string(armoured))
	if err != nil {
		x.find(signatureFile, "the signature of node %s's statement is wrong: %s", node, err)
		return
	}
	authority, certified := c.checkCertificate(j, key, s.SignedAt)
	if good && certified {
		c.verdict.Signed = append(c.verdict.Signed, Signed{What: "journal of run " + run, By: node, Key: ssh.FingerprintSHA256(key), Known: c.knowsAuthority(authority), At: s.SignedAt})
	}
}

// checkAbout holds a statement against the index and the journal.
func (c *checker) checkAbout(j *readJournal, s *journal.Statement) bool {
	x, at, n := c.check(CheckStatements), StatementFile(j.run.ID, j.node.Name), 0
	find := func(format string, args ...any) {
		x.find(at, format, args...)
		n++
	}
	if s.Run != j.run.ID || s.Node != j.node.Name || string(s.Role) != j.node.Role {
		find("it is on the journal of run %.64q, node %.64q, role %.16q; expected run %s, node %s, role %s", s.Run, s.Node, s.Role, j.run.ID, j.node.Name, j.node.Role)
		return false
	}
	if s.SheetHash != j.run.SheetHash {
		find("it is on a run with the sheet %.64q, the run's is %s", s.SheetHash, j.run.SheetHash)
	}
	d := j.digests
	switch {
	case d == nil:
		find("%s could not be held against it", j.file)
	case s.Records != d.Records:
		find("the node signed %d records, %s has %d", s.Records, j.file, d.Records)
	case s.RecordsSHA256 != d.RecordsSHA256:
		find("the node signed other records than %s has: their SHA-256 is %s, expected %s", j.file, d.RecordsSHA256, s.RecordsSHA256)
	case j.whole && (s.Bytes != d.Bytes || s.SHA256 != d.SHA256):
		find("the node signed %d bytes with the SHA-256 %s, %s has %d bytes with %s", s.Bytes, s.SHA256, j.file, d.Bytes, d.SHA256)
	}
	return n == 0
}

// checkCertificate checks that the key of a signature was the node's when it signed. It returns
// the authority that certified it.
func (c *checker) checkCertificate(j *readJournal, key ssh.PublicKey, signedAt time.Time) (authority *x509.Certificate, ok bool) {
	x, at := c.check(CheckStatements), CertificateFile(j.run.ID, j.node.Name)
	text, ok := c.get(at, maxInfo)
	if !ok {
		return nil, false
	}
	list, err := certificates(text)
	if err != nil || len(list) != 1 {
		x.find(at, "expected one certificate in PEM")
		return nil, false
	}
	cert := list[0]
	public, err := ssh.NewPublicKey(cert.PublicKey)
	if err != nil {
		x.find(at, "it has a key that cannot sign a statement: %s", err)
		return nil, false
	}
	if c.nodeKeys[j.node.Name] == nil {
		c.nodeKeys[j.node.Name] = map[string]bool{}
	}
	c.nodeKeys[j.node.Name][string(public.Marshal())] = true
	if !bytes.Equal(public.Marshal(), key.Marshal()) {
		x.find(StatementSignatureFile(j.run.ID, j.node.Name), "it is a foreign signature: by key %s, the certificate of node %s has %s", ssh.FingerprintSHA256(key), j.node.Name, ssh.FingerprintSHA256(public))
		return nil, false
	}
	if name, is := identity.NodeOf(cert); !is || name != j.node.Name {
		x.find(at, "it is a certificate of %.80q, expected one of node %s", name, j.node.Name)
		return nil, false
	}
	if authority = c.issuer(cert); authority == nil {
		x.find(at, "it is a certificate of another authority than the one in %s", Authority)
		return nil, false
	}
	for _, a := range []struct {
		file string
		cert *x509.Certificate
	}{{at, cert}, {Authority, authority}} {
		switch {
		case signedAt.After(a.cert.NotAfter):
			x.find(a.file, "the certificate expired at %s, and node %s signed at %s", unit.Moment(a.cert.NotAfter), j.node.Name, unit.Moment(signedAt))
			return nil, false
		case signedAt.Before(a.cert.NotBefore):
			x.find(a.file, "the certificate is valid from %s, and node %s signed at %s", unit.Moment(a.cert.NotBefore), j.node.Name, unit.Moment(signedAt))
			return nil, false
		}
	}
	return authority, true
}

// issuer is the authority in the bag that issued a certificate; nil: none did.
func (c *checker) issuer(cert *x509.Certificate) *x509.Certificate {
	for _, a := range c.authority {
		if cert.CheckSignatureFrom(a) == nil {
			return a
		}
	}
	return nil
}
