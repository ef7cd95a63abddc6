package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
)

// TokenEnv names the environment variable with an API token, which has precedence over
// the token of a login.
const TokenEnv = "LINKTRIAL_TOKEN"

// Credential is what a login at one orchestrator keeps.
type Credential struct {
	User  string `json:"user"`
	Token string `json:"token"`
}

// credentials are those of the user's config folder, by the orchestrator's URL.
type credentials struct {
	Orchestrators map[string]Credential `json:"orchestrators"`
}

func credentialsPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no folder for credentials: %w", err)
	}
	return filepath.Join(dir, "linktrial", "credentials.json"), nil
}

// ReadCredentials returns an empty value where there are none.
func ReadCredentials() (credentials, error) {
	var c credentials
	path, err := credentialsPath()
	if err != nil {
		return c, nil // a service without a home folder has none
	}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("credentials: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return c, fmt.Errorf("other users can read %s (mode %04o): revoke its tokens with 'linktrial token revoke' if somebody may have read it, then chmod 600 it", path, st.Mode().Perm())
	}
	b, err := inputfile.Read(path, maxCredentials)
	switch {
	case errors.Is(err, inputfile.ErrRefused):
		return c, fmt.Errorf("credentials: %w: remove it and log in again", err)
	case err != nil:
		return c, fmt.Errorf("credentials: %w", err)
	}
	if c, err = parseCredentials(b); err != nil {
		return credentials{}, fmt.Errorf("%s: %w: remove it and log in again", path, err)
	}
	return c, nil
}

// maxCredentials bounds the file, in bytes: a credential has some hundred.
const maxCredentials = 1 << 20

func parseCredentials(b []byte) (credentials, error) {
	var c credentials
	if err := json.Unmarshal(b, &c); err != nil {
		return credentials{}, err
	}
	for at, one := range c.Orchestrators {
		// Each token becomes the header of a call.
		if one.Token != "" && !isToken(one.Token) {
			return credentials{}, fmt.Errorf("the token for %.120q has characters that no token has", at)
		}
	}
	return c, nil
}

// writeCredentials replaces the file atomically, readable by its owner alone.
func writeCredentials(c credentials) error {
	path, err := credentialsPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = atomicfile.Write(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}

// place returns the key of an orchestrator's credentials.
func place(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }

// PlaceOf returns the key of an orchestrator's credentials.
func PlaceOf(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("--orchestrator: %w", err)
	}
	return place(u), nil
}

// KeepCredential writes one orchestrator's credential to the file, or removes it where
// the token is empty.
func KeepCredential(base string, one Credential) error {
	at, err := PlaceOf(base)
	if err != nil {
		return err
	}
	c, err := ReadCredentials()
	if err != nil {
		return err
	}
	if c.Orchestrators == nil {
		c.Orchestrators = map[string]Credential{}
	}
	if one.Token == "" {
		if _, ok := c.Orchestrators[at]; !ok {
			return nil
		}
		delete(c.Orchestrators, at)
	} else {
		c.Orchestrators[at] = one
	}
	return writeCredentials(c)
}

// Private reports whether a URL is encrypted or on the loopback.
func Private(u *url.URL) bool {
	return u.Scheme == "https" || ownMachine(u)
}

// ownMachine reports whether a URL is on the loopback, without asking a resolver.
func ownMachine(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// withCredentials adds a person's token to every call without one, or the local token of
// an orchestrator on this machine, except to those of agents.
func withCredentials(next http.RoundTripper) http.RoundTripper {
	return &bearer{next: next, read: sync.OnceValues(ReadCredentials)}
}

type bearer struct {
	next http.RoundTripper
	read func() (credentials, error)
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" || strings.HasPrefix(r.URL.Path, "/linktrial.v1.AgentService/") {
		return b.next.RoundTrip(r)
	}
	token := os.Getenv(TokenEnv)
	if token != "" && !Private(r.URL) {
		return nil, fmt.Errorf("%s is not sent to %s without encryption: use its https:// address", TokenEnv, place(r.URL))
	}
	if token == "" && Private(r.URL) {
		c, err := b.read()
		if err != nil {
			return nil, err
		}
		token = c.Orchestrators[place(r.URL)].Token
	}
	if token == "" {
		token = Trusted.localToken(r.URL)
	}
	if token == "" {
		return b.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (b *bearer) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
