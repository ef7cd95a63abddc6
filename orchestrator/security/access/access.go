package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/unit"
	"linktrial/orchestrator/security/access/accessdb"
	"linktrial/orchestrator/security/auditlog"
	"linktrial/orchestrator/store"
)

// How long what people hold lasts.
const (
	sessionIdle       = 12 * time.Hour     // without a call
	sessionLife       = 7 * 24 * time.Hour // at most
	loginTokenLife    = 30 * 24 * time.Hour
	apiTokenLife      = 90 * 24 * time.Hour
	MaxTokenLife      = 366 * 24 * time.Hour
	minTokenLife      = time.Minute
	usedEvery         = time.Minute // how exactly it is kept when one was used
	auditWriteTimeout = 5 * time.Second
)

// Config says what access is decided by.
type Config struct {
	Store *store.Store
	// Required has everybody but nodes log in; without it all may do everything.
	Required bool
	// OpenToNetwork says that nobody logs in though other machines reach the
	// orchestrator, for people to see.
	OpenToNetwork bool
	// LocalUsers, where nobody logs in and only this machine reaches the orchestrator,
	// may change something, as [LocalUsers] returns them; nil: all may.
	LocalUsers []int
	// LocalAdmins, where nobody logs in, may do on this machine what takes an admin
	// elsewhere, as [LocalAdmins] returns them; nil: all may.
	LocalAdmins []int
	// DataDir has the key that seals secrets of second factors, and gets the setup token
	// while there is no admin. Empty: the key lasts as long as the process.
	DataDir string
	// SecondFactor has the roles that take a second factor: who has none can only set
	// one up.
	SecondFactor map[Role]bool
	// Provider is where people can log in besides; nil: there is none.
	Provider *ProviderConfig
	// Setup makes a setup token also where there is an admin: their password may
	// be forgotten.
	Setup bool
	// Signer signs heads of the audit log; nil: they are not signed.
	Signer auditlog.Signer
	Logger *slog.Logger
	// Cost of passwords' hashes; zero is RFC 9106's.
	Cost Cost
	// Now is the clock, for tests; nil is time.Now.
	Now func() time.Time
}

// Access is who may do what. Its methods may be called from several goroutines.
type Access struct {
	cfg      Config
	log      *slog.Logger
	store    *store.Store
	db       *accessdb.Queries
	now      func() time.Time
	hasher   *hasher
	limit    *limiter // of attempts at passwords
	codes    *limiter // of attempts at codes
	crossing *http.CrossOriginProtection
	setup    setup
	local    localToken
	audit    *auditlog.Log

	factorKey factorKey

	mu      sync.Mutex
	streams map[*stream]struct{}
}

// User is a user as lists show them: with how many sessions and tokens, without password.
type User = accessdb.UsersRow

// Token is an API token without its secret.
type Token = accessdb.TokensRow

// AuditEntry is an entry of the audit log.
type AuditEntry = accessdb.Audit

// New reads what it must know of the users, and makes a setup token where
// there is no admin.
func New(ctx context.Context, cfg Config) (*Access, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	limit, err := newLimiter(cfg.Now, passwordAllowances)
	if err != nil {
		return nil, err
	}
	codes, err := newLimiter(cfg.Now, codeAllowances)
	if err != nil {
		return nil, err
	}
	a := &Access{
		cfg: cfg, log: cfg.Logger, store: cfg.Store, db: accessdb.New(cfg.Store), now: cfg.Now, hasher: newHasher(cfg.Cost), limit: limit, codes: codes,
		crossing: http.NewCrossOriginProtection(), streams: map[*stream]struct{}{},
		audit: auditlog.New(auditlog.Config{Store: cfg.Store, Signer: cfg.Signer, DataDir: cfg.DataDir, Logger: cfg.Logger, Now: cfg.Now}),
	}
	// Also where nobody logs in: a key that cannot be used is known at the start.
	if a.store != nil {
		if err := a.openFactors(ctx); err != nil {
			return nil, err
		}
	}
	if cfg.Required {
		if err := a.openSetup(ctx); err != nil {
			return nil, err
		}
		if err := a.openLocal(); err != nil {
			return nil, errors.Join(err, a.closeSetup())
		}
	}
	return a, nil
}

// Start keeps the audit log signed and checked until [Access.Close], where people log
// in; without logins it has no entries.
func (a *Access) Start(ctx context.Context) {
	if a.cfg.Required {
		a.audit.Start(ctx)
	}
	if a.cfg.Provider != nil {
		a.cfg.Provider.Provider.Start(ctx)
	}
}

// Close ends what Start began, and removes what only a running orchestrator can use.
func (a *Access) Close() error {
	if a.cfg.Provider != nil {
		a.cfg.Provider.Provider.Stop()
	}
	a.audit.Stop()
	return errors.Join(a.closeSetup(), a.closeLocal())
}

// Principal is who makes a call.
type Principal struct {
	User    string // empty for the holder of the setup token, and of the local one
	Role    Role
	Via     string // for the audit log: "session", "token NAME", "setup token" or "root on the orchestrator's machine"
	Expires time.Time
	// ByProvider is set where the user logs in at the OpenID Connect provider.
	ByProvider bool

	session []byte // hash of the session's secret
	token   string // identity of the API token
	ofLogin bool   // the token came from a login
	setup   bool
	local   bool
	// lacksFactor is set where the role takes a second factor and the user has none.
	lacksFactor bool
}

