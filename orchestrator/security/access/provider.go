package access

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/security/access/accessdb"
	"linktrial/orchestrator/security/provider"
	"linktrial/orchestrator/store"
)

// Paths of a login at the OpenID Connect provider: where it begins, and where the provider
// sends the browser back to.
const (
	ProviderPath       = "/login/provider"
	ProviderReturnPath = "/login/provider/return"
)

// providerSessionLife is how long a session of a provider's user lasts: what the provider says
// of the person is asked again after it.
const providerSessionLife = 12 * time.Hour

// maxBack bounds the address of the page that a login leads back to, in bytes.
const maxBack = 2000

// ProviderConfig is the OpenID Connect provider of people, and which roles its values give.
type ProviderConfig struct {
	Provider *provider.Provider
	Roles    map[Role][]string // values of the role claim
}

// ProviderState returns the name of the provider, and why it does not answer; both are empty
// where there is none.
func (a *Access) ProviderState() (name, problem string) {
	if a.cfg.Provider == nil {
		return "", ""
	}
	return a.cfg.Provider.Provider.Name(), a.cfg.Provider.Provider.Problem()
}

// Mount adds the pages of logins at the provider, where there is one.
func (a *Access) Mount(mux *http.ServeMux) {
	if a.cfg.Provider == nil || !a.cfg.Required {
		return
	}
	mux.HandleFunc("GET "+ProviderPath, a.beginProvider)
	mux.HandleFunc("GET "+ProviderReturnPath, a.endProvider)
}

// attemptCookie is the cookie of a login that has begun. The provider's site sends the
// browser back, so it is not strict about the site; it is no login.
func attemptCookie(value string, secure bool, maxAgeSeconds int) *http.Cookie {
	c := sessionCookie(value, secure, maxAgeSeconds)
	c.Name += "-attempt"
	c.SameSite = http.SameSiteLaxMode
	return c
}

const attemptSeconds = 600

func (a *Access) beginProvider(w http.ResponseWriter, r *http.Request) {
	redirect, err := redirectTo(r)
	if err != nil {
		a.providerPage(w, http.StatusForbidden, err.Error())
		return
	}
	begun, err := a.cfg.Provider.Provider.Begin(r.Context(), redirect, safeBack(r.URL.Query().Get("back")))
	if err != nil {
		a.providerFailed(w, err)
		return
	}
	http.SetCookie(w, attemptCookie(begun.Cookie, r.TLS != nil, attemptSeconds))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, begun.URL, http.StatusFound)
}

