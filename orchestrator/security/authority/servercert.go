package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"linktrial/internal/identity"
)

const serverFile = "server.pem"

// serverCertificate is the orchestrator's own, for the names it is called by.
// It is kept, so that a browser that was told to accept it does so after a
// restart, and made anew when two thirds of its life are over or a name is new.
func (a *Authority) serverCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	names := a.names
	if hello != nil && hello.Conn != nil {
		if t, ok := hello.Conn.LocalAddr().(*net.TCPAddr); ok && !t.IP.IsUnspecified() {
			// An address that this machine has got since: at every site it has others.
			names = union(names, []string{t.IP.String()})
		}
	}
	now := a.now()
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	if a.server != nil && covers(a.server.Leaf, names, now) {
		return a.server, nil
	}
	if a.server != nil {
		names = union(names, slices.Concat(a.server.Leaf.DNSNames, addresses(a.server.Leaf)))
	}
	made, err := a.makeServer(names, now)
	if err != nil {
		a.log.Error("the server's certificate could not be made", "error", err)
		return nil, err
	}
	a.server = made
	return made, nil
}

// ShownHash is the SHA-256 of the certificate that nodes are shown, DER; zero in the plain
// modes. A connection that was begun before the certificate was renewed has another one.
func (a *Authority) ShownHash() [sha256.Size]byte {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	if a.server == nil {
		return [sha256.Size]byte{}
	}
	return identity.Fingerprint(a.server.Leaf)
}

func (a *Authority) openServer() error {
	b, err := os.ReadFile(filepath.Join(a.dir, serverFile))
	if err == nil {
		p, err := readPair(b)
		if err == nil && p.cert.CheckSignatureFrom(a.keys.cert) == nil {
			a.server = a.chain(p)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("authority: %w", err)
	}
	_, err = a.serverCertificate(nil)
	return err
}

func (a *Authority) makeServer(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Linktrial orchestrator"}, NotBefore: now.Add(-backdate), NotAfter: a.keys.until(now.Add(serverLife)),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	p, err := sign(t, a.keys.cert, key.Public(), a.keys.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the orchestrator: %w", err)
	}
	p.key = key
	if err := writePair(filepath.Join(a.dir, serverFile), p); err != nil {
		return nil, fmt.Errorf("certificate of the orchestrator: %w", err)
	}
	a.log.Info("the orchestrator has a new certificate", "names", names, "until", p.cert.NotAfter)
	return a.chain(p), nil
}

// chain sends the authority along: a node knows it by its fingerprint alone
// when it enrols.
func (a *Authority) chain(p pair) *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.cert.Raw, a.keys.cert.Raw}, PrivateKey: p.key, Leaf: p.cert}
}

func covers(cert *x509.Certificate, names []string, now time.Time) bool {
	if now.Before(cert.NotBefore) || due(cert, now) {
		return false
	}
	for _, n := range names {
		if cert.VerifyHostname(n) != nil {
			return false
		}
	}
	return true
}

// due reports whether two thirds of a certificate's life are over.
func due(cert *x509.Certificate, now time.Time) bool {
	return now.After(cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) * 2 / 3))
}

func addresses(cert *x509.Certificate) []string {
	var out []string
	for _, ip := range cert.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// localNames are the names that a server on an address is called by on its
// own: this machine's name and, where it listens on all addresses, each of them.
func localNames(listen string) ([]string, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", listen, err)
	}
	out := []string{identity.OrchestratorName, "localhost", "127.0.0.1", "::1"}
	if h, err := os.Hostname(); err == nil && h != "" {
		out = union(out, []string{h})
	}
	ip := net.ParseIP(host)
	switch {
	case host != "" && (ip == nil || !ip.IsUnspecified()):
		return union(out, []string{host}), nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			out = union(out, []string{n.IP.String()})
		}
	}
	return out, nil
}

// Certifies reports whether a certificate that the orchestrator shows has a name.
func (a *Authority) Certifies(name string) bool {
	if a.own != nil && a.own.Leaf.VerifyHostname(name) == nil {
		return true
	}
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	return a.server != nil && a.server.Leaf.VerifyHostname(name) == nil
}

// loadOwn reads a server certificate of the operator's.
func loadOwn(certPath, keyPath string, now time.Time) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	if now.After(c.Leaf.NotAfter) || now.Before(c.Leaf.NotBefore) {
		return nil, fmt.Errorf("--tls-cert: %w", &identity.TimeError{What: "the certificate in " + certPath, Now: now, NotBefore: c.Leaf.NotBefore, NotAfter: c.Leaf.NotAfter})
	}
	return &c, nil
}
