package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linktrial/internal/identity"
	"linktrial/orchestrator/authority"
)

// trust is which orchestrators a person's programs believe: those of the
// machine's authorities, of --ca, of the data folder on this machine, and of
// what 'linktrial trust' kept.
type trust struct {
	caFile string // of --ca; can be empty
	data   string // folder of an orchestrator on this machine
}

// peopleTrust is set when flags have been read.
var peopleTrust trust

// untrustedError reports an orchestrator whose authority nobody has said to trust.
type untrustedError struct {
	url, fingerprint string
	cause            error
}

func (e *untrustedError) Error() string {
	if e.fingerprint == "" {
		return fmt.Sprintf("the certificate that %s shows is not trusted: %v", e.url, e.cause)
	}
	return fmt.Sprintf("%s is of an authority that is not trusted here, with fingerprint %s: compare it with what 'linktrial serve' logged at its start, then say 'linktrial trust %s', or name its certificate with --ca FILE",
		e.url, e.fingerprint, e.url)
}

func (e *untrustedError) Unwrap() error { return e.cause }

// dialLimit bounds a handshake.
const dialLimit = 15 * time.Second

func (t trust) dial(ctx context.Context, network, address string) (net.Conn, error) {
	pool, err := t.pool(address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{ServerName: host, RootCAs: pool, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialLimit}, Config: cfg}
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

func (t trust) pool(address string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without authorities of its own
	}
	if t.caFile != "" {
		b, err := os.ReadFile(t.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		if !pool.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--ca: %s: expected a CERTIFICATE in PEM, found none", t.caFile)
		}
	}
	for _, path := range []string{filepath.Join(t.data, authority.Folder, "ca.crt"), keptPath(address)} {
		b, err := os.ReadFile(path)
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

// keptPath is where the authority of an orchestrator is kept for this user.
func keptPath(address string) string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return os.DevNull + "/none" // a daemon without a home keeps nothing
	}
	return filepath.Join(dir, "linktrial", "authorities", strings.NewReplacer(":", "_", "/", "_").Replace(address)+".crt")
}

func newTrust(s *settings) *cobra.Command {
	var fingerprint string
	cmd := &cobra.Command{
		Use:   "trust [URL]",
		Short: "Trust the authority of an orchestrator, by its fingerprint",
		Long: `Trust keeps the authority's certificate of an orchestrator in your config folder,
so that your commands believe that orchestrator. 'linktrial serve' logs the
fingerprint at its start; without --fingerprint you are asked to compare it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			base := s.orchestrator
			if len(args) > 0 {
				base = args[0]
			}
			address, err := hostPort(base)
			if err != nil {
				return err
			}
			cert, err := shownAuthority(cmd.Context(), base, address)
			if err != nil {
				return err
			}
			shown := identity.Fingerprint(cert)
			if fingerprint != "" {
				want, err := identity.ParseFingerprint(fingerprint)
				if err != nil {
					return err
				}
				if want != shown {
					return fmt.Errorf("%s is of an authority with fingerprint %s, expected %s: this is not the orchestrator that you mean, or somebody is in between", base, identity.FormatFingerprint(shown), identity.FormatFingerprint(want))
				}
			} else if err := confirm(base, shown); err != nil {
				return err
			}
			path := keptPath(address)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return fmt.Errorf("trusted authorities: %w", err)
			}
			if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600); err != nil {
				return fmt.Errorf("trusted authorities: %w", err)
			}
			fmt.Printf("%s is trusted\n", base)
			return nil
		},
	}
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "SHA-256 of the authority's certificate, in hex")
	return cmd
}

func confirm(base string, shown [sha256.Size]byte) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return fmt.Errorf("%s is of an authority with fingerprint %s: say so with --fingerprint if it is the one that 'linktrial serve' logged", base, identity.FormatFingerprint(shown))
	}
	fmt.Printf("%s is of an authority with fingerprint\n  %s\nIs it the one that 'linktrial serve' logged at its start? [yes/no] ", base, identity.FormatFingerprint(shown))
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(line) != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

func hostPort(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return "", fmt.Errorf("orchestrator %q, expected a URL that begins with https://", base)
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443"), nil
	}
	return u.Host, nil
}

// shownAuthority is the authority that an orchestrator shows; whether it is
// the right one is for others to say.
func shownAuthority(ctx context.Context, base, address string) (*x509.Certificate, error) {
	var chain []*x509.Certificate
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialLimit}, Config: &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: identity.OrchestratorName, InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error { chain = cs.PeerCertificates; return nil },
	}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", base, identity.Explain(base, err))
	}
	c.Close()
	last := chain[len(chain)-1]
	if !last.IsCA || chain[0].CheckSignatureFrom(last) != nil {
		return nil, fmt.Errorf("what answers at %s is no orchestrator with an authority of its own", base)
	}
	return last, nil
}
