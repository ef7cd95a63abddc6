// Package people answers AccessService: who is logged in, users, tokens and the
// audit log. Comes in: the messages of api/proto. Goes out: what
// orchestrator/security/access decides, and the cookies of sessions.
package people

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/security/access"
)

// Service is AccessService.
type Service struct {
	access *access.Access
	log    *slog.Logger
}

// New returns the service. log gets errors that are not the caller's.
func New(a *access.Access, log *slog.Logger) *Service { return &Service{a, log} }

// answer gives a refusal its code.
func (s *Service) answer(ctx context.Context, call string, err error) error {
	if refused := (*access.Refusal)(nil); errors.As(err, &refused) {
		return refused.Coded()
	}
	return reply.Error(ctx, s.log, call, err)
}

func noStore(h http.Header) { h.Set("Cache-Control", "no-store") }

func setCookie(h http.Header, c *http.Cookie) {
	if c != nil {
		h.Set("Set-Cookie", c.String())
	}
}

// tokenLife is -1 where the seconds are more than a token may last.
func tokenLife(seconds int64) time.Duration {
	if seconds < 0 || seconds > int64(access.MaxTokenLife/time.Second) {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

// WhoAmI implements AccessService.
func (s *Service) WhoAmI(ctx context.Context, _ *connect.Request[linktrialv1.WhoAmIRequest]) (*connect.Response[linktrialv1.WhoAmIResponse], error) {
	state := s.access.State()
	m := &linktrialv1.WhoAmIResponse{LoginRequired: state.LoginRequired, SetupNeeded: state.SetupNeeded, OpenToNetwork: state.OpenToNetwork}
	m.ProviderName, m.ProviderProblem = s.access.ProviderState()
	if p, ok := access.From(ctx); ok && p.User != "" {
		m.User, m.Role, m.ByToken, m.Expires, m.SecondFactorMissing = p.User, linktrialv1.Role(p.Role), p.ByToken(), timestamppb.New(p.Expires), p.LacksSecondFactor()
		m.ByProvider = p.ByProvider
	}
	res := connect.NewResponse(m)
	noStore(res.Header())
	return res, nil
}

// Login implements AccessService.
func (s *Service) Login(ctx context.Context, req *connect.Request[linktrialv1.LoginRequest]) (*connect.Response[linktrialv1.LoginResponse], error) {
	m := req.Msg
	got, err := s.access.Login(ctx, access.Credentials{User: m.User, Password: m.Password, Code: m.Code, TokenName: m.TokenName, TokenLife: tokenLife(m.TokenValidSeconds)})
	if err != nil {
		return nil, s.answer(ctx, "Login", err)
	}
	if got.CodeNeeded {
		return connect.NewResponse(&linktrialv1.LoginResponse{CodeNeeded: true}), nil
	}
	res := connect.NewResponse(&linktrialv1.LoginResponse{User: got.User, Role: linktrialv1.Role(got.Role), Token: got.Token, Expires: timestamppb.New(got.Expires)})
	setCookie(res.Header(), got.Cookie)
	noStore(res.Header())
	return res, nil
}

// Logout implements AccessService.
func (s *Service) Logout(ctx context.Context, _ *connect.Request[linktrialv1.LogoutRequest]) (*connect.Response[linktrialv1.LogoutResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "Logout", err)
	}
	cookie, err := s.access.Logout(ctx, p)
	if err != nil {
		return nil, s.answer(ctx, "Logout", err)
	}
	res := connect.NewResponse(&linktrialv1.LogoutResponse{})
	setCookie(res.Header(), cookie)
	return res, nil
}

// ChangePassword implements AccessService.
func (s *Service) ChangePassword(ctx context.Context, req *connect.Request[linktrialv1.ChangePasswordRequest]) (*connect.Response[linktrialv1.ChangePasswordResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "ChangePassword", err)
	}
	cookie, err := s.access.ChangePassword(ctx, p, req.Msg.Current, req.Msg.Password)
	if err != nil {
		return nil, s.answer(ctx, "ChangePassword", err)
	}
	res := connect.NewResponse(&linktrialv1.ChangePasswordResponse{})
	setCookie(res.Header(), cookie)
	return res, nil
}

