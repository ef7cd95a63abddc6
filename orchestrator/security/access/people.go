package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/security/access/accessdb"
	"linktrial/orchestrator/store"
)

// Users returns all users, by name.
func (a *Access) Users(ctx context.Context) ([]User, error) {
	now := a.now()
	return a.db.Users(ctx, accessdb.UsersParams{Now: now, IdleSince: now.Add(-sessionIdle)})
}

var userForm = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,31}$`)

func checkName(name string) error {
	if !userForm.MatchString(name) {
		return refuse(Invalid, "name %q of a user, expected a lower-case letter and at most 31 more letters, digits, dots, hyphens or underscores", shortened(clean(name), 40))
	}
	return nil
}

// prove returns the user where the password is right, and second, which may be nil, finds
// nothing wrong. It refuses more attempts than the limits allow; those before are forgotten
// only where both are right.
func (a *Access) prove(ctx context.Context, name, password, from string, second func(accessdb.User) error) (accessdb.User, error) {
	if !userForm.MatchString(name) {
		name = "" // nobody has it, so it is neither looked up nor kept; it takes as long
	}
	if wait := a.limit.take(name, from); wait > 0 {
		return accessdb.User{}, a.tooMany(ctx, a.limit, "passwords", wait)
	}
	u, err := a.db.User(ctx, name)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return accessdb.User{}, fmt.Errorf("look up user: %w", err)
	}
	// For a user that there is not, it takes as long and ends the same.
	ok, stale, err := a.hasher.verify(ctx, password, u.Password)
	if err != nil {
		return accessdb.User{}, fmt.Errorf("check the password of %s: %w", name, err)
	}
	if !ok {
		return accessdb.User{}, refuse(Unauthenticated, "the name or the password is wrong")
	}
	if u.Disabled {
		return accessdb.User{}, refuse(NotAllowed, "the account of %s is disabled: an admin can enable it", name)
	}
	if second != nil {
		if err := second(u); err != nil {
			return accessdb.User{}, err
		}
	}
	a.limit.forgive(name, from)
	if stale {
		text, err := a.hasher.hash(ctx, password)
		if err != nil {
			return accessdb.User{}, fmt.Errorf("hash a password: %w", err)
		}
		if _, err := a.db.SetUserPassword(ctx, accessdb.SetUserPasswordParams{Name: name, Password: text}); err != nil {
			return accessdb.User{}, fmt.Errorf("keep a password: %w", err)
		}
	}
	return u, nil
}

// tooMany refuses an attempt at passwords or codes. Of such attempts the audit log has one
// a minute.
func (a *Access) tooMany(ctx context.Context, l *limiter, at string, wait time.Duration) error {
	if e := callOf(ctx).entry; e != nil {
		e.skip = true
		l.told.Do(func() { e.skip = false })
	}
	return &Refusal{Reason: TooMany, RetryAfter: wait, err: fmt.Errorf("too many attempts at %s: try again in %d s", at, seconds(wait))}
}

// openSession makes a session that lasts for at most life, and returns its secret.
func (a *Access) openSession(ctx context.Context, q *accessdb.Queries, user string, life time.Duration) (secret, time.Time, error) {
	s, now := newSecret(sessionPrefix), a.now()
	expires := now.Add(life)
	if err := q.DeleteOldSessions(ctx, accessdb.DeleteOldSessionsParams{Now: now, IdleSince: now.Add(-sessionIdle)}); err != nil {
		return secret{}, time.Time{}, fmt.Errorf("remove old sessions: %w", err)
	}
	if err := q.InsertSession(ctx, accessdb.InsertSessionParams{Hash: s.hash(), UserName: user, CreatedAt: now, ExpiresAt: expires}); err != nil {
		return secret{}, time.Time{}, fmt.Errorf("keep a session: %w", err)
	}
	return s, expires, nil
}

// endSession ends the session of a principal, and its streams.
func (a *Access) endSession(ctx context.Context, hash []byte) error {
	if err := a.db.DeleteSession(ctx, hash); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	a.endStreams(func(p Principal) bool { return p.session != nil && bytes.Equal(p.session, hash) })
	return nil
}

// AddUser makes a user. With the setup token it makes only an admin, and only the
// first one unless the token was asked for.
func (a *Access) AddUser(ctx context.Context, by Principal, name string, role Role, password string) (accessdb.User, error) {
	if err := checkName(name); err != nil {
		return accessdb.User{}, err
	}
	if role == None {
		return accessdb.User{}, refuse(Invalid, "no role for %s, expected viewer, director or admin", name)
	}
	if by.setup && role != Admin {
		return accessdb.User{}, refuse(NotAllowed, "the setup token makes an admin (--role admin), who makes the others")
	}
	if err := checkPassword(name, password); err != nil {
		return accessdb.User{}, refuse(Invalid, "%w", err)
	}
	text, err := a.hasher.hash(ctx, password)
	if err != nil {
		return accessdb.User{}, fmt.Errorf("hash a password: %w", err)
	}
	u := accessdb.User{Name: name, Role: role.String(), CreatedAt: a.now()}
	if by.setup {
		// Of two that come at once one is the first.
		a.setup.mu.Lock()
		defer a.setup.mu.Unlock()
		if a.setup.hash == nil {
			return accessdb.User{}, refuse(Unauthenticated, "the setup token is used up: log in as the admin it made")
		}
	}
	err = a.store.InTx(ctx, func(tx store.Conn) error {
		q := accessdb.New(tx)
		if by.setup && !a.setup.forced {
			if err := q.LockUsers(ctx); err != nil {
				return err
			}
			if n, err := q.ActiveAdmins(ctx); err != nil {
				return err
			} else if n > 0 {
				return refuse(NotAllowed, "there is an admin already: log in as that one")
			}
		}
		n, err := q.InsertUser(ctx, accessdb.InsertUserParams{Name: name, Role: u.Role, Password: text, CreatedAt: u.CreatedAt})
		if err == nil && n == 0 {
			return refuse(Exists, "there is a user %s already: linktrial user role and linktrial user password change that one", name)
		}
		return err
	})
	if err != nil {
		return accessdb.User{}, wrap("keep a user", err)
	}
	if by.setup {
		a.setup.hash = nil
		if err := a.removeSetupFile(); err != nil {
			a.log.Warn("the used setup token could not be removed", "error", err)
		}
	}
	return u, nil
}

// wrap says what was being done, but for refusals, which say all themselves.
func wrap(doing string, err error) error {
	var refused *Refusal
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// change changes one user. It keeps an admin, where the change could take the last.
func (a *Access) change(ctx context.Context, name string, f func(*accessdb.Queries, accessdb.User) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := a.store.InTx(ctx, func(tx store.Conn) error {
		q := accessdb.New(tx)
		if err := q.LockUsers(ctx); err != nil {
			return err
		}
		before, err := q.ActiveAdmins(ctx)
		if err != nil {
			return err
		}
		u, err := q.UserForUpdate(ctx, name)
		if errors.Is(err, pgx.ErrNoRows) {
			return refuse(NotFound, "there is no user %q: linktrial user list names them", shortened(clean(name), 40))
		}
		if err != nil {
			return err
		}
		if err := f(q, u); err != nil {
			return err
		}
		after, err := q.ActiveAdmins(ctx)
		if err == nil && after == 0 && before > 0 {
			return refuse(NotNow, "%s is the only admin: make another before this one is changed", name)
		}
		return err
	})
	return wrap("change a user", err)
}

// SetRole changes what a user may do.
func (a *Access) SetRole(ctx context.Context, name string, role Role) error {
	if role == None {
		return refuse(Invalid, "no role, expected viewer, director or admin")
	}
	return a.change(ctx, name, func(q *accessdb.Queries, _ accessdb.User) error {
		_, err := q.SetUserRole(ctx, accessdb.SetUserRoleParams{Name: name, Role: role.String()})
		return err
	})
}

// SetDisabled disables or enables an account. Sessions and streams of a disabled
// one end.
func (a *Access) SetDisabled(ctx context.Context, name string, disabled bool) error {
	err := a.change(ctx, name, func(q *accessdb.Queries, _ accessdb.User) error {
		if _, err := q.SetUserDisabled(ctx, accessdb.SetUserDisabledParams{Name: name, Disabled: disabled}); err != nil {
			return err
		}
		if disabled {
			return q.DeleteSessionsOf(ctx, name)
		}
		return nil
	})
	if err == nil && disabled {
		a.endStreams(func(p Principal) bool { return p.User == name })
	}
	return err
}

// SetPassword sets a new password, and ends all sessions and tokens of the user: who
// sets one may do so because somebody else knows the old one.
func (a *Access) SetPassword(ctx context.Context, name, password string) error {
	return a.setPassword(ctx, name, password, "")
}

// setPassword sets a new password and ends what the user holds, but the token keep.
func (a *Access) setPassword(ctx context.Context, name, password, keep string) error {
	if err := checkPassword(name, password); err != nil {
		return refuse(Invalid, "%w", err)
	}
	text, err := a.hasher.hash(ctx, password)
	if err != nil {
		return fmt.Errorf("hash a password: %w", err)
	}
	err = a.change(ctx, name, func(q *accessdb.Queries, u accessdb.User) error {
		if u.Password == "" {
			return refuse(NotNow, "%s logs in at the provider and has no password here", name)
		}
		if _, err := q.SetUserPassword(ctx, accessdb.SetUserPasswordParams{Name: name, Password: text}); err != nil {
			return err
		}
		now := a.now()
		if err := q.RevokeTokensOf(ctx, accessdb.RevokeTokensOfParams{Now: &now, UserName: name, Keep: keep}); err != nil {
			return err
		}
		return q.DeleteSessionsOf(ctx, name)
	})
	if err == nil {
		a.endStreams(func(p Principal) bool { return p.User == name && (p.token == "" || p.token != keep) })
	}
	return err
}
