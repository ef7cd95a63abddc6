package access_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/access/accessdb"
)

const (
	viewer   = linktrialv1.Role_ROLE_VIEWER
	director = linktrialv1.Role_ROLE_DIRECTOR
	admin    = linktrialv1.Role_ROLE_ADMIN
)

// ask is any call of a viewer.
func (c *caller) ask() error {
	_, err := c.ListTokens(context.Background(), connect.NewRequest(&linktrialv1.ListTokensRequest{}))
	return err
}

// Logs are sent to other machines and read by more people than the data folder is.
func TestSetupTokenIsNotInTheLog(t *testing.T) {
	var log bytes.Buffer
	h := build(t, func(c *access.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	token := h.setupToken()
	require.NoError(t, add(h.withToken(token), "anna", admin))
	require.Contains(t, log.String(), filepath.Join(h.data, access.SetupFile))
	// Nor a part from which the rest could be guessed.
	require.Greater(t, len(token), 40)
	for i := range len(token) - 12 {
		require.NotContains(t, log.String(), token[i:i+12])
	}
}

func TestFirstAdmin(t *testing.T) {
	h := build(t, nil)
	st, err := os.Stat(filepath.Join(h.data, access.SetupFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	res, err := h.as().WhoAmI(t.Context(), connect.NewRequest(&linktrialv1.WhoAmIRequest{}))
	require.NoError(t, err)
	require.True(t, res.Msg.SetupNeeded)
	require.True(t, res.Msg.LoginRequired)

	fails(t, add(h.as(), "anna", admin), connect.CodeUnauthenticated, "log in first")
	fails(t, add(h.withToken(access.NewSetupTokenText()), "anna", admin), connect.CodeUnauthenticated, "not the setup token of the running orchestrator", access.SetupFile)
	c := h.withToken(h.setupToken())
	fails(t, add(c, "anna", director), connect.CodePermissionDenied, "makes an admin")
	fails(t, c.ask(), connect.CodePermissionDenied, "makes the first admin and does nothing else")
	fails(t, add(c, "Anna!", admin), connect.CodeInvalidArgument, `name "Anna!"`)

	// Of many that come at once one is the first.
	var wg sync.WaitGroup
	made := make(chan string, 8)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		wg.Go(func() {
			if err := add(h.withToken(h.a0(c)), name, admin); err == nil {
				made <- name
			}
		})
	}
	wg.Wait()
	close(made)
	var first []string
	for name := range made {
		first = append(first, name)
	}
	require.Len(t, first, 1)
	require.NoFileExists(t, filepath.Join(h.data, access.SetupFile))
	fails(t, add(c, "late", admin), connect.CodeUnauthenticated, "used up")
	require.Equal(t, first[0]+" admin", h.who(h.login(first[0])))

	// The next start has no use for one, unless it is asked for.
	require.NoError(t, os.WriteFile(filepath.Join(h.data, access.SetupFile), []byte("left behind"), 0o600))
	again, err := access.New(t.Context(), access.Config{Store: h.store, Required: true, DataDir: h.data, Cost: cheap})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(h.data, access.SetupFile))
	require.NoError(t, again.Close())
	again, err = access.New(t.Context(), access.Config{Store: h.store, Required: true, DataDir: h.data, Cost: cheap, Setup: true})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(h.data, access.SetupFile))
	_, err = again.AddUser(t.Context(), access.SetupPrincipal(), "rescue", access.Admin, password)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	require.NoFileExists(t, filepath.Join(h.data, access.SetupFile))
}

// a0 is the bearer's token of a caller.
func (h *house) a0(c *caller) string {
	return strings.TrimPrefix(c.http.Transport.(*header).set.Get("Authorization"), "Bearer ")
}

func TestSession(t *testing.T) {
	h := build(t, nil)
	h.people()
	c := h.login("vera")
	require.Equal(t, "vera viewer", h.who(c))
	require.NoError(t, c.ask())

	// The database has only what the cookie's secret hashes to.
	url, err := http.NewRequest(http.MethodGet, h.url, nil)
	require.NoError(t, err)
	cookies := c.http.Jar.Cookies(url.URL)
	require.Len(t, cookies, 1)
	hash, err := access.HashOf(cookies[0].Value)
	require.NoError(t, err)
	_, err = accessdb.New(h.store).Session(t.Context(), hash)
	require.NoError(t, err)

	// A browser that logs in again has one session.
	_, err = c.try("vera", password)
	require.NoError(t, err)
	_, err = accessdb.New(h.store).Session(t.Context(), hash)
	require.Error(t, err)

	_, err = c.Logout(t.Context(), connect.NewRequest(&linktrialv1.LogoutRequest{}))
	require.NoError(t, err)
	require.Empty(t, c.http.Jar.Cookies(url.URL))
	fails(t, c.ask(), connect.CodeUnauthenticated, "log in first")
	c = h.as("Cookie", "linktrial="+cookies[0].Value)
	fails(t, c.ask(), connect.CodeUnauthenticated, "the session has ended")
	require.Empty(t, h.who(c))
}

func TestSessionExpires(t *testing.T) {
	h := build(t, nil)
	h.people()
	idle := h.login("vera")
	h.clock.step(access.SessionIdle - time.Second)
	require.NoError(t, idle.ask())
	h.clock.step(access.SessionIdle - time.Second)
	require.NoError(t, idle.ask(), "a call keeps a session")
	h.clock.step(access.SessionIdle)
	fails(t, idle.ask(), connect.CodeUnauthenticated, "session of vera has expired")
	require.Empty(t, h.who(idle))

	busy := h.login("vera")
	for spent := time.Duration(0); spent < access.SessionLife-time.Hour; spent += time.Hour {
		require.NoError(t, busy.ask())
		h.clock.step(time.Hour)
	}
	h.clock.step(time.Hour)
	fails(t, busy.ask(), connect.CodeUnauthenticated, "session of vera has expired")
}

func TestPasswordChange(t *testing.T) {
	h := build(t, nil)
	h.people()
	change := func(c *caller, current, next string) error {
		_, err := c.ChangePassword(t.Context(), connect.NewRequest(&linktrialv1.ChangePasswordRequest{Current: current, Password: next}))
		return err
	}
	here, there := h.login("vera"), h.login("vera")
	program := h.withToken(h.token(here, "program", 0).Text)
	fails(t, change(here, "wrong password", "harbour violin seven"), connect.CodeInvalidArgument, "current password is wrong")
	fails(t, change(here, password, "short"), connect.CodeInvalidArgument, "5 characters")
	require.NoError(t, there.ask())
	require.NoError(t, change(here, password, "harbour violin seven"))
	fails(t, there.ask(), connect.CodeUnauthenticated, "the session has ended")
	require.NoError(t, here.ask(), "who changed it was logged out")
	fails(t, program.ask(), connect.CodeUnauthenticated, `token "program" of vera was revoked`)
	_, err := h.as().try("vera", password)
	fails(t, err, connect.CodeUnauthenticated, "name or the password is wrong")
	_, err = h.as().try("vera", "harbour violin seven")
	require.NoError(t, err)

	anna := h.login("anna")
	_, err = anna.SetUserPassword(t.Context(), connect.NewRequest(&linktrialv1.SetUserPasswordRequest{Name: "vera", Password: password}))
	require.NoError(t, err)
	fails(t, here.ask(), connect.CodeUnauthenticated, "the session has ended")
	h.login("vera")
	_, err = anna.SetUserPassword(t.Context(), connect.NewRequest(&linktrialv1.SetUserPasswordRequest{Name: "nobody", Password: password}))
	fails(t, err, connect.CodeNotFound, `no user "nobody"`)
}

func TestGuessing(t *testing.T) {
	h := build(t, nil)
	h.people()
	for range access.UserBurst {
		_, err := h.as().try("vera", "wrong password")
		fails(t, err, connect.CodeUnauthenticated, "name or the password is wrong")
	}
	_, err := h.as().try("vera", password)
	fails(t, err, connect.CodeResourceExhausted, "too many attempts at passwords: try again in 30 s")
	var ce *connect.Error
	require.ErrorAs(t, err, &ce)
	require.Equal(t, "30", ce.Meta().Get("Retry-After"))
	_, err = h.as().try("dirk", password)
	require.NoError(t, err, "others are kept out too")
	h.clock.step(access.UserInterval)
	_, err = h.as().try("vera", password)
	require.NoError(t, err)
	for range access.UserBurst {
		_, err := h.as().try("nobody", "wrong password")
		fails(t, err, connect.CodeUnauthenticated, "name or the password is wrong")
	}
	_, err = h.as().try("nobody", "wrong password")
	fails(t, err, connect.CodeResourceExhausted) // it does not tell which names there are
}

func TestTokens(t *testing.T) {
	h := build(t, nil)
	h.people()
	ctx := t.Context()
	dirk := h.login("dirk")
	create := func(c *caller, name string, role linktrialv1.Role, life int64) error {
		_, err := c.CreateToken(ctx, connect.NewRequest(&linktrialv1.CreateTokenRequest{Name: name, Role: role, ValidSeconds: life}))
		return err
	}
	fails(t, create(dirk, "up", admin, 0), connect.CodePermissionDenied, "dirk is a director, and a token may do no more")
	fails(t, create(dirk, "", viewer, 0), connect.CodeInvalidArgument, "expected 1 to 64 printable")
	fails(t, create(dirk, "two\nlines", viewer, 0), connect.CodeInvalidArgument, "expected 1 to 64 printable")
	fails(t, create(dirk, "long", viewer, 1<<60), connect.CodeInvalidArgument, "between a minute and 366 days")
	fails(t, create(dirk, "short", viewer, 59), connect.CodeInvalidArgument, "between a minute and 366 days")
	fails(t, create(dirk, "role", 7, 0), connect.CodeInvalidArgument, "role 7")
	low := h.token(dirk, "low", viewer)
	require.Equal(t, "dirk viewer", h.who(h.withToken(low.Text)))
	fails(t, create(dirk, "low", viewer, 0), connect.CodeAlreadyExists, `dirk has a token "low" already`)
	fails(t, create(h.withToken(low.Text), "child", viewer, 0), connect.CodePermissionDenied, "makes no further tokens")

	// Shown once: the database does not have it.
	row, err := accessdb.New(h.store).Tokens(ctx, "dirk")
	require.NoError(t, err)
	require.Len(t, row, 1)
	hash, err := access.HashOf(low.Text)
	require.NoError(t, err)
	require.Equal(t, low.Token.Id, must(accessdb.New(h.store).TokenByHash(ctx, hash)).ID)

	// No token does more than its user may now.
	high := h.withToken(h.token(dirk, "high", director).Text)
	require.Equal(t, "dirk director", h.who(high))
	anna := h.login("anna")
	_, err = anna.SetUserRole(ctx, connect.NewRequest(&linktrialv1.SetUserRoleRequest{Name: "dirk", Role: viewer}))
	require.NoError(t, err)
	require.Equal(t, "dirk viewer", h.who(high))
	require.Equal(t, "dirk viewer", h.who(dirk))

	// Others' tokens are theirs and the admins'.
	vera := h.login("vera")
	revoke := func(c *caller, id string) error {
		_, err := c.RevokeToken(ctx, connect.NewRequest(&linktrialv1.RevokeTokenRequest{Id: id}))
		return err
	}
	fails(t, revoke(vera, low.Token.Id), connect.CodeNotFound, "no token")
	fails(t, revoke(vera, "low"), connect.CodeNotFound, "no token")
	_, err = vera.ListTokens(ctx, connect.NewRequest(&linktrialv1.ListTokensRequest{User: "dirk"}))
	fails(t, err, connect.CodePermissionDenied, "vera is a viewer, and this takes an admin")
	_, err = vera.ListTokens(ctx, connect.NewRequest(&linktrialv1.ListTokensRequest{AllUsers: true}))
	fails(t, err, connect.CodePermissionDenied)
	all, err := anna.ListTokens(ctx, connect.NewRequest(&linktrialv1.ListTokensRequest{AllUsers: true}))
	require.NoError(t, err)
	require.Len(t, all.Msg.Tokens, 2)
	require.NoError(t, revoke(dirk, "low"))
	fails(t, h.withToken(low.Text).ask(), connect.CodeUnauthenticated, `token "low" of dirk was revoked on 2026-05-01 08:00:00 UTC`)
	fails(t, revoke(dirk, low.Token.Id), connect.CodeFailedPrecondition, "revoked on 2026-05-01 08:00:00 UTC already")
	require.NoError(t, create(dirk, "low", viewer, 60), "a name is free again")

	h.clock.step(access.APITokenLife)
	fails(t, high.ask(), connect.CodeUnauthenticated, `token "high" of dirk expired on`)
	require.NoError(t, create(h.login("dirk"), "high", viewer, 0), "an expired one's name is free")
	fails(t, h.withToken(access.NewTokenText()).ask(), connect.CodeUnauthenticated, "not known here")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Who logs in from a command line gets a token, the one of the same place ends.
func TestLoginForToken(t *testing.T) {
	h := build(t, nil)
	h.people()
	login := func() *caller {
		res, err := h.as().Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: "dirk", Password: password, TokenName: "laptop"}))
		require.NoError(t, err)
		require.Empty(t, res.Header().Get("Set-Cookie"))
		return h.withToken(res.Msg.Token)
	}
	first := login()
	require.Equal(t, "dirk director", h.who(first))
	second := login()
	fails(t, first.ask(), connect.CodeUnauthenticated, "was revoked")
	h.token(second, "script", viewer)
	_, err := second.Logout(t.Context(), connect.NewRequest(&linktrialv1.LogoutRequest{}))
	require.NoError(t, err)
	fails(t, second.ask(), connect.CodeUnauthenticated, "was revoked")
	_, err = h.as().Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: "dirk", Password: password, TokenName: "script"}))
	fails(t, err, connect.CodeAlreadyExists, "script")
}

