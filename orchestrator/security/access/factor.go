package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"image/png"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"linktrial/internal/unit"
	"linktrial/orchestrator/security/access/accessdb"
	"linktrial/orchestrator/store"
)

// Second factors are time-based one-time passwords, with the parameters that all
// authenticator apps know.
const (
	codePeriod   = 30 // seconds (RFC 6238, section 5.2)
	codeSkew     = 1  // steps before and after the present one whose codes are taken
	codeSecret   = 20 // bytes, the length of the hash (RFC 4226, section 4, R6)
	codeImage    = 256
	codeIssuer   = "Linktrial"
	proposalLife = 15 * time.Minute

	recoveryCount = 10
	recoveryBytes = 10
	recoveryGroup = 4 // characters between two hyphens
)

var codeForm = hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}

// errCodeNeeded reports that a password is right and a code is to be given besides.
var errCodeNeeded = errors.New("the login takes a code of the second factor")

// Proposal is a second factor that is being set up: its secret as text, as the URL that
// authenticator apps read, and as a QR code of that (PNG).
type Proposal struct {
	Secret, URL string
	Image       []byte
}

// FactorState is what a user may know of the own second factor.
type FactorState struct {
	Since         *time.Time // nil: there is none
	RecoveryCodes int        // that are not used
	Required      bool       // by the user's role
}

// SecondFactor returns the state of the caller's second factor.
func (a *Access) SecondFactor(ctx context.Context, p Principal) (FactorState, error) {
	state := FactorState{Required: a.cfg.SecondFactor[p.Role]}
	f, err := a.db.SecondFactor(ctx, p.User)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && f.ConfirmedAt == nil {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("look up a second factor: %w", err)
	}
	left, err := a.db.RecoveryCodesLeft(ctx, p.User)
	state.Since, state.RecoveryCodes = f.ConfirmedAt, int(left)
	return state, err
}

// BeginSecondFactor makes the secret of a second factor, where the password is right: who
// finds a browser that is logged in must not give the account a factor of their own.
func (a *Access) BeginSecondFactor(ctx context.Context, p Principal, password string) (*Proposal, error) {
	if p.ByProvider {
		return nil, refuse(NotNow, "%s logs in at the provider, which asks for a second factor or does not", p.User)
	}
	c := callOf(ctx)
	if _, err := a.prove(ctx, p.User, password, c.address, nil); err != nil {
		return nil, known(err, "the password is wrong")
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: codeIssuer, AccountName: p.User + "@" + c.host, Period: codePeriod, SecretSize: codeSecret, Digits: codeForm.Digits, Algorithm: codeForm.Algorithm})
	if err != nil {
		return nil, fmt.Errorf("make a second factor: %w", err)
	}
	sealed, err := a.factorKey.seal(p.User, key.Secret())
	if err != nil {
		return nil, err
	}
	n, err := a.db.ProposeSecondFactor(ctx, accessdb.ProposeSecondFactorParams{UserName: p.User, Sealed: sealed, CreatedAt: a.now()})
	if err != nil {
		return nil, fmt.Errorf("keep a second factor: %w", err)
	}
	if n == 0 {
		return nil, refuse(NotNow, "%s has a second factor already: remove it before another is set up", p.User)
	}
	picture, err := key.Image(codeImage, codeImage)
	if err != nil {
		return nil, fmt.Errorf("draw a QR code: %w", err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return nil, fmt.Errorf("draw a QR code: %w", err)
	}
	return &Proposal{Secret: key.Secret(), URL: key.URL(), Image: b.Bytes()}, nil
}

