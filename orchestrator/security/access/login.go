package access

import (
	"context"
	"errors"
	"net/http"
	"time"

	"linktrial/orchestrator/security/access/accessdb"
)

// State is what everybody may know of an orchestrator's access.
type State struct {
	LoginRequired bool
	SetupNeeded   bool // the first admin is to be made with the setup token
	OpenToNetwork bool // nobody logs in, though other machines reach the orchestrator
}

// State returns whether and how people log in now.
func (a *Access) State() State {
	good, forced := a.setupState()
	return State{LoginRequired: a.cfg.Required, SetupNeeded: good && !forced, OpenToNetwork: a.cfg.OpenToNetwork}
}

// Caller returns who makes the call. It refuses where the orchestrator requires
// no login: then nobody is known.
func Caller(ctx context.Context) (Principal, error) {
	p, ok := From(ctx)
	if !ok {
		return p, refuse(NotNow, "this orchestrator requires no login: 'linktrial serve --login' does")
	}
	return p, nil
}

// Credentials are what a person logs in with.
type Credentials struct {
	User, Password string
	Code           string // of the second factor, or a recovery code; empty: none was given
	// TokenName is the name of the API token that is made; empty: a session is
	// opened instead.
	TokenName string
	TokenLife time.Duration // zero: 30 days
}

// LoggedIn is what a person got by logging in: a session's cookie or a token.
type LoggedIn struct {
	User    string
	Role    Role
	Expires time.Time
	Token   string       // empty for a session
	Cookie  *http.Cookie // nil for a token
	// CodeNeeded reports that the password is right, and that nobody is logged in before a
	// code is given besides.
	CodeNeeded bool
}

// Login checks a password, and the code of a second factor where the user has one. It opens
// a session or makes a token.
func (a *Access) Login(ctx context.Context, c Credentials) (*LoggedIn, error) {
	if !a.cfg.Required {
		return nil, refuse(NotNow, "this orchestrator requires no login: there is nothing to log in to")
	}
	call := callOf(ctx)
	call.entry.ofLogin(c)
	u, err := a.prove(ctx, c.User, c.Password, call.address, func(u accessdb.User) error { return a.secondFactor(ctx, u.Name, c.Code) })
	if errors.Is(err, errCodeNeeded) {
		return &LoggedIn{CodeNeeded: true}, nil
	}
	if err != nil {
		return nil, err
	}
	role, err := ParseRole(u.Role)
	if err != nil {
		return nil, err
	}
	out := &LoggedIn{User: u.Name, Role: role}
	if c.TokenName != "" {
		err = a.loginWithToken(ctx, c, out)
	} else {
		err = a.loginWithSession(ctx, out)
	}
	if err != nil {
		return nil, err
	}
	now := a.now()
	return out, a.db.UserLoggedIn(ctx, accessdb.UserLoggedInParams{Name: u.Name, LastLoginAt: &now})
}

// ofLogin describes a login in the audit log. A user's name that cannot be one is
// left out: it may be the password, typed into the wrong field.
func (e *entry) ofLogin(c Credentials) {
	if e == nil {
		return
	}
	e.user, e.via, e.detail = "", "password", ""
	if userForm.MatchString(c.User) {
		e.user = c.User
	}
	if c.TokenName != "" {
		e.detail = "token_name=" + quoted(c.TokenName)
	}
}

func (a *Access) loginWithToken(ctx context.Context, c Credentials, out *LoggedIn) error {
	life := c.TokenLife
	if life == 0 {
		life = loginTokenLife
	}
	row, secret, err := a.makeToken(ctx, newToken{user: out.User, name: c.TokenName, role: out.Role, life: life, ofLogin: true})
	if err != nil {
		return err
	}
	out.Token, out.Expires = secret.text(), row.ExpiresAt
	return nil
}

// loginWithSession opens a session, and ends the one that the browser came with:
// it has one at a time.
func (a *Access) loginWithSession(ctx context.Context, out *LoggedIn) error {
	if p, ok := From(ctx); ok && p.session != nil {
		if err := a.endSession(ctx, p.session); err != nil {
			return err
		}
	}
	secret, expires, err := a.openSession(ctx, a.db, out.User, sessionLife)
	if err != nil {
		return err
	}
	out.Expires, out.Cookie = expires, sessionCookie(secret.text(), callOf(ctx).secure, int(sessionLife/time.Second))
	return nil
}

// Logout revokes the token or ends the session that the call was made with. The
// cookie, which is nil for a token, removes the session's from the browser.
func (a *Access) Logout(ctx context.Context, p Principal) (*http.Cookie, error) {
	if p.token != "" {
		_, err := a.RevokeToken(ctx, p, p.token)
		return nil, err
	}
	return sessionCookie("", callOf(ctx).secure, -1), a.endSession(ctx, p.session)
}

// ChangePassword sets a new password where the current one is right, and ends all
// sessions and tokens of the user but the login that called. The cookie, which is nil for a token, is of a new session
// for the browser that called.
func (a *Access) ChangePassword(ctx context.Context, p Principal, current, password string) (*http.Cookie, error) {
	c := callOf(ctx)
	if _, err := a.prove(ctx, p.User, current, c.address, nil); err != nil {
		return nil, known(err, "the current password is wrong")
	}
	keep := ""
	if p.ofLogin {
		keep = p.token
	}
	if err := a.setPassword(ctx, p.User, password, keep); err != nil {
		return nil, err
	}
	if p.session == nil {
		return nil, nil
	}
	secret, _, err := a.openSession(ctx, a.db, p.User, sessionLife)
	if err != nil {
		return nil, err
	}
	return sessionCookie(secret.text(), c.secure, int(sessionLife/time.Second)), nil
}
