package provider

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Begun is a login that has begun: where the browser goes, and what it keeps until it comes
// back.
type Begun struct {
	URL    string
	Cookie string
}

// Person is who logged in, as the provider says.
type Person struct {
	Issuer, Subject string
	Name            string   // of the user claim; empty: there is none
	Values          []string // of the role claim
}

// Begin begins a login. The provider sends the browser to redirect; back is a page of the
// orchestrator, and only carried along.
func (p *Provider) Begin(ctx context.Context, redirect, back string) (*Begun, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	a := attempt{State: text(), Nonce: text(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Back: back, Until: p.cfg.Now().Add(attemptLife).Unix()}
	cookie, err := p.seal.close(a)
	if err != nil {
		return nil, err
	}
	return &Begun{Cookie: cookie, URL: p.oauth(found, redirect).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))}, nil
}

// text is 256 random bits.
func text() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return encoding.EncodeToString(b)
}

// End ends a login, with the cookie of its beginning and the parameters that the provider
// sent with the browser. A [NoAnswerError] is the provider's; every other error says in a
// sentence why nobody is logged in.
func (p *Provider) End(ctx context.Context, cookie string, q url.Values) (person *Person, back string, err error) {
	a, err := p.seal.open(cookie, p.cfg.Now())
	if err != nil {
		return nil, "", err
	}
	switch {
	case len(q["state"]) != 1 || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(a.State)) != 1:
		return nil, "", errNoAttempt
	case q.Has("iss") && q.Get("iss") != p.cfg.Issuer: // RFC 9207
		return nil, "", fmt.Errorf("the answer is of the issuer %q, expected %s", line(q.Get("iss")), p.cfg.Issuer)
	case q.Get("error") != "":
		return nil, "", fmt.Errorf("%s logged nobody in: %s", p.cfg.Name, line(q.Get("error")+" "+q.Get("error_description")))
	case len(q["code"]) != 1 || q.Get("code") == "":
		return nil, "", fmt.Errorf("%s sent the browser back without a code", p.cfg.Name)
	}
	found, err := p.discover(ctx)
	if err != nil {
		return nil, "", err
	}
	token, err := p.oauth(found, a.Redirect).Exchange(p.with(ctx), q.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		if r := (*oauth2.RetrieveError)(nil); errors.As(err, &r) && r.ErrorCode != "" {
			return nil, "", fmt.Errorf("%s did not take the code of the login: %s", p.cfg.Name, line(r.ErrorCode+" "+r.ErrorDescription))
		}
		return nil, "", &NoAnswerError{p.cfg.Name, err}
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, "", fmt.Errorf("%s answered without an ID token", p.cfg.Name)
	}
	person, err = p.verify(ctx, found, raw, a.Nonce)
	return person, a.Back, err
}

// verify checks an ID token (OpenID Connect Core 1.0, section 3.1.3.7).
func (p *Provider) verify(ctx context.Context, found *oidc.Provider, raw, nonce string) (*Person, error) {
	refused := func(format string, args ...any) (*Person, error) {
		return nil, fmt.Errorf("the ID token of %s is refused: "+format, append([]any{p.cfg.Name}, args...)...)
	}
	t, err := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: p.cfg.Now}).Verify(p.with(ctx), raw)
	if err != nil {
		return refused("%s", line(err.Error()))
	}
	if subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(nonce)) != 1 {
		return refused("it was made for another login")
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return refused("%s", line(err.Error()))
	}
	azp, given := claims["azp"].(string)
	switch {
	case given && azp != p.cfg.ClientID, !given && len(t.Audience) > 1:
		return refused("it was made for another client")
	case t.Subject == "":
		return refused("it names nobody")
	}
	name, _ := claims[p.cfg.UserClaim].(string)
	return &Person{Issuer: t.Issuer, Subject: t.Subject, Name: name, Values: values(claims[p.cfg.RoleClaim])}, nil
}

// values are those of a claim that is a text or a list of texts.
func values(claim any) []string {
	switch c := claim.(type) {
	case string:
		return []string{c}
	case []any:
		var out []string
		for _, x := range c {
			if s, ok := x.(string); ok && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
