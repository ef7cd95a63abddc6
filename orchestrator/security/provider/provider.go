// Package provider logs people in at an OpenID Connect provider, with the authorization
// code flow and PKCE (OpenID Connect Core 1.0, RFC 7636). Comes in: a browser that begins
// a login, and the same browser when the provider sends it back. Goes out: where to send
// the browser, and what the provider says of the person. What that person may do here,
// orchestrator/security/access decides.
//
// Between the two requests the orchestrator keeps nothing: what it must know again is in
// the browser's cookie, sealed with a key of this process.
package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"linktrial/internal/backoff"
	"linktrial/internal/loopback"
	"linktrial/internal/service"
)

const (
	answerLimit = 8 * time.Second // of one request to the provider
	maxAnswer   = 1 << 20         // bytes
	checkEvery  = time.Minute
)

// Config says which provider, and what it knows this orchestrator as.
type Config struct {
	Issuer, ClientID string
	Secret           string // empty: a public client, which PKCE alone protects
	Name             string // for people; empty: the issuer's host
	Scopes           []string
	// UserClaim and RoleClaim name the claims of an ID token with a person's name and with
	// what gives a role.
	UserClaim, RoleClaim string
	Authorities          *x509.CertPool // that certify the provider's server; nil: those of the machine
	Logger               *slog.Logger
	Now                  func() time.Time // nil: time.Now
}

// Provider is one OpenID Connect provider. Its methods may be called from several
// goroutines.
type Provider struct {
	cfg    Config
	client *http.Client
	seal   *seal

	mu      sync.Mutex
	found   *oidc.Provider // nil: it has not answered yet
	problem string         // why it does not answer; empty: it does

	stop func() // nil: not started
}

// New checks the configuration, and asks nobody.
func New(cfg Config) (*Provider, error) {
	u, err := url.Parse(cfg.Issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("issuer %q, expected a URL such as https://login.example/realms/lab", cfg.Issuer)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback.Only(context.Background(), u.Hostname())):
		return nil, fmt.Errorf("issuer %q, expected one that begins with https://: who can change its answers could log in as anybody", cfg.Issuer)
	case cfg.ClientID == "":
		return nil, errors.New("no client id: the provider knows this orchestrator by one")
	}
	if cfg.Name == "" {
		cfg.Name = u.Host
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s, err := newSeal()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: cfg.Authorities, MinVersion: tls.VersionTLS12}, MaxIdleConns: 2, IdleConnTimeout: 10 * time.Second}
	return &Provider{cfg: cfg, seal: s, problem: "it has not answered yet", client: &http.Client{Timeout: answerLimit, Transport: bounded{transport}}}, nil
}

// bounded bounds the bodies of answers.
type bounded struct{ next *http.Transport }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxAnswer), res.Body}
	return res, nil
}

// CloseIdleConnections is called by http.Client.
func (b bounded) CloseIdleConnections() { b.next.CloseIdleConnections() }

// Start asks the provider now and then whether it answers, until [Provider.Stop].
func (p *Provider) Start(ctx context.Context) {
	p.stop = service.Go(context.WithoutCancel(ctx), func(ctx context.Context) {
		for ok := true; ok; ok = backoff.Sleep(ctx, checkEvery) {
			_, _ = p.discover(ctx) // State has the error
		}
	})
}

// Stop ends what Start began.
func (p *Provider) Stop() {
	if p.stop != nil {
		p.stop()
	}
	p.client.CloseIdleConnections()
}

// Name is the provider's name for people.
func (p *Provider) Name() string { return p.cfg.Name }

// RoleClaim is the name of the claim that gives roles.
func (p *Provider) RoleClaim() string { return p.cfg.RoleClaim }

// Problem is why the provider did not answer when it was asked last; empty: it did.
func (p *Provider) Problem() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problem
}

// NoAnswerError reports that the provider did not answer, or not as one.
type NoAnswerError struct {
	Name string
	Err  error
}

func (e *NoAnswerError) Error() string { return e.Name + " does not answer: " + reason(e.Err) }
func (e *NoAnswerError) Unwrap() error { return e.Err }

// status is how an error of the library begins that is an answer; the answer's body follows.
var status = regexp.MustCompile(`^[1-5]\d\d [A-Za-z -]*`)

// reason is why the provider does not answer, in a few words for everybody: the login page
// shows it, and where the provider is within a network is nobody's business there.
func reason(err error) string {
	var certificate *tls.CertificateVerificationError
	var net *url.Error
	switch {
	case errors.As(err, &certificate):
		return "its certificate is not trusted here"
	case errors.As(err, &net) && net.Timeout():
		return fmt.Sprintf("no answer within %d s", int(answerLimit.Seconds()))
	case errors.As(err, &net):
		return "no connection"
	}
	if s := status.FindString(err.Error()); s != "" {
		return strings.TrimSpace(s)
	}
	return line(err.Error())
}

// line is a text of the provider as one line for people.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if r := []rune(s); len(r) > maxLine {
		s = string(r[:maxLine]) + "…"
	}
	return s
}

const maxLine = 200

// discover asks the provider for its endpoints (OpenID Connect Discovery 1.0). An answer of
// another issuer is none.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	found, err := oidc.NewProvider(p.with(ctx), p.cfg.Issuer)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.problem == "" {
			p.cfg.Logger.Warn("the OpenID Connect provider does not answer; local accounts still log in", "issuer", p.cfg.Issuer, "error", err)
		}
		p.problem = reason(err)
		return nil, &NoAnswerError{p.cfg.Name, err}
	}
	if p.problem != "" {
		p.cfg.Logger.Info("the OpenID Connect provider answers", "issuer", p.cfg.Issuer)
	}
	p.problem = ""
	// The first one knows the provider's keys already.
	if p.found == nil || p.found.Endpoint() != found.Endpoint() {
		p.found = found
	}
	return p.found, nil
}

func (p *Provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

func (p *Provider) oauth(found *oidc.Provider, redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.cfg.Secret, Endpoint: found.Endpoint(), RedirectURL: redirect,
		Scopes: append([]string{oidc.ScopeOpenID, "profile"}, p.cfg.Scopes...)}
}