// redirectTo is the address that the provider sends the browser back to: the one under which
// the browser reached this orchestrator. Names are the orchestrator's own, or the request
// were not answered (orchestrator/security/admission); an address must be the one that was called.
func redirectTo(r *http.Request) (string, error) {
	if at, err := netip.ParseAddr(strings.Trim(hostOf(r), "[]")); err == nil {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if local == nil || local.AddrPort().Addr().Unmap() != at.Unmap() {
			return "", fmt.Errorf("the request is for the address %s, which is not the one that it came to: open the orchestrator by its own address or by a name of --allow-host", at)
		}
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + ProviderReturnPath, nil
}

// safeBack is an address within these pages.
func safeBack(back string) string {
	if !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || strings.HasPrefix(back, "/login") || len(back) > maxBack ||
		strings.ContainsFunc(back, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	return back
}

func (a *Access) endProvider(w http.ResponseWriter, r *http.Request) {
	ctx, c := r.Context(), callOf(r.Context())
	name := a.cfg.Provider.Provider.Name()
	e := newEntry(Principal{Via: "provider " + name}, c, "AccessService", "ProviderLogin")
	e.anonymous = true
	c.entry = e
	defer a.keep(ctx, e)

	secret := ""
	if sent, err := r.Cookie(attemptCookie("", r.TLS != nil, 0).Name); err == nil {
		secret = sent.Value
	}
	http.SetCookie(w, attemptCookie("", r.TLS != nil, -1))
	person, back, err := a.cfg.Provider.Provider.End(ctx, secret, r.URL.Query())
	if err != nil {
		e.outcome, e.message = outcomeRefused, err.Error()
		a.providerFailed(w, err)
		return
	}
	e.detail = "subject=" + quoted(person.Subject)
	user, err := a.signIn(ctx, person)
	if user != "" {
		e.user = user
	}
	var cookie *http.Cookie
	if err == nil {
		cookie, err = a.providerSession(ctx, user, c.secure)
	}
	if err != nil {
		coded := a.coded(r, err)
		e.outcome, e.message = outcomeOf(coded)
		a.providerPage(w, http.StatusForbidden, coded.Message())
		return
	}
	e.outcome, e.message = outcomeDone, ""
	http.SetCookie(w, cookie)
	a.providerBack(w, back)
}

func (a *Access) providerSession(ctx context.Context, user string, secure bool) (*http.Cookie, error) {
	secret, _, err := a.openSession(ctx, a.db, user, providerSessionLife)
	if err != nil {
		return nil, err
	}
	now := a.now()
	if err := a.db.UserLoggedIn(ctx, accessdb.UserLoggedInParams{Name: user, LastLoginAt: &now}); err != nil {
		return nil, fmt.Errorf("keep a login: %w", err)
	}
	return sessionCookie(secret.text(), secure, int(providerSessionLife/time.Second)), nil
}

// providerRole is the greatest role that the provider's values give.
func (a *Access) providerRole(values []string) Role {
	for role := Admin; role > None; role-- {
		if slices.ContainsFunc(a.cfg.Provider.Roles[role], func(v string) bool { return slices.Contains(values, v) }) {
			return role
		}
	}
	return None
}

// signIn returns the user who a person of the provider is here, and makes that one at the
// first login. The role is what the provider's values give now; without one, what the user
// still holds ends. The name is returned also where the login is refused, if it is known.
func (a *Access) signIn(ctx context.Context, p *provider.Person) (name string, err error) {
	at, role := a.cfg.Provider.Provider.Name(), a.providerRole(p.Values)
	ended := false
	err = a.store.InTx(ctx, func(tx store.Conn) error {
		q := accessdb.New(tx)
		name, err = q.ProviderAccount(ctx, accessdb.ProviderAccountParams{Issuer: p.Issuer, Subject: p.Subject})
		switch {
		case errors.Is(err, pgx.ErrNoRows) && role == None:
			return a.noRole(at)
		case errors.Is(err, pgx.ErrNoRows):
			name, err = a.newProviderUser(ctx, q, p, role)
			return err
		case err != nil:
			return err
		}
		u, err := q.UserForUpdate(ctx, name)
		switch {
		case err != nil:
			return err
		case u.Disabled:
			return refuse(NotAllowed, "the account of %s is disabled: an admin can enable it", name)
		case role == None:
			ended = true
			now := a.now()
			if err := q.RevokeTokensOf(ctx, accessdb.RevokeTokensOfParams{Now: &now, UserName: name}); err != nil {
				return err
			}
			return q.DeleteSessionsOf(ctx, name)
		case u.Role != role.String():
			_, err = q.SetUserRole(ctx, accessdb.SetUserRoleParams{Name: name, Role: role.String()})
			return err
		}
		return nil
	})
	if ended && err == nil {
		a.endStreams(func(o Principal) bool { return o.User == name })
		err = a.noRole(at)
	}
	return name, wrap("log a person of the provider in", err)
}

func (a *Access) noRole(at string) error {
	return refuse(NotAllowed, "%s knows you, and what it says of you gives no role here: an admin of the orchestrator can say which values of its claim %q give one", at, a.cfg.Provider.Provider.RoleClaim())
}

func (a *Access) newProviderUser(ctx context.Context, q *accessdb.Queries, p *provider.Person, role Role) (string, error) {
	name := strings.ToLower(p.Name)
	if !userForm.MatchString(name) {
		return "", refuse(NotAllowed, "the name %q, which %s has for you, can be no name here, expected a letter and at most 31 more letters, digits, dots, hyphens or underscores: an admin of the orchestrator can choose another claim", shortened(clean(p.Name), 40), a.cfg.Provider.Provider.Name())
	}
	n, err := q.InsertUser(ctx, accessdb.InsertUserParams{Name: name, Role: role.String(), CreatedAt: a.now()})
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", refuse(Exists, "there is a user %s here already, who is somebody else for %s: a local account, or another person's", name, a.cfg.Provider.Provider.Name())
	}
	return name, q.InsertProviderAccount(ctx, accessdb.InsertProviderAccountParams{UserName: name, Issuer: p.Issuer, Subject: p.Subject})
}

// providerFailed shows why a login at the provider came to nothing.
func (a *Access) providerFailed(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if away := (*provider.NoAnswerError)(nil); errors.As(err, &away) {
		status = http.StatusBadGateway
	}
	a.providerPage(w, status, err.Error())
}

// page is shown instead of the login, with what went wrong, or for the moment in which the
// browser goes on. A redirect would not do: the browser comes from the provider's site, and
// sends a strict cookie only where one of our own pages leads on.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Log in · Linktrial</title>
{{if .Back}}<meta http-equiv="refresh" content="0;url={{.Back}}">{{end}}
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:12vh auto;padding:0 1.2rem}h1{font-size:1.4rem}</style></head>
<body><main>{{if .Back}}<p>You are logged in. <a href="{{.Back}}">Go on</a></p>{{else}}<h1>Nobody is logged in</h1><p role="alert">{{.Problem}}</p><p><a href="/login">To the login page</a></p>{{end}}</main></body></html>
`))

func (a *Access) providerBack(w http.ResponseWriter, back string) {
	a.writePage(w, http.StatusOK, map[string]string{"Back": safeBack(back)})
}

func (a *Access) providerPage(w http.ResponseWriter, status int, problem string) {
	problem = strings.ToUpper(problem[:1]) + problem[1:] + "."
	a.writePage(w, status, map[string]string{"Problem": problem})
}

func (a *Access) writePage(w http.ResponseWriter, status int, data map[string]string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the address has the code
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	w.WriteHeader(status)
	if err := page.Execute(w, data); err != nil {
		a.log.Debug("a page was not delivered", "error", err)
	}
}