// CreateToken implements AccessService.
func (s *Service) CreateToken(ctx context.Context, req *connect.Request[linktrialv1.CreateTokenRequest]) (*connect.Response[linktrialv1.CreateTokenResponse], error) {
	p, role, err := callerAndRole(ctx, req.Msg.Role)
	if err != nil {
		return nil, s.answer(ctx, "CreateToken", err)
	}
	row, text, err := s.access.CreateToken(ctx, p, req.Msg.Name, role, tokenLife(req.Msg.ValidSeconds))
	if err != nil {
		return nil, s.answer(ctx, "CreateToken", err)
	}
	res := connect.NewResponse(&linktrialv1.CreateTokenResponse{Token: tokenMessage(row), Text: text})
	noStore(res.Header())
	return res, nil
}

// ListTokens implements AccessService.
func (s *Service) ListTokens(ctx context.Context, req *connect.Request[linktrialv1.ListTokensRequest]) (*connect.Response[linktrialv1.ListTokensResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "ListTokens", err)
	}
	user := req.Msg.User
	switch {
	case req.Msg.AllUsers:
		user = ""
	case user == "":
		user = p.User
	}
	rows, err := s.access.Tokens(ctx, p, user)
	if err != nil {
		return nil, s.answer(ctx, "ListTokens", err)
	}
	m := &linktrialv1.ListTokensResponse{}
	for _, r := range rows {
		m.Tokens = append(m.Tokens, tokenMessage(r))
	}
	return connect.NewResponse(m), nil
}

// RevokeToken implements AccessService.
func (s *Service) RevokeToken(ctx context.Context, req *connect.Request[linktrialv1.RevokeTokenRequest]) (*connect.Response[linktrialv1.RevokeTokenResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "RevokeToken", err)
	}
	row, err := s.access.RevokeToken(ctx, p, req.Msg.Id)
	if err != nil {
		return nil, s.answer(ctx, "RevokeToken", err)
	}
	return connect.NewResponse(&linktrialv1.RevokeTokenResponse{Token: tokenMessage(row)}), nil
}

// ListUsers implements AccessService.
func (s *Service) ListUsers(ctx context.Context, _ *connect.Request[linktrialv1.ListUsersRequest]) (*connect.Response[linktrialv1.ListUsersResponse], error) {
	if _, err := access.Caller(ctx); err != nil {
		return nil, s.answer(ctx, "ListUsers", err)
	}
	rows, err := s.access.Users(ctx)
	if err != nil {
		return nil, s.answer(ctx, "ListUsers", err)
	}
	m := &linktrialv1.ListUsersResponse{}
	for _, r := range rows {
		m.Users = append(m.Users, userMessage(r))
	}
	return connect.NewResponse(m), nil
}

// AddUser implements AccessService.
func (s *Service) AddUser(ctx context.Context, req *connect.Request[linktrialv1.AddUserRequest]) (*connect.Response[linktrialv1.AddUserResponse], error) {
	p, role, err := callerAndRole(ctx, req.Msg.Role)
	if err != nil {
		return nil, s.answer(ctx, "AddUser", err)
	}
	u, err := s.access.AddUser(ctx, p, req.Msg.Name, role, req.Msg.Password)
	if err != nil {
		return nil, s.answer(ctx, "AddUser", err)
	}
	m := userMessage(access.User{Name: u.Name, Role: u.Role, CreatedAt: u.CreatedAt})
	return connect.NewResponse(&linktrialv1.AddUserResponse{User: m}), nil
}

// SetUserRole implements AccessService.
func (s *Service) SetUserRole(ctx context.Context, req *connect.Request[linktrialv1.SetUserRoleRequest]) (*connect.Response[linktrialv1.SetUserRoleResponse], error) {
	_, role, err := callerAndRole(ctx, req.Msg.Role)
	if err == nil {
		err = s.access.SetRole(ctx, req.Msg.Name, role)
	}
	if err != nil {
		return nil, s.answer(ctx, "SetUserRole", err)
	}
	return connect.NewResponse(&linktrialv1.SetUserRoleResponse{}), nil
}

// SetUserPassword implements AccessService.
func (s *Service) SetUserPassword(ctx context.Context, req *connect.Request[linktrialv1.SetUserPasswordRequest]) (*connect.Response[linktrialv1.SetUserPasswordResponse], error) {
	_, err := access.Caller(ctx)
	if err == nil {
		err = s.access.SetPassword(ctx, req.Msg.Name, req.Msg.Password)
	}
	if err != nil {
		return nil, s.answer(ctx, "SetUserPassword", err)
	}
	return connect.NewResponse(&linktrialv1.SetUserPasswordResponse{}), nil
}

