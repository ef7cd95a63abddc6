package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"linktrial/internal/atomicfile"
	"linktrial/internal/identity"
	"linktrial/internal/unit"
)

// Files of the authority in the orchestrator's data folder.
const (
	Folder   = "authority"
	keyFile  = "authority.pem" // key and certificate in one file: neither is ever there without the other
	certFile = "ca.crt"        // the certificate alone, for people and browsers
)

// How long certificates are good for. An authority that ends makes every node
// enrol again, so it outlives the equipment.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	nodeLife      = 30 * 24 * time.Hour
	serverLife    = 90 * 24 * time.Hour
	// Certificates begin a little before they are made: clocks of laptops differ.
	backdate = 24 * time.Hour
)

// pair is a key with its certificate.
type pair struct {
	key  crypto.Signer
	cert *x509.Certificate
}

// openKeys reads the authority, or makes it where there is none.
func openKeys(dir string, now time.Time) (pair, error) {
	path := filepath.Join(dir, keyFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeKeys(dir, now)
	case err != nil:
		return pair{}, fmt.Errorf("authority: %w", err)
	}
	if st, err := os.Stat(path); err == nil && st.Mode().Perm()&0o077 != 0 {
		return pair{}, fmt.Errorf("authority: %s can be read by others (mode %04o), and whoever reads it can pretend to be any node: chmod 600 it if only you had access, or remove it and enrol all nodes again", path, st.Mode().Perm())
	}
	p, err := readPair(b)
	if err != nil {
		return pair{}, fmt.Errorf("authority: %s: %w; put it back from a backup, or move it away and enrol all nodes again", path, err)
	}
	if !p.cert.IsCA {
		return pair{}, fmt.Errorf("authority: %s: the certificate is not an authority's", path)
	}
	if now.After(p.cert.NotAfter) {
		return pair{}, fmt.Errorf("authority: %s expired at %s by this machine's clock: set the clock, or move it away and enrol all nodes again", path, unit.Moment(p.cert.NotAfter))
	}
	return p, publish(dir, p.cert)
}

func makeKeys(dir string, now time.Time) (pair, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return pair{}, fmt.Errorf("authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Linktrial authority " + now.UTC().Format("2006-01-02")},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	p, err := sign(template, template, key.Public(), key)
	if err != nil {
		return pair{}, fmt.Errorf("authority: %w", err)
	}
	p.key = key
	if err := writePair(filepath.Join(dir, keyFile), p); err != nil {
		return pair{}, fmt.Errorf("authority: %w", err)
	}
	return p, publish(dir, p.cert)
}

// publish keeps the certificate beside the key where others may read it.
func publish(dir string, cert *x509.Certificate) error {
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	path := filepath.Join(dir, certFile)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(b) {
		return nil
	}
	if err := atomicfile.Write(path, b, 0o644); err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	return nil
}

func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand, since Go 1.24)
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

// sign makes a certificate; the pair that comes back has no key.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return pair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return pair{cert: cert}, err
}

func readPair(b []byte) (pair, error) {
	var p pair
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		switch {
		case block.Type == "PRIVATE KEY" && p.key == nil:
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return pair{}, fmt.Errorf("the key: %w", err)
			}
			signer, ok := key.(crypto.Signer)
			if !ok {
				return pair{}, fmt.Errorf("the key is a %T, which cannot sign", key)
			}
			p.key = signer
		case block.Type == "CERTIFICATE" && p.cert == nil:
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return pair{}, fmt.Errorf("the certificate: %w", err)
			}
			p.cert = cert
		default:
			return pair{}, fmt.Errorf("expected one PRIVATE KEY and one CERTIFICATE in PEM, found another %s", block.Type)
		}
	}
	if p.key == nil || p.cert == nil {
		return pair{}, errors.New("expected one PRIVATE KEY and one CERTIFICATE in PEM, and one is missing")
	}
	if public, ok := p.cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(p.key.Public()) {
		return pair{}, errors.New("the certificate is not for the key")
	}
	return p, nil
}

func writePair(path string, p pair) error {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return err
	}
	b := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})...)
	return atomicfile.Write(path, b, 0o600)
}

// nodeCertificate signs a node's key. Of the request only the key counts: the
// name is the token's.
func (p pair) nodeCertificate(node string, csr []byte, now time.Time) (*x509.Certificate, error) {
	req, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		return nil, fmt.Errorf("%w: not a PKCS #10 request: %w", ErrRequest, err)
	}
	if err := req.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: it is not signed with its own key: %w", ErrRequest, err)
	}
	switch k := req.PublicKey.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return nil, fmt.Errorf("%w: expected a key on curve P-256 or Ed25519, found %s", ErrRequest, k.Curve.Params().Name)
		}
	default:
		return nil, fmt.Errorf("%w: expected a key on curve P-256 or Ed25519, found %s", ErrRequest, req.PublicKeyAlgorithm)
	}
	made, err := sign(&x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: node, OrganizationalUnit: []string{"agent"}},
		NotBefore: now.Add(-backdate), NotAfter: p.until(now.Add(nodeLife)),
		URIs:     []*url.URL{identity.NodeURI(node)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, p.cert, req.PublicKey, p.key)
	return made.cert, err
}

// until is a time, or the authority's end where that is earlier.
func (p pair) until(t time.Time) time.Time {
	if t.After(p.cert.NotAfter) {
		return p.cert.NotAfter
	}
	return t
}

func keyHash(cert *x509.Certificate) []byte {
	h := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return h[:]
}
