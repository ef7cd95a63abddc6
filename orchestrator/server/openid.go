package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"linktrial/internal/inputfile"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/provider"
)

// OpenID is the OpenID Connect provider at which people can log in. The zero value is none.
type OpenID struct {
	Issuer, ClientID string
	SecretFile       string   // of the client; empty: the provider asks for none
	Name             string   // for the login page; empty: the issuer's host
	UserClaim        string   // claim with the name of a person
	RoleClaim        string   // claim whose values give roles
	Roles            []string // ROLE=VALUE
	Scopes           []string // beyond openid and profile
	CAFile           string   // authority of the provider's certificate, in PEM; empty: those of the machine
}

// Bounds of the files, in bytes.
const (
	maxClientSecret = 4096
	maxAuthorities  = 1 << 20
)

// open returns the provider, or nil where none is configured. It asks it nothing.
func (o OpenID) open(login bool, log *slog.Logger) (*access.ProviderConfig, error) {
	if o.Issuer == "" {
		if o.ClientID != "" || o.SecretFile != "" || len(o.Roles) > 0 {
			return nil, errors.New("--oidc-issuer is missing: the other flags of the OpenID Connect provider are of no use without it")
		}
		return nil, nil
	}
	if !login {
		return nil, errors.New("--oidc-issuer takes people who log in: start the orchestrator with --login, too")
	}
	cfg := provider.Config{Issuer: o.Issuer, ClientID: o.ClientID, Name: o.Name, UserClaim: o.UserClaim, RoleClaim: o.RoleClaim, Scopes: o.Scopes, Logger: log}
	if o.SecretFile != "" {
		b, err := inputfile.Read(o.SecretFile, maxClientSecret)
		if err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
		if cfg.Secret = strings.TrimSpace(string(b)); cfg.Secret == "" {
			return nil, fmt.Errorf("--oidc-client-secret-file: %s is empty, expected the client's secret", o.SecretFile)
		}
	}
	if o.CAFile != "" {
		b, err := inputfile.Read(o.CAFile, maxAuthorities)
		if err != nil {
			return nil, fmt.Errorf("--oidc-ca: %w", err)
		}
		cfg.Authorities = x509.NewCertPool()
		if !cfg.Authorities.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--oidc-ca: %s has no certificate in PEM", o.CAFile)
		}
	}
	roles := map[access.Role][]string{}
	for _, r := range o.Roles {
		name, value, ok := strings.Cut(r, "=")
		if !ok || value == "" {
			return nil, fmt.Errorf("--oidc-role %q, expected ROLE=VALUE such as admin=linktrial-admins", r)
		}
		role, err := access.ParseRole(name)
		if err != nil {
			return nil, fmt.Errorf("--oidc-role: %w", err)
		}
		roles[role] = append(roles[role], value)
	}
	if len(roles) == 0 {
		return nil, errors.New("--oidc-role is missing: nobody could log in at the provider without a value that gives a role")
	}
	p, err := provider.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("--oidc-issuer: %w", err)
	}
	return &access.ProviderConfig{Provider: p, Roles: roles}, nil
}
