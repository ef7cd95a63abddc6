// Package providertest is a small OpenID Connect provider for tests: it signs real tokens
// with real keys and speaks HTTP. Comes in: who is at the provider's login page, and what
// is to be wrong with its answers. Goes out: codes and ID tokens.
package providertest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Provider is a running provider. Its fields may be changed between requests.
type Provider struct {
	URL              string
	ClientID, Secret string
	Redirects        []string // that it sends browsers to; it refuses others

	mu     sync.Mutex
	claims map[string]any
	change func(header, claims map[string]any)
	key    *rsa.PrivateKey // signs; may be another than the one that it shows
	shown  *rsa.PrivateKey
	codes  map[string]asked
	away   bool
	server *httptest.Server
	now    func() time.Time
}

// asked is a login that waits for its code to be exchanged.
type asked struct {
	nonce, challenge, redirect string
	used                       bool
}

// New starts a provider, which ends with the test.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	if now == nil {
		now = time.Now
	}
	p := &Provider{ClientID: "linktrial", Secret: "the client's secret", codes: map[string]asked{}, now: now, key: NewKey(t)}
	p.shown = p.key
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		if away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.URL = p.server.URL
	return p
}

// NewKey is a signing key.
func NewKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Says sets the claims of the person who is at the login page.
func (p *Provider) Says(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims, p.change = claims, nil
}

// Wrong has ID tokens changed before they are signed; nil: they are right.
func (p *Provider) Wrong(change func(header, claims map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change = change
}

// SignWith has tokens signed with another key than the one that the provider shows; nil:
// with that one.
func (p *Provider) SignWith(key *rsa.PrivateKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.key = key; key == nil {
		p.key = p.shown
	}
}

// Away has the provider answer nothing.
func (p *Provider) Away(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a caller that is gone
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "none"}, "code_challenge_methods_supported": []string{"S256"}})
}

var encoding = base64.RawURLEncoding

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encoding.EncodeToString(p.shown.N.Bytes()), "e": encoding.EncodeToString(big.NewInt(int64(p.shown.E)).Bytes())}}})
}

// authorize is the login page: it asks nothing, and sends the browser back at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	redirect := q.Get("redirect_uri")
	known := false
	for _, u := range p.Redirects {
		known = known || u == redirect
	}
	if q.Get("client_id") != p.ClientID || !known || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "this provider does not know the client or the address "+redirect, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = asked{nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), redirect: redirect}
	p.mu.Unlock()
	http.Redirect(w, r, redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if s, err := url.QueryUnescape(secret); err == nil {
		secret = s // RFC 6749, section 2.3.1
	}
	if id != p.ClientID || secret != p.Secret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	a, found := p.codes[r.PostFormValue("code")]
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !found || a.used || a.redirect != r.PostFormValue("redirect_uri") || a.challenge != encoding.EncodeToString(challenge[:]) {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	a.used = true
	p.codes[r.PostFormValue("code")] = a
	answer(w, http.StatusOK, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(a.nonce)})
}

// sign makes an ID token. Where the header says none, there is no signature.
func (p *Provider) sign(nonce string) string {
	now := p.now()
	header := map[string]any{"alg": "RS256", "kid": "1", "typ": "JWT"}
	claims := map[string]any{"iss": p.URL, "aud": p.ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": nonce}
	for k, v := range p.claims {
		claims[k] = v
	}
	if p.change != nil {
		p.change(header, claims)
	}
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // a claim of a test that is no JSON
		}
		return encoding.EncodeToString(b)
	}
	text := part(header) + "." + part(claims)
	if header["alg"] == "none" {
		return text + "."
	}
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, hash[:])
	if err != nil {
		panic(err)
	}
	return text + "." + encoding.EncodeToString(signature)
}
