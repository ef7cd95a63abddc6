package people

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/atomicfile"
	"linktrial/internal/identity"
)

func newTrust(s *setting.Settings) *cobra.Command {
	var fingerprint string
	cmd := &cobra.Command{
		Use:     "trust [URL]",
		GroupID: setting.GroupPeople,
		Short:   "Trust the authority of an orchestrator, by its fingerprint",
		Long: `Trust keeps the certificate of an orchestrator's authority in your config folder, so
that your commands accept the orchestrator's certificate. 'linktrial serve' logs the
fingerprint at its start; without --fingerprint you are asked to compare it.`,
		Example: `  linktrial trust https://10.20.0.10:7700`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			base := s.Orchestrator
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
					return fmt.Errorf("the certificate of %s is signed by an authority with fingerprint %s, expected %s: this is not the orchestrator that you mean, or somebody intercepts the connection", base, identity.FormatFingerprint(shown), identity.FormatFingerprint(want))
				}
			} else if err := confirm(base, shown); err != nil {
				return err
			}
			path := client.KeptPath(address)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return fmt.Errorf("trusted authorities: %w", err)
			}
			if err := atomicfile.Write(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600); err != nil {
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
		return fmt.Errorf("the certificate of %s is signed by an authority with fingerprint %s: add --fingerprint with it if it is the one that 'linktrial serve' logged", base, identity.FormatFingerprint(shown))
	}
	fmt.Printf("The certificate of %s is signed by an authority with fingerprint\n  %s\nIs it the one that 'linktrial serve' logged at its start? [yes/no] ", base, identity.FormatFingerprint(shown))
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

// shownAuthority returns the authority that an orchestrator presents. The caller has
// to verify its fingerprint.
func shownAuthority(ctx context.Context, base, address string) (*x509.Certificate, error) {
	var chain []*x509.Certificate
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: client.DialLimit}, Config: &tls.Config{
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
		return nil, fmt.Errorf("the server at %s is not an orchestrator with an authority of its own", base)
	}
	return last, nil
}