// SetUserDisabled implements AccessService.
func (s *Service) SetUserDisabled(ctx context.Context, req *connect.Request[linktrialv1.SetUserDisabledRequest]) (*connect.Response[linktrialv1.SetUserDisabledResponse], error) {
	_, err := access.Caller(ctx)
	if err == nil {
		err = s.access.SetDisabled(ctx, req.Msg.Name, req.Msg.Disabled)
	}
	if err != nil {
		return nil, s.answer(ctx, "SetUserDisabled", err)
	}
	return connect.NewResponse(&linktrialv1.SetUserDisabledResponse{}), nil
}

// ListAudit implements AccessService.
func (s *Service) ListAudit(ctx context.Context, req *connect.Request[linktrialv1.ListAuditRequest]) (*connect.Response[linktrialv1.ListAuditResponse], error) {
	if _, err := access.Caller(ctx); err != nil {
		return nil, s.answer(ctx, "ListAudit", err)
	}
	m := req.Msg
	q := access.AuditQuery{Before: m.Before, User: m.User, Action: m.Action, Outcome: m.Outcome, Limit: m.Limit}
	if m.Since != nil {
		if err := m.Since.CheckValid(); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("since: %w", err))
		}
		t := m.Since.AsTime()
		q.Since = &t
	}
	rows, more, err := s.access.AuditLog(ctx, q)
	if err != nil {
		return nil, s.answer(ctx, "ListAudit", err)
	}
	out := &linktrialv1.ListAuditResponse{More: more}
	for _, r := range rows {
		out.Entries = append(out.Entries, &linktrialv1.AuditEntry{
			Id: r.ID, At: timestamppb.New(r.At), User: r.UserName, Via: r.Via, Address: r.Address, Action: r.Action, Detail: r.Detail, Outcome: r.Outcome, Message: r.Message, Hash: r.Hash})
	}
	if c := s.access.LastCheck(); !c.At.IsZero() {
		out.Check = &linktrialv1.AuditCheck{At: timestamppb.New(c.At), Entries: c.Entries, Problem: c.Problem}
	}
	return connect.NewResponse(out), nil
}

// ExportAudit implements AccessService.
func (s *Service) ExportAudit(ctx context.Context, req *connect.Request[linktrialv1.ExportAuditRequest]) (*connect.Response[linktrialv1.ExportAuditResponse], error) {
	if _, err := access.Caller(ctx); err != nil {
		return nil, s.answer(ctx, "ExportAudit", err)
	}
	page, err := s.access.ExportAudit(ctx, req.Msg.After, req.Msg.Limit)
	if err != nil {
		return nil, s.answer(ctx, "ExportAudit", err)
	}
	out := &linktrialv1.ExportAuditResponse{More: page.More}
	for _, e := range page.Entries {
		out.Entries = append(out.Entries, &linktrialv1.AuditEntry{
			Id: e.ID, At: timestamppb.New(e.At), User: e.User, Via: e.Via, Address: e.Address, Action: e.Action, Detail: e.Detail, Outcome: e.Outcome, Message: e.Message, Hash: e.Hash[:]})
	}
	for _, h := range page.Heads {
		out.Heads = append(out.Heads, &linktrialv1.AuditHead{Entry: h.Entry, Hash: h.Hash[:], Signed: timestamppb.New(h.Signed), KeyId: h.Signature.KeyID, Signature: h.Signature.Bytes})
	}
	return connect.NewResponse(out), nil
}

// callerAndRole reads the API's role; unspecified is [access.None].
func callerAndRole(ctx context.Context, m linktrialv1.Role) (access.Principal, access.Role, error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return p, access.None, err
	}
	role, err := access.CheckRole(int(m))
	return p, role, err
}

func stamp(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(*t)
}

func roleMessage(text string) linktrialv1.Role {
	role, _ := access.ParseRole(text) // the table has no others
	return linktrialv1.Role(role)
}

func userMessage(r access.User) *linktrialv1.User {
	return &linktrialv1.User{Name: r.Name, Role: roleMessage(r.Role), Disabled: r.Disabled, Created: timestamppb.New(r.CreatedAt), LastLogin: stamp(r.LastLoginAt), Sessions: r.Sessions, Tokens: r.Tokens, SecondFactor: r.SecondFactor, ByProvider: r.ByProvider}
}

func tokenMessage(r access.Token) *linktrialv1.Token {
	return &linktrialv1.Token{Id: r.ID, User: r.UserName, Name: r.Name, Role: roleMessage(r.Role), Created: timestamppb.New(r.CreatedAt), Expires: timestamppb.New(r.ExpiresAt),
		LastUsed: stamp(r.UsedAt), Revoked: stamp(r.RevokedAt), OfLogin: r.OfLogin}
}
