package access

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"linktrial/internal/unit"
	"linktrial/orchestrator/security/access/accessdb"
	"linktrial/orchestrator/store"
)

const maxTokenName = 64 // characters

// uniqueViolation is PostgreSQL's code for a row that there may be only one of.
const uniqueViolation = "23505"

type newToken struct {
	user, name string
	role       Role
	life       time.Duration
	ofLogin    bool
}

// makeToken keeps a token and returns its text, which is nowhere else.
func (a *Access) makeToken(ctx context.Context, t newToken) (Token, secret, error) {
	none := Token{}
	switch n := utf8.RuneCountInString(t.name); {
	case n == 0 || n > maxTokenName || t.name != strings.TrimSpace(clean(t.name)):
		return none, secret{}, refuse(Invalid, "name %q of a token, expected 1 to %d printable characters", shortened(clean(t.name), 80), maxTokenName)
	case t.life < minTokenLife || t.life > MaxTokenLife:
		return none, secret{}, refuse(Invalid, "a token that is good for %s, expected between a minute and 366 days", t.life)
	}
	s, now := newSecret(tokenPrefix), a.now()
	row := Token{ID: hex.EncodeToString(random(4)), UserName: t.user, Name: t.name, Role: t.role.String(), OfLogin: t.ofLogin, CreatedAt: now, ExpiresAt: now.Add(t.life)}
	var replaced []string
	err := a.store.InTx(ctx, func(tx store.Conn) error {
		q := accessdb.New(tx)
		if err := q.RevokeExpiredNamed(ctx, accessdb.RevokeExpiredNamedParams{Now: &now, UserName: t.user, Name: t.name}); err != nil {
			return err
		}
		if t.ofLogin {
			// Who logs in again from the same place has no use for the token before.
			same, err := q.TokensNamed(ctx, accessdb.TokensNamedParams{Name: t.name, UserName: t.user})
			if err != nil {
				return err
			}
			for _, old := range same {
				if old.OfLogin && old.UserName == t.user && old.Name == t.name && old.RevokedAt == nil {
					if _, err := q.RevokeToken(ctx, accessdb.RevokeTokenParams{ID: old.ID, RevokedAt: &now}); err != nil {
						return err
					}
					replaced = append(replaced, old.ID)
				}
			}
		}
		err := q.InsertToken(ctx, accessdb.InsertTokenParams{ID: row.ID, Hash: s.hash(), UserName: t.user, Name: t.name, Role: row.Role, OfLogin: t.ofLogin, CreatedAt: now, ExpiresAt: row.ExpiresAt})
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == uniqueViolation && pg.ConstraintName == "api_tokens_name" {
			return refuse(Exists, "%s has a token %q already: revoke that one, or take another name", t.user, t.name)
		}
		return err
	})
	if err != nil {
		return none, secret{}, wrap("keep a token", err)
	}
	for _, id := range replaced {
		a.endTokenStreams(id)
	}
	return row, s, nil
}

// CreateToken makes a token for who calls, which may do no more than that one. A
// role of [None] is the caller's; a life of zero is 90 days. The text is kept
// nowhere.
func (a *Access) CreateToken(ctx context.Context, by Principal, name string, role Role, life time.Duration) (row Token, text string, err error) {
	switch {
	case by.token != "" && !by.ofLogin:
		// Else one that leaks could outlive its end.
		return row, "", refuse(NotAllowed, "%s makes no further tokens: log in with the password of %s first", by.Via, by.User)
	case role == None:
		role = by.Role
	case role > by.Role:
		return row, "", refuse(NotAllowed, "%s is %s, and a token may do no more: expected at most %s", by.User, article(by.Role), by.Role)
	}
	if life == 0 {
		life = apiTokenLife
	}
	row, s, err := a.makeToken(ctx, newToken{user: by.User, name: name, role: role, life: life})
	if err != nil {
		return row, "", err
	}
	return row, s.text(), nil
}

// Tokens returns the tokens of a user, or of all users where the name is empty;
// those of others only to an admin.
func (a *Access) Tokens(ctx context.Context, by Principal, user string) ([]Token, error) {
	if user != by.User && by.Role < Admin {
		return nil, refuse(NotAllowed, "%s", by.lacks(Admin))
	}
	return a.db.Tokens(ctx, user)
}

// RevokeToken ends a token by its identity, or by the name that the caller gave it.
func (a *Access) RevokeToken(ctx context.Context, by Principal, name string) (Token, error) {
	none, now := Token{}, a.now()
	found, err := a.db.TokensNamed(ctx, accessdb.TokensNamedParams{Name: name, UserName: by.User})
	if err != nil {
		return none, fmt.Errorf("look up a token: %w", err)
	}
	var mine []accessdb.TokensNamedRow
	for _, t := range found {
		// Another's token is to be revoked by admins alone, and others need not know of it.
		if t.UserName == by.User || by.Role == Admin {
			mine = append(mine, t)
		}
	}
	switch {
	case len(mine) == 0:
		return none, refuse(NotFound, "there is no token %q: linktrial token list names them", shortened(clean(name), 80))
	case len(mine) > 1:
		return none, refuse(Invalid, "%q is the identity of one token and the name of another: give the identity of the other", name)
	case mine[0].RevokedAt != nil:
		return none, refuse(NotNow, "token %q of %s was revoked on %s already", mine[0].Name, mine[0].UserName, unit.Moment(*mine[0].RevokedAt))
	}
	t := Token(mine[0])
	if _, err := a.db.RevokeToken(ctx, accessdb.RevokeTokenParams{ID: t.ID, RevokedAt: &now}); err != nil {
		return none, fmt.Errorf("revoke a token: %w", err)
	}
	t.RevokedAt = &now
	a.endTokenStreams(t.ID)
	return t, nil
}

func (a *Access) endTokenStreams(id string) {
	a.endStreams(func(p Principal) bool { return p.token == id })
}
