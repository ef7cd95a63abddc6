// Command quic is the driver of QUIC (RFC 9000) with the library quic-go. Comes
// in and goes out: the driver contract (docs/driver-contract.md). May import: the
// contract, the harness, protocoltest (tests).
//
// A connection carries the transfer on one stream, which the server opens: it
// has the first byte to send. TLS encrypts with a certificate that the server
// makes in memory and the client does not check: the ends do not authenticate
// each other, only the cost of encryption is there.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"math/big"
	"os"
	"runtime/debug"
	"time"

	"github.com/quic-go/quic-go"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	harness.Main(manifest, harness.Driver{Query: query, Listen: listen, Dial: dial})
}

// library is the module that carries the data.
const library = "github.com/quic-go/quic-go"

func query(context.Context, *contract.Parameters) (*contract.Info, error) {
	return &contract.Info{Implementation: implementation()}, nil
}

// implementation is the library with its version, as it was built in.
func implementation() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range b.Deps {
			if m.Path == library {
				return "quic-go " + m.Version
			}
		}
	}
	return "quic-go"
}

// nextProtocol is what both ends name in the handshake (ALPN, RFC 7301).
const nextProtocol = "linktrial"

// forever is a time that no outage reaches: the limits of the transfer end it,
// never a timer of the protocol (driver contract, L6).
const forever = 365 * 24 * time.Hour

// settings are a connection's, from the options of the plan.
type settings struct {
	quic *quic.Config
	tls  *tls.Config
}

func newSettings(p *contract.Parameters) (settings, error) {
	s := settings{
		quic: &quic.Config{
			HandshakeIdleTimeout:           forever,
			MaxIdleTimeout:                 forever,
			InitialStreamReceiveWindow:     uint64(size(p, "stream_window")),
			MaxStreamReceiveWindow:         uint64(size(p, "stream_window_max")),
			InitialConnectionReceiveWindow: uint64(size(p, "connection_window")),
			MaxConnectionReceiveWindow:     uint64(size(p, "connection_window_max")),
			InitialPacketSize:              uint16(size(p, "packet")),
		},
		tls: &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{nextProtocol}, SessionTicketsDisabled: true},
	}
	for _, of := range []string{"stream", "connection"} {
		if begin, most := size(p, of+"_window"), size(p, of+"_window_max"); begin > most {
			return s, harness.Failf(contract.CodeBadParameters, "options.%s_window is %d, expected at most options.%[1]s_window_max (%d)", of, begin, most)
		}
	}
	if on, ok := p.Options["mtu_discovery"].(bool); ok {
		s.quic.DisablePathMTUDiscovery = !on
	}
	if on, ok := p.Options["ecn"].(bool); ok && !on {
		// The library has no other switch.
		if err := os.Setenv("QUIC_GO_DISABLE_ECN", "true"); err != nil {
			return s, fmt.Errorf("option ecn: %w", err)
		}
	}
	switch x, _ := p.Options["key_exchange"].(string); x {
	case "x25519mlkem768":
		s.tls.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768}
	case "x25519":
		s.tls.CurvePreferences = []tls.CurveID{tls.X25519}
	case "p256":
		s.tls.CurvePreferences = []tls.CurveID{tls.CurveP256}
	}
	return s, nil
}

// size is an option's number of bytes, 0 where the plan says nothing.
func size(p *contract.Parameters, name string) int {
	n, _ := p.Options[name].(int64)
	return int(n)
}

// certificate is one that nobody checks, made anew by every server.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	// Valid whatever the node's clock says.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
