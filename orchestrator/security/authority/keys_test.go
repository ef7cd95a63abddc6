package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/identity"
)

func TestAuthorityIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "authority")
	now := time.Now()
	p, err := openKeys(dir, now)
	require.NoError(t, err)
	st, err := os.Stat(filepath.Join(dir, keyFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	again, err := openKeys(dir, now)
	require.NoError(t, err)
	require.Equal(t, p.cert.Raw, again.cert.Raw)
	require.NoError(t, os.Remove(filepath.Join(dir, certFile)))
	_, err = openKeys(dir, now)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, certFile), "the certificate is published again")

	_, err = openKeys(dir, now.AddDate(11, 0, 0))
	require.ErrorContains(t, err, "expired at")
	path := filepath.Join(dir, keyFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = openKeys(dir, now)
	require.ErrorContains(t, err, "can be read by others (mode 0640)")
	for text, want := range map[string]string{
		"":                                     "one is missing",
		string(whole[:len(whole)-40]):          "one is missing",
		string(whole) + string(whole):          "found another",
		"-----BEGIN X-----\n-----END X-----\n": "found another X",
	} {
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = openKeys(dir, now)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(left), "an authority is never replaced by itself")
	}
}

func FuzzReadPair(f *testing.F) {
	p, err := openKeys(f.TempDir(), time.Now())
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "pair")
	if err := writePair(path, p); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := readPair(b); err == nil && (p.key == nil || p.cert == nil) {
			t.Fatal("half a pair")
		}
	})
}

// Whatever a request asks for, the certificate is an agent's and no more.
func TestNodeCertificates(t *testing.T) {
	now := time.Now()
	p, err := openKeys(t.TempDir(), now)
	require.NoError(t, err)
	request := func(key any) []byte {
		b, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{identity.OrchestratorName}, IPAddresses: []net.IP{{127, 0, 0, 1}}}, key)
		require.NoError(t, err)
		return b
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for _, key := range []any{edwards, p256} {
		c, err := p.nodeCertificate("client", request(key), now)
		require.NoError(t, err)
		name, ok := identity.NodeOf(c)
		require.True(t, ok)
		require.Equal(t, "client", name)
		require.Empty(t, c.DNSNames)
		require.Empty(t, c.IPAddresses)
		require.False(t, c.IsCA)
		require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, c.ExtKeyUsage)
		require.WithinDuration(t, now.Add(nodeLife), c.NotAfter, 2*time.Second)
		require.Error(t, c.VerifyHostname(identity.OrchestratorName))
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for want, csr := range map[string][]byte{"found P-384": request(p384), "found RSA": request(small), "not a PKCS #10 request": []byte("x")} {
		_, err := p.nodeCertificate("client", csr, now)
		require.ErrorIs(t, err, ErrRequest)
		require.ErrorContains(t, err, want)
	}
	forged := request(p256)
	forged[len(forged)-1] ^= 1
	_, err = p.nodeCertificate("client", forged, now)
	require.ErrorIs(t, err, ErrRequest)
	// Near its own end, an authority signs for what is left.
	late := p.cert.NotAfter.Add(-time.Hour)
	c, err := p.nodeCertificate("client", request(p256), late)
	require.NoError(t, err)
	require.Equal(t, p.cert.NotAfter, c.NotAfter)
}

func TestServerNames(t *testing.T) {
	for listen, want := range map[string][]string{
		"127.0.0.1:0":      {"localhost", "127.0.0.1"},
		"192.0.2.7:7700":   {"192.0.2.7", identity.OrchestratorName},
		"trials.home:7700": {"trials.home"},
		":7700":            {"localhost"},
	} {
		names, err := localNames(listen)
		require.NoError(t, err)
		for _, w := range want {
			require.Contains(t, names, w, listen)
		}
	}
	a := &Authority{log: discard, now: time.Now, dir: t.TempDir()}
	var err error
	a.keys, err = openKeys(a.dir, time.Now())
	require.NoError(t, err)
	a.names = []string{"localhost", "127.0.0.1"}
	require.NoError(t, a.openServer())
	first := a.server
	require.NoError(t, first.Leaf.VerifyHostname("127.0.0.1"))
	require.Error(t, first.Leaf.VerifyHostname("trials.home"))
	b := &Authority{log: discard, now: time.Now, dir: a.dir, keys: a.keys, names: []string{"localhost"}}
	require.NoError(t, b.openServer())
	require.Equal(t, first.Leaf.Raw, b.server.Leaf.Raw, "what covers the names is kept")
	b.names = []string{"trials.home"}
	c, err := b.serverCertificate(nil)
	require.NoError(t, err)
	require.NoError(t, c.Leaf.VerifyHostname("trials.home"))
	require.NoError(t, c.Leaf.VerifyHostname("127.0.0.1"), "names are added")
}

var discard = slog.New(slog.DiscardHandler)

// FuzzNodeCertificate: whatever a request says, the certificate is for the token's
// node, of this authority, for a key of a form that agents make.
func FuzzNodeCertificate(f *testing.F) {
	now := time.Now()
	p, err := openKeys(filepath.Join(f.TempDir(), "authority"), now)
	require.NoError(f, err)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(f, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(f, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(f, err)
	for _, key := range []crypto.Signer{p256, p384, ed} {
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "other"}, DNSNames: []string{"x"}}, key)
		require.NoError(f, err)
		f.Add(csr)
		f.Add(csr[:len(csr)-3])
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, csr []byte) {
		cert, err := p.nodeCertificate("n-1", csr, now)
		if err != nil {
			require.ErrorIs(t, err, ErrRequest)
			return
		}
		name, ok := identity.NodeOf(cert)
		require.True(t, ok)
		require.Equal(t, "n-1", name)
		require.NoError(t, cert.CheckSignatureFrom(p.cert))
		require.False(t, cert.IsCA)
		require.Empty(t, cert.DNSNames)
		switch k := cert.PublicKey.(type) {
		case ed25519.PublicKey:
		case *ecdsa.PublicKey:
			require.Equal(t, elliptic.P256(), k.Curve)
		default:
			t.Fatalf("a key of type %T", k)
		}
	})
}
