package access

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/store/dbsqlc"
)

// Service is AccessService, for linktrialv1connect.NewAccessServiceHandler.
func (a *Access) Service() linktrialv1connect.AccessServiceHandler { return &service{a} }

type service struct{ a *Access }

// reply logs what is nobody's fault but ours, once, and answers it without
// telling more than that.
func (s *service) reply(ctx context.Context, call string, err error) error {
	var coded *connect.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded):
		return coded
	case ctx.Err() != nil:
		return ctx.Err()
	}
	s.a.log.Error("call failed", "call", call, "error", err)
	return refuse(connect.CodeInternal, "the orchestrator failed at this: its log says why")
}

// caller is who calls; nobody does where the orchestrator asks nobody.
func (s *service) caller(ctx context.Context) (Principal, error) {
	p, ok := From(ctx)
	if !ok {
		return p, refuse(connect.CodeFailedPrecondition, "this orchestrator asks nobody who they are: 'linktrial serve --login' does")
	}
	return p, nil
}

func (s *service) WhoAmI(ctx context.Context, _ *connect.Request[linktrialv1.WhoAmIRequest]) (*connect.Response[linktrialv1.WhoAmIResponse], error) {
	good, forced := s.a.setupState()
	m := &linktrialv1.WhoAmIResponse{LoginRequired: s.a.cfg.Required, SetupNeeded: good && !forced, OpenToNetwork: s.a.cfg.OpenToNetwork}
	if p, ok := From(ctx); ok && p.User != "" {
		m.User, m.Role, m.ByToken, m.Expires = p.User, p.Role.message(), p.token != "", timestamppb.New(p.Expires)
	}
	res := connect.NewResponse(m)
	res.Header().Set("Cache-Control", "no-store")
	return res, nil
}

func (s *service) Login(ctx context.Context, req *connect.Request[linktrialv1.LoginRequest]) (*connect.Response[linktrialv1.LoginResponse], error) {
	m := req.Msg
	if !s.a.cfg.Required {
		return nil, refuse(connect.CodeFailedPrecondition, "this orchestrator asks nobody who they are: there is nothing to log in to")
	}
	c := callOf(ctx)
	if c.entry != nil {
		// Who types the password in the wrong place must not find it in the log.
		c.entry.user, c.entry.via = "", "password"
		if userForm.MatchString(m.User) {
			c.entry.user = m.User
		}
		c.entry.detail = ""
		if m.TokenName != "" {
			c.entry.detail = "token_name=" + quoted(m.TokenName)
		}
	}
	u, err := s.a.prove(ctx, m.User, m.Password, c.address)
	if err != nil {
		return nil, s.reply(ctx, "Login", err)
	}
	role, err := ParseRole(u.Role)
	if err != nil {
		return nil, s.reply(ctx, "Login", err)
	}
	out := &linktrialv1.LoginResponse{User: u.Name, Role: role.message()}
	res := connect.NewResponse(out)
	if m.TokenName != "" {
		life := time.Duration(m.TokenValidSeconds) * time.Second
		if m.TokenValidSeconds == 0 {
			life = loginTokenLife
		}
		if m.TokenValidSeconds < 0 || m.TokenValidSeconds > int64(maxTokenLife/time.Second) {
			life = -1
		}
		row, text, err := s.a.makeToken(ctx, newToken{user: u.Name, name: m.TokenName, role: role, life: life, ofLogin: true})
		if err != nil {
			return nil, s.reply(ctx, "Login", err)
		}
		out.Token, out.Expires = text.text(), timestamppb.New(row.ExpiresAt)
	} else {
		// A browser has one session: the one it came with ends.
		if p, ok := From(ctx); ok && p.session != nil {
			if err := s.a.endSession(ctx, p.session); err != nil {
				return nil, s.reply(ctx, "Login", err)
			}
		}
		text, expires, err := s.a.openSession(ctx, s.a.store.Queries, u.Name)
		if err != nil {
			return nil, s.reply(ctx, "Login", err)
		}
		out.Expires = timestamppb.New(expires)
		res.Header().Set("Set-Cookie", sessionCookie(text.text(), c.secure, int(sessionLife/time.Second)).String())
	}
	now := s.a.now()
	if err := s.a.store.UserLoggedIn(ctx, dbsqlc.UserLoggedInParams{Name: u.Name, LastLoginAt: &now}); err != nil {
		return nil, s.reply(ctx, "Login", err)
	}
	res.Header().Set("Cache-Control", "no-store")
	return res, nil
}

func (s *service) Logout(ctx context.Context, _ *connect.Request[linktrialv1.LogoutRequest]) (*connect.Response[linktrialv1.LogoutResponse], error) {
	p, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	res := connect.NewResponse(&linktrialv1.LogoutResponse{})
	if p.token != "" {
		_, err = s.a.revokeToken(ctx, p, p.token)
	} else if err = s.a.endSession(ctx, p.session); err == nil {
		res.Header().Set("Set-Cookie", sessionCookie("", callOf(ctx).secure, -1).String())
	}
	if err != nil {
		return nil, s.reply(ctx, "Logout", err)
	}
	return res, nil
}