func TestUsers(t *testing.T) {
	h := build(t, nil)
	h.people()
	ctx := t.Context()
	anna, vera := h.login("anna"), h.login("vera")
	role := func(c *caller, name string, r linktrialv1.Role) error {
		_, err := c.SetUserRole(ctx, connect.NewRequest(&linktrialv1.SetUserRoleRequest{Name: name, Role: r}))
		return err
	}
	disable := func(name string, d bool) error {
		_, err := anna.SetUserDisabled(ctx, connect.NewRequest(&linktrialv1.SetUserDisabledRequest{Name: name, Disabled: d}))
		return err
	}
	fails(t, add(anna, "vera", viewer), connect.CodeAlreadyExists, "a user vera already")
	fails(t, add(anna, "x", 0), connect.CodeInvalidArgument, "no role")
	fails(t, role(vera, "vera", admin), connect.CodePermissionDenied, "vera is a viewer, and this takes an admin")
	fails(t, role(anna, "anna", viewer), connect.CodeFailedPrecondition, "the only admin")
	fails(t, disable("anna", true), connect.CodeFailedPrecondition, "the only admin")
	fails(t, role(anna, "nobody", viewer), connect.CodeNotFound, "nobody")
	fails(t, role(anna, "vera", 0), connect.CodeInvalidArgument, "no role")

	program := h.withToken(h.token(vera, "program", 0).Text)
	require.NoError(t, disable("vera", true))
	fails(t, vera.ask(), connect.CodeUnauthenticated, "the session has ended")
	fails(t, program.ask(), connect.CodeUnauthenticated, "account of vera is disabled")
	_, err := h.as().try("vera", password)
	fails(t, err, connect.CodePermissionDenied, "account of vera is disabled")
	_, err = h.as().try("vera", "wrong password")
	fails(t, err, connect.CodeUnauthenticated, "name or the password is wrong")
	require.NoError(t, disable("vera", false))
	require.NoError(t, program.ask())

	require.NoError(t, role(anna, "dirk", admin))
	require.NoError(t, role(anna, "anna", viewer))
	fails(t, role(anna, "anna", admin), connect.CodePermissionDenied, "anna is a viewer")
	res, err := h.login("dirk").ListUsers(ctx, connect.NewRequest(&linktrialv1.ListUsersRequest{}))
	require.NoError(t, err)
	var names []string
	for _, u := range res.Msg.Users {
		names = append(names, u.Name+" "+access.Role(u.Role).String())
	}
	require.Equal(t, []string{"anna viewer", "dirk admin", "vera viewer"}, names)
	require.EqualValues(t, 1, res.Msg.Users[2].Tokens)
	require.NotNil(t, res.Msg.Users[0].LastLogin)
}

// Two admins who each take the other's role leave one of them.
func TestLastAdmin(t *testing.T) {
	h := build(t, nil)
	h.people()
	anna := h.login("anna")
	_, err := anna.SetUserRole(t.Context(), connect.NewRequest(&linktrialv1.SetUserRoleRequest{Name: "dirk", Role: admin}))
	require.NoError(t, err)
	dirk := h.login("dirk")
	var wg sync.WaitGroup
	for _, x := range []struct {
		c    *caller
		name string
	}{{anna, "dirk"}, {dirk, "anna"}} {
		wg.Go(func() {
			_, _ = x.c.SetUserDisabled(context.Background(), connect.NewRequest(&linktrialv1.SetUserDisabledRequest{Name: x.name, Disabled: true}))
		})
	}
	wg.Wait()
	n, err := accessdb.New(h.store).ActiveAdmins(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}