// ConfirmSecondFactor sets the second factor up that was begun, where the code is one of
// it. The other sessions and logins of the user were made without it, and end. The
// cookie, which is nil for a token, is of a new session for the browser that called.
func (a *Access) ConfirmSecondFactor(ctx context.Context, p Principal, code string) (recovery []string, cookie *http.Cookie, err error) {
	c := callOf(ctx)
	if err := a.takeCode(ctx, p.User, c.address); err != nil {
		return nil, nil, err
	}
	f, err := a.db.SecondFactor(ctx, p.User)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, fmt.Errorf("look up a second factor: %w", err)
	}
	now := a.now()
	if err != nil || f.ConfirmedAt != nil || now.Sub(f.CreatedAt) >= proposalLife {
		return nil, nil, refuse(NotNow, "no second factor of %s waits to be confirmed: begin again, and give a code within %d minutes", p.User, int(proposalLife.Minutes()))
	}
	plain, err := a.factorKey.open(p.User, f.Sealed)
	if err != nil {
		return nil, nil, err
	}
	step, ok := stepOf(plain, plainCode(code), now)
	if !ok {
		return nil, nil, refuse(Invalid, "%s", wrongCode(now))
	}
	keep := ""
	if p.ofLogin {
		keep = p.token
	}
	err = a.store.InTx(ctx, func(tx store.Conn) error {
		q := accessdb.New(tx)
		n, err := q.ConfirmSecondFactor(ctx, accessdb.ConfirmSecondFactorParams{UserName: p.User, Sealed: f.Sealed, ConfirmedAt: &now, LastStep: step})
		if err == nil && n == 0 {
			return refuse(NotNow, "the second factor of %s was changed meanwhile: begin again", p.User)
		}
		if err != nil {
			return err
		}
		if recovery, err = newRecoveryCodes(ctx, q, p.User); err != nil {
			return err
		}
		if err := q.RevokeLoginsOf(ctx, accessdb.RevokeLoginsOfParams{Now: &now, UserName: p.User, Keep: keep}); err != nil {
			return err
		}
		return q.DeleteSessionsOf(ctx, p.User)
	})
	if err != nil {
		return nil, nil, wrap("keep a second factor", err)
	}
	a.codes.forgive(p.User, c.address)
	a.endStreams(func(o Principal) bool { return o.User == p.User && (o.token == "" || o.ofLogin && o.token != keep) })
	if p.session == nil {
		return recovery, nil, nil
	}
	secret, _, err := a.openSession(ctx, a.db, p.User, sessionLife)
	if err != nil {
		return nil, nil, err
	}
	return recovery, sessionCookie(secret.text(), c.secure, int(sessionLife/time.Second)), nil
}

// RenewRecoveryCodes replaces the recovery codes of the caller, where a code of the second
// factor is right.
func (a *Access) RenewRecoveryCodes(ctx context.Context, p Principal, code string) (recovery []string, err error) {
	if !isCode(plainCode(code)) {
		return nil, refuse(Invalid, "new recovery codes take a code of the second factor, expected six digits")
	}
	if err := a.checkCode(ctx, p.User, code); err != nil {
		return nil, known(err, "")
	}
	err = a.store.InTx(ctx, func(tx store.Conn) error {
		q := accessdb.New(tx)
		recovery, err = newRecoveryCodes(ctx, q, p.User)
		return err
	})
	return recovery, wrap("keep recovery codes", err)
}

// RemoveSecondFactor removes the caller's own second factor, where the code is right.
func (a *Access) RemoveSecondFactor(ctx context.Context, p Principal, code string) error {
	if err := a.checkCode(ctx, p.User, code); err != nil {
		return known(err, "")
	}
	return wrap("remove a second factor", a.store.InTx(ctx, func(tx store.Conn) error {
		q := accessdb.New(tx)
		_, err := removeFactor(ctx, q, p.User)
		return err
	}))
}

// RemoveUserSecondFactor removes the second factor of another user, and ends all sessions
// and tokens of that one: the device may be in somebody else's hands.
func (a *Access) RemoveUserSecondFactor(ctx context.Context, by Principal, name string) error {
	if name == by.User {
		return refuse(NotAllowed, "%s is your own account: remove its second factor there, with a code of it or a recovery code", shortened(clean(name), 40))
	}
	err := a.change(ctx, name, func(q *accessdb.Queries, _ accessdb.User) error {
		n, err := removeFactor(ctx, q, name)
		if err == nil && n == 0 {
			return refuse(NotFound, "%s has no second factor", name)
		}
		if err != nil {
			return err
		}
		now := a.now()
		if err := q.RevokeTokensOf(ctx, accessdb.RevokeTokensOfParams{Now: &now, UserName: name}); err != nil {
			return err
		}
		return q.DeleteSessionsOf(ctx, name)
	})
	if err == nil {
		a.endStreams(func(p Principal) bool { return p.User == name })
	}
	return err
}

func removeFactor(ctx context.Context, q *accessdb.Queries, user string) (removed int64, err error) {
	if err := q.DeleteRecoveryCodes(ctx, user); err != nil {
		return 0, err
	}
	return q.DeleteSecondFactor(ctx, user)
}

// secondFactor checks the code of a login, where the user has a second factor.
// [errCodeNeeded] reports that none was given.
func (a *Access) secondFactor(ctx context.Context, user, code string) error {
	f, err := a.db.SecondFactor(ctx, user)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && f.ConfirmedAt == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up a second factor: %w", err)
	}
	if code == "" {
		return errCodeNeeded
	}
	if e := callOf(ctx).entry; e != nil {
		e.via = "password and code"
		if !isCode(plainCode(code)) {
			e.via = "password and recovery code"
		}
	}
	return a.checkCode(ctx, user, code)
}