func (s *service) ChangePassword(ctx context.Context, req *connect.Request[linktrialv1.ChangePasswordRequest]) (*connect.Response[linktrialv1.ChangePasswordResponse], error) {
	p, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	c := callOf(ctx)
	if _, err := s.a.prove(ctx, p.User, req.Msg.Current, c.address); err != nil {
		if connect.CodeOf(err) == connect.CodeUnauthenticated {
			// Who calls is known: it is the password that is not right.
			err = refuse(connect.CodeInvalidArgument, "the current password is wrong")
		}
		return nil, s.reply(ctx, "ChangePassword", err)
	}
	if err := s.a.setPassword(ctx, p.User, req.Msg.Password); err != nil {
		return nil, s.reply(ctx, "ChangePassword", err)
	}
	res := connect.NewResponse(&linktrialv1.ChangePasswordResponse{})
	if p.session != nil {
		text, _, err := s.a.openSession(ctx, s.a.store.Queries, p.User)
		if err != nil {
			return nil, s.reply(ctx, "ChangePassword", err)
		}
		res.Header().Set("Set-Cookie", sessionCookie(text.text(), c.secure, int(sessionLife/time.Second)).String())
	}
	return res, nil
}

func (s *service) CreateToken(ctx context.Context, req *connect.Request[linktrialv1.CreateTokenRequest]) (*connect.Response[linktrialv1.CreateTokenResponse], error) {
	p, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	role, err := roleOf(req.Msg.Role)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	life := time.Duration(req.Msg.ValidSeconds) * time.Second
	if req.Msg.ValidSeconds < 0 || req.Msg.ValidSeconds > int64(maxTokenLife/time.Second) {
		life = -1
	}
	row, text, err := s.a.createToken(ctx, p, req.Msg.Name, role, life)
	if err != nil {
		return nil, s.reply(ctx, "CreateToken", err)
	}
	res := connect.NewResponse(&linktrialv1.CreateTokenResponse{Token: tokenMessage(row), Text: text.text()})
	res.Header().Set("Cache-Control", "no-store")
	return res, nil
}

func (s *service) ListTokens(ctx context.Context, req *connect.Request[linktrialv1.ListTokensRequest]) (*connect.Response[linktrialv1.ListTokensResponse], error) {
	p, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	user := req.Msg.User
	switch {
	case user == "" && !req.Msg.AllUsers:
		user = p.User
	case req.Msg.AllUsers:
		user = ""
	}
	if user != p.User && p.Role < Admin {
		return nil, refuse(connect.CodePermissionDenied, "%s", p.lacks(Admin))
	}
	rows, err := s.a.store.Tokens(ctx, user)
	if err != nil {
		return nil, s.reply(ctx, "ListTokens", err)
	}
	m := &linktrialv1.ListTokensResponse{}
	for _, r := range rows {
		m.Tokens = append(m.Tokens, tokenMessage(r))
	}
	return connect.NewResponse(m), nil
}

func (s *service) RevokeToken(ctx context.Context, req *connect.Request[linktrialv1.RevokeTokenRequest]) (*connect.Response[linktrialv1.RevokeTokenResponse], error) {
	p, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	row, err := s.a.revokeToken(ctx, p, req.Msg.Id)
	if err != nil {
		return nil, s.reply(ctx, "RevokeToken", err)
	}
	return connect.NewResponse(&linktrialv1.RevokeTokenResponse{Token: tokenMessage(row)}), nil
}

func (s *service) ListUsers(ctx context.Context, _ *connect.Request[linktrialv1.ListUsersRequest]) (*connect.Response[linktrialv1.ListUsersResponse], error) {
	if _, err := s.caller(ctx); err != nil {
		return nil, err
	}
	now := s.a.now()
	rows, err := s.a.store.Users(ctx, dbsqlc.UsersParams{Now: now, IdleSince: now.Add(-sessionIdle)})
	if err != nil {
		return nil, s.reply(ctx, "ListUsers", err)
	}
	m := &linktrialv1.ListUsersResponse{}
	for _, r := range rows {
		m.Users = append(m.Users, userMessage(r))
	}
	return connect.NewResponse(m), nil
}

func (s *service) AddUser(ctx context.Context, req *connect.Request[linktrialv1.AddUserRequest]) (*connect.Response[linktrialv1.AddUserResponse], error) {
	p, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	role, err := roleOf(req.Msg.Role)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	u, err := s.a.addUser(ctx, p, req.Msg.Name, role, req.Msg.Password)
	if err != nil {
		return nil, s.reply(ctx, "AddUser", err)
	}
	m := userMessage(dbsqlc.UsersRow{Name: u.Name, Role: u.Role, CreatedAt: u.CreatedAt})
	return connect.NewResponse(&linktrialv1.AddUserResponse{User: m}), nil
}

