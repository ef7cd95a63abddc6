// Package identity is a node's key and certificate: it enrols with a one-time
// token, keeps what it gets, and renews it. Comes in: a token, a folder, the
// orchestrator's URL. Goes out: TLS configurations for the session.
package identity

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"linktrial/internal/atomicfile"
	"linktrial/internal/identity"
	"linktrial/internal/inputfile"
	"linktrial/internal/sshsig"
)

// Files in a node's state folder.
const (
	// File holds key, certificate and the authority's certificate, in PEM: one
	// file, so that a node has all of them or none.
	File = "identity.pem"
	// pendingFile is the key of an enrolment that has not ended: the same key
	// asks again where the answer was lost.
	pendingFile = "identity-pending.pem"
)

// maxFile bounds these files, in bytes: two certificates and a key have some thousand.
const maxFile = 64 << 10

// ErrNone reports that a node has no identity.
var ErrNone = errors.New("the node is not enrolled")

// Identity is what a node shows. Its methods may be called from several goroutines.
type Identity struct {
	dir string
	now func() time.Time

	mu        sync.Mutex
	key       crypto.Signer
	cert      *x509.Certificate
	authority *x509.Certificate
	// former are the keys before the last renewals: a connection that is open goes on
	// showing the certificate that it began with.
	former [][sha256.Size]byte
}

// Load reads a node's identity from its state folder; [ErrNone] where there is
// none. now is the clock; nil: time.Now.
func Load(dir string, now func() time.Time) (*Identity, error) {
	if now == nil {
		now = time.Now
	}
	path := filepath.Join(dir, File)
	b, err := inputfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s", ErrNone, path)
	} else if err != nil {
		return nil, fmt.Errorf("identity of the node: %w", err)
	}
	i, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("identity of the node: %s: %w; enrol the node again with a new token", path, err)
	}
	i.dir, i.now = dir, now
	return i, nil
}

// parse reads PEM: PRIVATE KEY, the node's CERTIFICATE, the authority's CERTIFICATE.
func parse(b []byte) (*Identity, error) {
	form := errors.New("expected a PRIVATE KEY, the node's CERTIFICATE and the authority's CERTIFICATE in PEM")
	var blocks []*pem.Block
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		blocks = append(blocks, block)
	}
	if len(blocks) != 3 || len(bytes.TrimSpace(b)) > 0 || blocks[0].Type != "PRIVATE KEY" || blocks[1].Type != "CERTIFICATE" || blocks[2].Type != "CERTIFICATE" {
		return nil, form
	}
	key, err := parseKey(blocks[0])
	if err != nil {
		return nil, err
	}
	i := &Identity{key: key}
	if i.cert, err = x509.ParseCertificate(blocks[1].Bytes); err != nil {
		return nil, fmt.Errorf("the node's certificate: %w", err)
	}
	if i.authority, err = x509.ParseCertificate(blocks[2].Bytes); err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	return i, i.check()
}

// parseKey reads a key as keyPEM writes it.
func parseKey(block *pem.Block) (crypto.Signer, error) {
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("the key: expected a PRIVATE KEY in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, which cannot sign", key)
	}
	return s, nil
}

// accept takes a certificate that the orchestrator made for the key, of the
// authority that is trusted.
func (i *Identity) accept(certificate []byte, node string) error {
	var err error
	if i.cert, err = x509.ParseCertificate(certificate); err == nil {
		err = i.check()
	}
	if err != nil {
		return fmt.Errorf("the orchestrator's answer: %w", err)
	}
	if got := i.Name(); got != node {
		return fmt.Errorf("the orchestrator's answer: a certificate for %s, expected one for %s", got, node)
	}
	return nil
}

// check reports whether key and certificates belong together.
func (i *Identity) check() error {
	if _, ok := identity.NodeOf(i.cert); !ok {
		return fmt.Errorf("the certificate of %q is not a node's", i.cert.Subject.CommonName)
	}
	public, ok := i.cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(i.key.Public()) {
		return errors.New("the certificate is not for the key")
	}
	if err := i.cert.CheckSignatureFrom(i.authority); err != nil {
		return fmt.Errorf("the certificate is not of the authority beside it: %w", err)
	}
	return nil
}

// write puts the identity in place, whole.
func (i *Identity) write() error {
	b, err := keyPEM(i.key)
	if err != nil {
		return err
	}
	for _, c := range []*x509.Certificate{i.cert, i.authority} {
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	if err := atomicfile.Write(filepath.Join(i.dir, File), b, 0o600); err != nil {
		return fmt.Errorf("identity of the node: %w", err)
	}
	return nil
}

// Name is the node's, as in its certificate.
func (i *Identity) Name() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	name, _ := identity.NodeOf(i.cert)
	return name
}

// HasKey reports whether the node calls, or a moment ago called, with a certificate
// whose key is the one that hash stands for ([identity.KeyHash]).
func (i *Identity) HasKey(hash []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := identity.KeyHash(i.cert)
	return bytes.Equal(hash, now[:]) || slices.ContainsFunc(i.former, func(k [sha256.Size]byte) bool { return bytes.Equal(hash, k[:]) })
}

// Expires is when the certificate ends.
func (i *Identity) Expires() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cert.NotAfter
}

// Expired reports whether the certificate has expired by the node's clock.
func (i *Identity) Expired() bool { return i.now().After(i.Expires()) }

// Due is when the certificate is to be renewed: after two thirds of its life.
func (i *Identity) Due() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cert.NotBefore.Add(i.cert.NotAfter.Sub(i.cert.NotBefore) * 2 / 3)
}

// Now is the node's clock.
func (i *Identity) Now() time.Time { return i.now() }

// TLS is the configuration to call the orchestrator with. Each new connection
// shows the newest certificate.
func (i *Identity) TLS() *tls.Config {
	i.mu.Lock()
	authority := i.authority
	i.mu.Unlock()
	c := clientTLS(authority, i.now)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		return &tls.Certificate{Certificate: [][]byte{i.cert.Raw}, PrivateKey: i.key, Leaf: i.cert}, nil
	}
	return c
}

// clientTLS trusts the orchestrator of one authority, at whatever address.
func clientTLS(authority *x509.Certificate, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: identity.OrchestratorName, Time: now, NextProtos: []string{"h2"},
		// The check is below: it tells a wrong clock from a wrong orchestrator.
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			return identity.VerifyOrchestrator(cs, authority, now())
		},
	}
}

// transport calls with a TLS configuration, directly.
func transport(c *tls.Config) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	return &http.Transport{TLSClientConfig: c, Protocols: p, Proxy: nil}
}

func newKey() (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// request asks for a certificate for the key. The name is for people's eyes:
// the orchestrator takes it from the token.
func request(key crypto.Signer, node string) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: node}}, key)
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Sign signs bytes with the key of the certificate that new connections show, as
// `ssh-keygen -Y sign` does.
func (i *Identity) Sign(namespace string, content []byte) (string, error) {
	i.mu.Lock()
	key := i.key
	i.mu.Unlock()
	return sshsig.Sign(key, namespace, content)
}