// takeCode counts an attempt at codes, or refuses it.
func (a *Access) takeCode(ctx context.Context, user, from string) error {
	wait := a.codes.take(user, from)
	if wait <= 0 {
		return nil
	}
	return a.tooMany(ctx, a.codes, "codes", wait)
}

// checkCode takes a code of a user's second factor, or a recovery code. Each is taken
// once, also of two calls at a time.
func (a *Access) checkCode(ctx context.Context, user, code string) error {
	from := callOf(ctx).address
	if err := a.takeCode(ctx, user, from); err != nil {
		return err
	}
	now, text := a.now(), plainCode(code)
	if !isCode(text) {
		n, err := a.db.UseRecoveryCode(ctx, accessdb.UseRecoveryCodeParams{UserName: user, Hash: recoveryHash(text), UsedAt: &now})
		switch {
		case err != nil:
			return fmt.Errorf("look up a recovery code: %w", err)
		case n == 0:
			return refuse(Unauthenticated, "the code is wrong, expected the six digits that the authenticator app shows, or a recovery code that was not used yet")
		}
		a.codes.forgive(user, from)
		return nil
	}
	f, err := a.db.SecondFactor(ctx, user)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && f.ConfirmedAt == nil {
		return refuse(NotNow, "%s has no second factor", user)
	}
	if err != nil {
		return fmt.Errorf("look up a second factor: %w", err)
	}
	plain, err := a.factorKey.open(user, f.Sealed)
	if err != nil {
		return err
	}
	step, ok := stepOf(plain, text, now)
	if !ok {
		return refuse(Unauthenticated, "%s", wrongCode(now))
	}
	n, err := a.db.UseCodeOfStep(ctx, accessdb.UseCodeOfStepParams{UserName: user, LastStep: step})
	switch {
	case err != nil:
		return fmt.Errorf("keep that a code was used: %w", err)
	case n == 0:
		return refuse(Unauthenticated, "this code was used already: wait for the next one, at most %d s", codePeriod)
	}
	a.codes.forgive(user, from)
	return nil
}

// wrongCode names the clock, which is what is wrong most often where there is no network.
func wrongCode(now time.Time) string {
	return "the code is wrong: codes follow the clock, and the orchestrator's says " + unit.Clock(now)
}

// stepOf is the time step whose code the text is, of those that are taken now.
func stepOf(secret, text string, now time.Time) (step int64, ok bool) {
	present := now.Unix() / codePeriod
	for step := present - codeSkew; step <= present+codeSkew; step++ {
		if good, err := hotp.ValidateCustom(text, uint64(step), secret, codeForm); err == nil && good {
			return step, true
		}
	}
	return 0, false
}

// plainCode is a code without what people write between its parts.
func plainCode(code string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return -1
		}
		return r
	}, code))
}

// isCode reports whether a text has the form of a code, and not of a recovery code.
func isCode(text string) bool {
	return len(text) == codeForm.Digits.Length() && strings.Trim(text, "0123456789") == ""
}

var unpadded = base32.StdEncoding.WithPadding(base32.NoPadding)

// recoveryHash is what the database has of a recovery code. It has 80 random bits: a plain
// hash is enough.
func recoveryHash(plain string) []byte {
	h := sha256.Sum256([]byte("linktrial recovery code\x00" + plain))
	return h[:]
}

func newRecoveryCodes(ctx context.Context, q *accessdb.Queries, user string) ([]string, error) {
	if err := q.DeleteRecoveryCodes(ctx, user); err != nil {
		return nil, err
	}
	var out []string
	for range recoveryCount {
		plain := strings.ToLower(unpadded.EncodeToString(random(recoveryBytes)))
		if err := q.InsertRecoveryCode(ctx, accessdb.InsertRecoveryCodeParams{UserName: user, Hash: recoveryHash(plain)}); err != nil {
			return nil, err
		}
		var groups []string
		for i := 0; i < len(plain); i += recoveryGroup {
			groups = append(groups, plain[i:min(i+recoveryGroup, len(plain))])
		}
		out = append(out, strings.Join(groups, "-"))
	}
	return out, nil
}

// known is an error of a check of password or code for somebody who is logged in: that
// something is not right must not be taken for the end of the login. An empty text keeps
// that of the error.
func known(err error, text string) error {
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Reason != Unauthenticated {
		return err
	}
	if text == "" {
		text = refused.Error()
	}
	return refuse(Invalid, "%s", text)
}