func (s *service) SetUserRole(ctx context.Context, req *connect.Request[linktrialv1.SetUserRoleRequest]) (*connect.Response[linktrialv1.SetUserRoleResponse], error) {
	if _, err := s.caller(ctx); err != nil {
		return nil, err
	}
	role, err := roleOf(req.Msg.Role)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := s.a.setRole(ctx, req.Msg.Name, role); err != nil {
		return nil, s.reply(ctx, "SetUserRole", err)
	}
	return connect.NewResponse(&linktrialv1.SetUserRoleResponse{}), nil
}

func (s *service) SetUserPassword(ctx context.Context, req *connect.Request[linktrialv1.SetUserPasswordRequest]) (*connect.Response[linktrialv1.SetUserPasswordResponse], error) {
	if _, err := s.caller(ctx); err != nil {
		return nil, err
	}
	if err := s.a.setPassword(ctx, req.Msg.Name, req.Msg.Password); err != nil {
		return nil, s.reply(ctx, "SetUserPassword", err)
	}
	return connect.NewResponse(&linktrialv1.SetUserPasswordResponse{}), nil
}

func (s *service) SetUserDisabled(ctx context.Context, req *connect.Request[linktrialv1.SetUserDisabledRequest]) (*connect.Response[linktrialv1.SetUserDisabledResponse], error) {
	if _, err := s.caller(ctx); err != nil {
		return nil, err
	}
	if err := s.a.setDisabled(ctx, req.Msg.Name, req.Msg.Disabled); err != nil {
		return nil, s.reply(ctx, "SetUserDisabled", err)
	}
	return connect.NewResponse(&linktrialv1.SetUserDisabledResponse{}), nil
}

const (
	auditPage    = 100
	maxAuditPage = 1000
)

func (s *service) ListAudit(ctx context.Context, req *connect.Request[linktrialv1.ListAuditRequest]) (*connect.Response[linktrialv1.ListAuditResponse], error) {
	if _, err := s.caller(ctx); err != nil {
		return nil, err
	}
	q := req.Msg
	limit := q.Limit
	switch {
	case limit == 0:
		limit = auditPage
	case limit < 0 || limit > maxAuditPage:
		return nil, refuse(connect.CodeInvalidArgument, "limit %d, expected 1 to %d", limit, maxAuditPage)
	}
	switch q.Outcome {
	case "", outcomeDone, outcomeRefused, outcomeFailed:
	default:
		return nil, refuse(connect.CodeInvalidArgument, "outcome %q, expected done, refused or failed", shortened(clean(q.Outcome), 40))
	}
	p := dbsqlc.AuditParams{Before: q.Before, UserName: clean(q.User), Action: clean(q.Action), Outcome: q.Outcome, Most: limit + 1}
	if q.Since != nil {
		if err := q.Since.CheckValid(); err != nil {
			return nil, refuse(connect.CodeInvalidArgument, "since: %w", err)
		}
		t := q.Since.AsTime()
		p.Since = &t
	}
	rows, err := s.a.store.Audit(ctx, p)
	if err != nil {
		return nil, s.reply(ctx, "ListAudit", err)
	}
	m := &linktrialv1.ListAuditResponse{}
	if m.More = len(rows) > int(limit); m.More {
		rows = rows[:limit]
	}
	for _, r := range rows {
		m.Entries = append(m.Entries, &linktrialv1.AuditEntry{
			Id: r.ID, At: timestamppb.New(r.At), User: r.UserName, Via: r.Via, Address: r.Address, Action: r.Action, Detail: r.Detail, Outcome: r.Outcome, Message: r.Message})
	}
	return connect.NewResponse(m), nil
}

func stamp(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(*t)
}

func userMessage(r dbsqlc.UsersRow) *linktrialv1.User {
	role, _ := ParseRole(r.Role) // the table has no others
	return &linktrialv1.User{Name: r.Name, Role: role.message(), Disabled: r.Disabled, Created: timestamppb.New(r.CreatedAt), LastLogin: stamp(r.LastLoginAt), Sessions: r.Sessions, Tokens: r.Tokens}
}

func tokenMessage(r dbsqlc.TokensRow) *linktrialv1.Token {
	role, _ := ParseRole(r.Role) // the table has no others
	return &linktrialv1.Token{Id: r.ID, User: r.UserName, Name: r.Name, Role: role.message(), Created: timestamppb.New(r.CreatedAt), Expires: timestamppb.New(r.ExpiresAt),
		LastUsed: stamp(r.UsedAt), Revoked: stamp(r.RevokedAt), OfLogin: r.OfLogin}
}
