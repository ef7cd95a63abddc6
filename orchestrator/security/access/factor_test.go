package access_test

import (
	"bytes"
	"context"
	"image/png"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/access/accessdb"
)

// step is how long a code is shown.
const step = 30 * time.Second

// code is what an authenticator app with the secret shows now.
func (h *house) code(secret string) string {
	h.t.Helper()
	text, err := totp.GenerateCode(secret, h.clock.now())
	require.NoError(h.t, err)
	return text
}

// wrong is a code that is shown neither now nor soon.
func (h *house) wrong(secret string) string {
	h.t.Helper()
	text, err := totp.GenerateCode(secret, h.clock.now().Add(time.Hour))
	require.NoError(h.t, err)
	return text
}

func begin(c *caller, password string) (*linktrialv1.BeginSecondFactorResponse, error) {
	res, err := c.BeginSecondFactor(context.Background(), connect.NewRequest(&linktrialv1.BeginSecondFactorRequest{Password: password}))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

func confirm(c *caller, code string) ([]string, error) {
	res, err := c.ConfirmSecondFactor(context.Background(), connect.NewRequest(&linktrialv1.ConfirmSecondFactorRequest{Code: code}))
	if err != nil {
		return nil, err
	}
	return res.Msg.RecoveryCodes, nil
}

func (c *caller) factor() *linktrialv1.GetSecondFactorResponse {
	return must(c.GetSecondFactor(context.Background(), connect.NewRequest(&linktrialv1.GetSecondFactorRequest{}))).Msg
}

func (c *caller) tryCode(user, password, code string) (*connect.Response[linktrialv1.LoginResponse], error) {
	return c.Login(context.Background(), connect.NewRequest(&linktrialv1.LoginRequest{User: user, Password: password, Code: code}))
}

// enrol gives a user a second factor, and lets the code of the confirmation pass.
func (h *house) enrol(c *caller) (secret string, recovery []string) {
	h.t.Helper()
	f, err := begin(c, password)
	require.NoError(h.t, err)
	recovery, err = confirm(c, h.code(f.Secret))
	require.NoError(h.t, err)
	h.clock.step(step)
	return f.Secret, recovery
}

func TestSecondFactor(t *testing.T) {
	h := build(t, nil)
	h.people()
	ctx := t.Context()
	vera, elsewhere := h.login("vera"), h.login("vera")
	atHome := must(h.as().Login(ctx, connect.NewRequest(&linktrialv1.LoginRequest{User: "vera", Password: password, TokenName: "laptop"}))).Msg.Token
	script := h.withToken(h.token(vera, "nightly", 0).Text)

	require.False(t, vera.factor().Set)
	_, err := confirm(vera, "123456")
	fails(t, err, connect.CodeFailedPrecondition, "no second factor of vera waits")
	_, err = begin(vera, "wrong password")
	fails(t, err, connect.CodeInvalidArgument, "the password is wrong")
	f, err := begin(vera, password)
	require.NoError(t, err)
	require.Len(t, f.Secret, 32)
	require.True(t, strings.HasPrefix(f.Url, "otpauth://totp/Linktrial:vera@127.0.0.1?"), f.Url)
	require.Contains(t, f.Url, "secret="+f.Secret)
	picture, err := png.Decode(bytes.NewReader(f.Image))
	require.NoError(t, err)
	require.Greater(t, picture.Bounds().Dx(), 100)

	// Until a code was given nothing has changed.
	h.login("vera")
	_, err = confirm(vera, h.wrong(f.Secret))
	fails(t, err, connect.CodeInvalidArgument, "the code is wrong", "08:00:00 UTC")
	h.clock.step(16 * time.Minute)
	_, err = confirm(vera, h.code(f.Secret))
	fails(t, err, connect.CodeFailedPrecondition, "begin again")
	f, err = begin(vera, password)
	require.NoError(t, err)
	recovery, err := confirm(vera, h.code(f.Secret))
	require.NoError(t, err)
	require.Len(t, recovery, 10)
	require.Regexp(t, `^[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}$`, recovery[0])

	// What was opened without it has ended, but for where it was set up, and for tokens
	// that no login made.
	require.NoError(t, vera.ask())
	fails(t, elsewhere.ask(), connect.CodeUnauthenticated, "the session has ended")
	fails(t, h.withToken(atHome).ask(), connect.CodeUnauthenticated, "was revoked")
	require.NoError(t, script.ask())
	state := vera.factor()
	require.True(t, state.Set)
	require.False(t, state.Required)
	require.EqualValues(t, 10, state.RecoveryCodes)
	_, err = begin(vera, password)
	fails(t, err, connect.CodeFailedPrecondition, "has a second factor already")

	// A password alone opens nothing.
	c := h.as()
	res, err := c.try("vera", password)
	require.NoError(t, err)
	require.True(t, res.Msg.CodeNeeded)
	require.Empty(t, res.Msg.User)
	require.Empty(t, res.Header().Get("Set-Cookie"))
	fails(t, c.ask(), connect.CodeUnauthenticated, "log in first")
	res, err = c.Login(ctx, connect.NewRequest(&linktrialv1.LoginRequest{User: "vera", Password: password, TokenName: "laptop"}))
	require.NoError(t, err)
	require.Empty(t, res.Msg.Token)
	_, err = c.tryCode("vera", "wrong password", h.code(f.Secret))
	fails(t, err, connect.CodeUnauthenticated, "the name or the password is wrong")
	_, err = c.tryCode("vera", password, h.wrong(f.Secret))
	fails(t, err, connect.CodeUnauthenticated, "the code is wrong")

	// The code that confirmed it is used up, and so is each after its login.
	_, err = c.tryCode("vera", password, h.code(f.Secret))
	fails(t, err, connect.CodeUnauthenticated, "was used already")
	h.clock.step(step)
	spaced := h.code(f.Secret)
	_, err = c.tryCode("vera", password, spaced[:3]+" "+spaced[3:])
	require.NoError(t, err)
	require.NoError(t, c.ask())
	_, err = h.as().tryCode("vera", password, h.code(f.Secret))
	fails(t, err, connect.CodeUnauthenticated, "was used already")

	// A clock that is half a minute behind or ahead is taken, more is not; none of an earlier
	// step is taken after a later one.
	h.clock.step(10 * step)
	ahead := must(totp.GenerateCode(f.Secret, h.clock.now().Add(step)))
	_, err = h.as().tryCode("vera", password, must(totp.GenerateCode(f.Secret, h.clock.now().Add(2*step))))
	fails(t, err, connect.CodeUnauthenticated, "the code is wrong")
	_, err = h.as().tryCode("vera", password, ahead)
	require.NoError(t, err)
	_, err = h.as().tryCode("vera", password, h.code(f.Secret))
	fails(t, err, connect.CodeUnauthenticated, "was used already")
	h.clock.step(10 * step)
	_, err = h.as().tryCode("vera", password, must(totp.GenerateCode(f.Secret, h.clock.now().Add(-step))))
	require.NoError(t, err)

	row := must(accessdb.New(h.store).SecondFactor(ctx, "vera"))
	require.NotNil(t, row.ConfirmedAt)
	log := h.audit(h.login("anna"), &linktrialv1.ListAuditRequest{User: "vera", Limit: 1000})
	var lines []string
	for _, e := range log.Entries {
		lines = append(lines, line(e))
		for _, secret := range append(recovery, f.Secret, password) {
			require.NotContains(t, line(e), secret)
		}
	}
	require.Contains(t, lines, "vera|session|AccessService.ConfirmSecondFactor||done|")
	require.Contains(t, lines, "vera|password|AccessService.Login||refused|the password is right, and a code is needed besides")
	require.Contains(t, lines, "vera|password and code|AccessService.Login||done|")
}

// Two logins with one code at a time: one of them is taken.
func TestOneCodeOneLogin(t *testing.T) {
	h := build(t, nil)
	h.people()
	secret, recovery := h.enrol(h.login("vera"))
	for _, code := range []string{h.code(secret), recovery[0]} {
		var wg sync.WaitGroup
		var mu sync.Mutex
		in := 0
		for range 4 {
			wg.Go(func() {
				res, err := h.as().tryCode("vera", password, code)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && res.Msg.User == "vera" {
					in++
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, in)
		h.clock.step(10 * time.Minute) // the attempts are forgotten
	}
}

func TestRecoveryCodes(t *testing.T) {
	h := build(t, nil)
	h.people()
	ctx := t.Context()
	vera := h.login("vera")
	secret, recovery := h.enrol(vera)
	_, err := h.as().tryCode("vera", password, strings.ToUpper(strings.ReplaceAll(recovery[3], "-", " ")))
	require.NoError(t, err)
	_, err = h.as().tryCode("vera", password, recovery[3])
	fails(t, err, connect.CodeUnauthenticated, "the code is wrong", "not used yet")
	require.EqualValues(t, 9, vera.factor().RecoveryCodes)
	// Another user's are nothing here.
	_, dirks := h.enrol(h.login("dirk"))
	_, err = h.as().tryCode("vera", password, dirks[0])
	fails(t, err, connect.CodeUnauthenticated, "the code is wrong")

	renew := func(code string) ([]string, error) {
		res, err := vera.RenewRecoveryCodes(ctx, connect.NewRequest(&linktrialv1.RenewRecoveryCodesRequest{Code: code}))
		if err != nil {
			return nil, err
		}
		return res.Msg.RecoveryCodes, nil
	}
	_, err = renew(recovery[0])
	fails(t, err, connect.CodeInvalidArgument, "expected six digits")
	_, err = renew(h.wrong(secret))
	fails(t, err, connect.CodeInvalidArgument, "the code is wrong")
	fresh, err := renew(h.code(secret))
	require.NoError(t, err)
	require.Len(t, fresh, 10)
	require.EqualValues(t, 10, vera.factor().RecoveryCodes)
	_, err = h.as().tryCode("vera", password, recovery[0])
	fails(t, err, connect.CodeUnauthenticated, "the code is wrong")

	remove := func(code string) error {
		_, err := vera.RemoveSecondFactor(ctx, connect.NewRequest(&linktrialv1.RemoveSecondFactorRequest{Code: code}))
		return err
	}
	fails(t, remove(""), connect.CodeInvalidArgument, "the code is wrong")
	require.NoError(t, remove(fresh[0]))
	require.False(t, vera.factor().Set)
	h.login("vera")
	log := h.audit(h.login("anna"), &linktrialv1.ListAuditRequest{User: "vera"})
	var lines []string
	for _, e := range log.Entries {
		lines = append(lines, line(e))
	}
	require.Contains(t, lines, "vera|password and recovery code|AccessService.Login||done|")
	require.Contains(t, lines, "vera|session|AccessService.RemoveSecondFactor||done|")
}

// Who has the password tries codes no faster than passwords, also from many addresses.
func TestGuessingCodes(t *testing.T) {
	h := build(t, nil)
	h.people()
	secret, _ := h.enrol(h.login("vera"))
	h.clock.step(time.Hour)
	refused := 0
	for range access.UserBurst {
		_, err := h.as().tryCode("vera", password, h.wrong(secret))
		if connect.CodeOf(err) == connect.CodeResourceExhausted {
			refused++
		}
	}
	require.Zero(t, refused)
	_, err := h.as().tryCode("vera", password, h.code(secret))
	fails(t, err, connect.CodeResourceExhausted, "too many attempts at")
	var ce *connect.Error
	require.ErrorAs(t, err, &ce)
	require.NotEmpty(t, ce.Meta().Get("Retry-After"))

	// The bound of codes is apart from that of passwords, which a right one would reset.
	guesses := 0
	for i := range 100 {
		if h.a.TakeCode("vera", "2001:db8:0:"+string(rune('a'+i%6))+string(rune('a'+i/6%6))+"::1") {
			guesses++
		}
	}
	require.LessOrEqual(t, guesses, access.CodeBurst)
}

// An admin removes the second factor of a user who has lost it.
func TestAdminRemovesSecondFactor(t *testing.T) {
	h := build(t, nil)
	h.people()
	ctx := t.Context()
	vera, anna := h.login("vera"), h.login("anna")
	h.enrol(vera)
	script := h.withToken(h.token(vera, "nightly", 0).Text)
	users := must(anna.ListUsers(ctx, connect.NewRequest(&linktrialv1.ListUsersRequest{}))).Msg.Users
	require.False(t, users[0].SecondFactor)
	require.True(t, users[2].SecondFactor)
	remove := func(c *caller, name string) error {
		_, err := c.RemoveUserSecondFactor(ctx, connect.NewRequest(&linktrialv1.RemoveUserSecondFactorRequest{Name: name}))
		return err
	}
	fails(t, remove(h.login("dirk"), "vera"), connect.CodePermissionDenied, "dirk is a director")
	fails(t, remove(anna, "dirk"), connect.CodeNotFound, "dirk has no second factor")
	fails(t, remove(anna, "nobody"), connect.CodeNotFound, "nobody")
	h.enrol(anna)
	fails(t, remove(anna, "anna"), connect.CodePermissionDenied, "your own account")
	require.NoError(t, remove(anna, "vera"))
	fails(t, vera.ask(), connect.CodeUnauthenticated, "the session has ended")
	fails(t, script.ask(), connect.CodeUnauthenticated, "was revoked")
	h.login("vera")
	require.Equal(t, "anna|session|AccessService.RemoveUserSecondFactor|name=vera|done|", line(h.audit(anna, &linktrialv1.ListAuditRequest{Action: "RemoveUserSecondFactor", Outcome: "done"}).Entries[0]))
}

// Where a role takes a second factor, who has none can set one up and do nothing else.
func TestRequiredSecondFactor(t *testing.T) {
	h := build(t, func(c *access.Config) { c.SecondFactor = map[access.Role]bool{access.Admin: true} })
	ctx := t.Context()
	require.NoError(t, add(h.withToken(h.setupToken()), "anna", admin))
	anna := h.login("anna")
	fails(t, add(anna, "dirk", director), connect.CodePermissionDenied, "the role admin takes a second factor here, and anna has none")
	fails(t, anna.ask(), connect.CodePermissionDenied, "second-factor set")
	_, err := anna.CreateToken(ctx, connect.NewRequest(&linktrialv1.CreateTokenRequest{Name: "around"}))
	fails(t, err, connect.CodePermissionDenied, "takes a second factor")
	res, err := anna.http.Get(h.url + "/metrics")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusForbidden, res.StatusCode)
	who := must(anna.WhoAmI(ctx, connect.NewRequest(&linktrialv1.WhoAmIRequest{}))).Msg
	require.True(t, who.SecondFactorMissing)
	require.True(t, anna.factor().Required)

	var open []string
	everyProcedure(func(service, method string, _ protoreflect.MethodDescriptor) {
		if access.RuleOf(service, method).Enrols {
			open = append(open, method)
		}
	})
	require.ElementsMatch(t, []string{"Logout", "GetSecondFactor", "BeginSecondFactor", "ConfirmSecondFactor"}, open)

	secret, _ := h.enrol(anna)
	require.NoError(t, add(anna, "dirk", director))
	who = must(anna.WhoAmI(ctx, connect.NewRequest(&linktrialv1.WhoAmIRequest{}))).Msg
	require.False(t, who.SecondFactorMissing)
	require.NoError(t, h.login("dirk").ask(), "it is for admins alone")

	// A token that may less than the role is not asked; one that may as much is.
	low, high := h.withToken(h.token(anna, "low", viewer).Text), h.withToken(h.token(anna, "high", admin).Text)
	_, err = anna.RemoveSecondFactor(ctx, connect.NewRequest(&linktrialv1.RemoveSecondFactorRequest{Code: h.code(secret)}))
	require.NoError(t, err)
	require.NoError(t, low.ask())
	fails(t, high.ask(), connect.CodePermissionDenied, "takes a second factor")
	fails(t, anna.ask(), connect.CodePermissionDenied, "takes a second factor")
}