// LacksSecondFactor reports whether the role takes a second factor and the user has none.
func (p Principal) LacksSecondFactor() bool { return p.lacksFactor }

// ByToken reports whether the call was made with an API token.
func (p Principal) ByToken() bool { return p.token != "" }

type principalKey struct{}

// From is who makes the call that a context belongs to. There is nobody where
// the orchestrator asks nobody, and for the calls of nodes.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// errNobody says that a request came without anything that says who makes it.
var errNobody = errors.New("log in first: this orchestrator answers only its users")

// authenticate finds out who makes a request. Every error but those of the
// database is a refusal, in words for people.
func (a *Access) authenticate(r *http.Request) (Principal, error) {
	s, ok, err := bearer(r.Header)
	if err != nil {
		return Principal{}, refuse(Unauthenticated, "%w", err)
	}
	if ok && s.prefix == setupPrefix {
		return a.bySetup(s)
	}
	if ok && s.prefix == localPrefix {
		return a.byLocal(r, s)
	}
	if ok {
		return a.byToken(r.Context(), s)
	}
	if s, ok := sessionSecret(r.Header, r.TLS != nil); ok {
		return a.bySession(r.Context(), s)
	}
	return Principal{}, refuse(Unauthenticated, "%w", errNobody)
}

func (a *Access) byToken(ctx context.Context, s secret) (Principal, error) {
	t, err := a.db.TokenByHash(ctx, s.hash())
	now := a.now()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Principal{}, refuse(Unauthenticated, "the token is not known here: it was made at another orchestrator, or this one's database was replaced")
	case err != nil:
		return Principal{}, fmt.Errorf("look up a token: %w", err)
	case t.RevokedAt != nil:
		return Principal{}, refuse(Unauthenticated, "token %q of %s was revoked on %s: log in again, or make another", t.Name, t.UserName, unit.Moment(*t.RevokedAt))
	case !now.Before(t.ExpiresAt):
		return Principal{}, refuse(Unauthenticated, "token %q of %s expired on %s: log in again, or make another", t.Name, t.UserName, unit.Moment(t.ExpiresAt))
	case t.Disabled:
		return Principal{}, refuse(Unauthenticated, "the account of %s is disabled: an admin can enable it", t.UserName)
	}
	role, err := ParseRole(t.Role)
	if err != nil {
		return Principal{}, err
	}
	users, err := ParseRole(t.UserRole)
	if err != nil {
		return Principal{}, err
	}
	if t.UsedAt == nil || now.Sub(*t.UsedAt) >= usedEvery {
		if err := a.db.TouchToken(ctx, accessdb.TouchTokenParams{ID: t.ID, UsedAt: &now}); err != nil {
			return Principal{}, fmt.Errorf("keep when a token was used: %w", err)
		}
	}
	role = min(role, users)
	return Principal{User: t.UserName, Role: role, Via: "token " + t.Name, Expires: t.ExpiresAt, token: t.ID, ofLogin: t.OfLogin, ByProvider: t.ByProvider, lacksFactor: a.lacksFactor(role, t.SecondFactor, t.ByProvider)}, nil
}

func (a *Access) bySession(ctx context.Context, s secret) (Principal, error) {
	hash := s.hash()
	row, err := a.db.Session(ctx, hash)
	now := a.now()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Principal{}, refuse(Unauthenticated, "the session has ended: log in again")
	case err != nil:
		return Principal{}, fmt.Errorf("look up a session: %w", err)
	case !now.Before(row.ExpiresAt) || now.Sub(row.UsedAt) >= sessionIdle:
		return Principal{}, refuse(Unauthenticated, "the session of %s has expired: log in again", row.UserName)
	case row.Disabled:
		return Principal{}, refuse(Unauthenticated, "the account of %s is disabled: an admin can enable it", row.UserName)
	}
	role, err := ParseRole(row.Role)
	if err != nil {
		return Principal{}, err
	}
	if now.Sub(row.UsedAt) >= usedEvery {
		if err := a.db.TouchSession(ctx, accessdb.TouchSessionParams{Hash: hash, UsedAt: now}); err != nil {
			return Principal{}, fmt.Errorf("keep when a session was used: %w", err)
		}
	}
	return Principal{User: row.UserName, Role: role, Via: "session", Expires: row.ExpiresAt, session: hash, ByProvider: row.ByProvider, lacksFactor: a.lacksFactor(role, row.SecondFactor, row.ByProvider)}, nil
}

// lacksFactor reports whether a role takes a second factor that a user does not have. Of
// the provider's users it is for the provider to ask one.
func (a *Access) lacksFactor(role Role, has, byProvider bool) bool {
	return a.cfg.SecondFactor[role] && !has && !byProvider
}

// stream is a call that may outlast what it was allowed by.
type stream struct {
	who Principal
	end context.CancelFunc
}

// follow ends a streaming call with the session, the token or the account that
// it came with. done must be called at its end.
func (a *Access) follow(ctx context.Context, p Principal) (limited context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, p.Expires.Sub(a.now()))
	s := &stream{who: p, end: cancel}
	a.mu.Lock()
	a.streams[s] = struct{}{}
	a.mu.Unlock()
	return ctx, func() {
		cancel()
		a.mu.Lock()
		delete(a.streams, s)
		a.mu.Unlock()
	}
}

// endStreams ends the streaming calls of those who may no longer make them.
func (a *Access) endStreams(of func(Principal) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.streams {
		if of(s.who) {
			s.end()
		}
	}
}
