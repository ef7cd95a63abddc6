package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"linktrial/internal/identity"
	"linktrial/internal/inputfile"
	"linktrial/orchestrator/security/authority"
)

// Trust is where trusted authorities come from, besides those of the machine: --ca,
// the data folder of an orchestrator on this machine, and 'linktrial trust'.
type Trust struct {
	CAFile string // of --ca; can be empty
	Data   string // folder of an orchestrator on this machine
	// Packaged is the data folder of the orchestrator that a package has installed here.
	Packaged string
}

// Trusted is set when the flags have been parsed.
var Trusted Trust

// untrustedError reports an orchestrator whose authority is not trusted.
type untrustedError struct {
	url, fingerprint string
	cause            error
}

func (e *untrustedError) Error() string {
	if e.fingerprint == "" {
		return fmt.Sprintf("the certificate of %s is not trusted: %v", e.url, e.cause)
	}
	return fmt.Sprintf("the certificate of %s is signed by an authority that is not trusted here, with fingerprint %s: compare it with the one that 'linktrial serve' logged at its start, then run 'linktrial trust %s', or name the authority's certificate with --ca FILE",
		e.url, e.fingerprint, e.url)
}

func (e *untrustedError) Unwrap() error { return e.cause }

// DialLimit bounds a handshake.
const DialLimit = 15 * time.Second

func (t Trust) dial(ctx context.Context, network, address string) (net.Conn, error) {
	pool, err := t.pool(address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{ServerName: host, RootCAs: pool, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: DialLimit}, Config: cfg}
	c, err := d.DialContext(ctx, network, address)
	if err == nil {
		return c, nil
	}
	var bad *tls.CertificateVerificationError
	if !errors.As(err, &bad) {
		return nil, err
	}
	u := &untrustedError{url: "https://" + address, cause: bad.Err}
	var unknown x509.UnknownAuthorityError
	if last := bad.UnverifiedCertificates[len(bad.UnverifiedCertificates)-1]; errors.As(bad.Err, &unknown) && last.IsCA {
		u.fingerprint = identity.FormatFingerprint(identity.Fingerprint(last))
	}
	return nil, u
}

// maxAuthorities bounds a file of certificates, in bytes: all of a browser's have some
// hundred thousand.
const maxAuthorities = 1 << 20

func (t Trust) pool(address string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without authorities
	}
	if t.CAFile != "" {
		b, err := inputfile.Read(t.CAFile, maxAuthorities)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		if !pool.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--ca: %s: expected a CERTIFICATE in PEM, found none", t.CAFile)
		}
	}
	kept := []string{KeptPath(address)}
	for _, dir := range t.Folders() {
		kept = append(kept, filepath.Join(dir, authority.Folder, "ca.crt"))
	}
	for _, path := range kept {
		b, err := inputfile.Read(path, maxAuthorities)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		case err != nil:
			return nil, fmt.Errorf("trusted authorities: %w", err)
		case !pool.AppendCertsFromPEM(b):
			return nil, fmt.Errorf("trusted authorities: %s: expected a CERTIFICATE in PEM, found none", path)
		}
	}
	return pool, nil
}

// KeptPath returns where 'linktrial trust' keeps the authority of an orchestrator.
func KeptPath(address string) string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return os.DevNull + "/none" // a service without a home folder keeps none
	}
	return filepath.Join(dir, "linktrial", "authorities", strings.NewReplacer(":", "_", "/", "_").Replace(address)+".crt")
}

// KeptAuthorities returns the authorities that this machine trusts: those of 'linktrial
// trust', and of orchestrators on this machine.
func (t Trust) KeptAuthorities() ([]*x509.Certificate, error) {
	kept, err := filepath.Glob(KeptPath("*"))
	if err != nil {
		return nil, fmt.Errorf("trusted authorities: %w", err)
	}
	for _, dir := range t.Folders() {
		kept = append(kept, filepath.Join(dir, authority.Folder, "ca.crt"))
	}
	var out []*x509.Certificate
	for _, path := range kept {
		b, err := inputfile.Read(path, maxAuthorities)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			continue
		case err != nil:
			return nil, fmt.Errorf("trusted authorities: %w", err)
		}
		block, _ := pem.Decode(b)
		if block == nil {
			return nil, fmt.Errorf("trusted authorities: %s: expected a CERTIFICATE in PEM, found none", path)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("trusted authorities: %s: %w", path, err)
		}
		out = append(out, cert)
	}
	return out, nil
}
