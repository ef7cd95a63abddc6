package identity

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"linktrial/internal/identity"
)

func FuzzParse(f *testing.F) {
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	b, err := keyPEM(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil))
	f.Add(b)
	f.Add(append(b, []byte(strings.Repeat("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", 2))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := parse(b); err == nil && (i.key == nil || i.cert == nil || i.authority == nil || i.Name() == "") {
			t.Fatal("half an identity")
		}
	})
}

// FuzzAccept: of the certificates that an orchestrator may answer with, only one for
// the node's key and name is taken.
func FuzzAccept(f *testing.F) {
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	other, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, other.Public(), other)
	if err != nil {
		f.Fatal(err)
	}
	trusted, err := x509.ParseCertificate(root)
	if err != nil {
		f.Fatal(err)
	}
	for _, public := range []crypto.PublicKey{key.Public(), other.Public()} {
		for _, name := range []string{"n-1", "n-2"} {
			der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: authority.NotAfter, URIs: []*url.URL{identity.NodeURI(name)}}, trusted, public, other)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(der)
			f.Add(der[:len(der)-1])
		}
	}
	f.Add(root)
	f.Fuzz(func(t *testing.T, der []byte) {
		i := &Identity{key: key, authority: trusted}
		if err := i.accept(der, "n-1"); err != nil {
			return
		}
		if name, ok := identity.NodeOf(i.cert); !ok || name != "n-1" {
			t.Fatalf("a certificate for %q", name)
		}
		if !i.cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()) {
			t.Fatal("a certificate for another key")
		}
	})
}
