// Package enrol answers EnrolmentService, which gives nodes their certificates,
// and NodeService, with which people invite and revoke nodes. Comes in: the
// messages of api/proto. Goes out: what orchestrator/security/authority decides.
package enrol

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/quota"
	"linktrial/internal/signature"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/request"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/authority"
	"linktrial/orchestrator/security/joining"
)

// Config is what the services answer from.
type Config struct {
	Authority    *authority.Authority
	Joining      *joining.Joining
	SigningKeys  func() []signature.Endorsed // given to nodes that enrol
	Version      string                      // of the orchestrator
	Logger       *slog.Logger
	DatabaseLost func() time.Time  // since when the database does not answer; zero while it does
	OverBound    func(quota.Bound) // hears of renewals that were refused as too many
}

// Mount adds both services to a mux. The options are of the service that people call.
func Mount(mux *http.ServeMux, cfg Config, opts ...connect.HandlerOption) {
	own := append([]connect.HandlerOption{connect.WithInterceptors(reply.Errors(cfg.Logger, cfg.DatabaseLost)), reply.Recover(cfg.Logger)}, request.Options()...)
	mux.Handle(linktrialv1connect.NewEnrolmentServiceHandler(&enrolment{cfg: cfg, guard: cfg.Authority.Guard().WrapUnary}, own...))
	mux.Handle(linktrialv1connect.NewNodeServiceHandler(&nodes{cfg: cfg}, opts...))
	mux.Handle(linktrialv1connect.NewJoinServiceHandler(&joins{cfg: cfg}, opts...))
}

func (c *Config) answer(ctx context.Context, call string, err error) error {
	switch {
	case errors.Is(err, authority.ErrToken):
		return connect.NewError(connect.CodeUnauthenticated, err)
	case errors.Is(err, joining.ErrCode):
		return connect.NewError(connect.CodePermissionDenied, err)
	case errors.Is(err, joining.ErrBusy):
		return connect.NewError(connect.CodeResourceExhausted, err)
	case errors.Is(err, joining.ErrOver):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	case errors.Is(err, authority.ErrRequest), errors.Is(err, authority.ErrName), errors.Is(err, joining.ErrPoint), errors.Is(err, joining.ErrLife), errors.Is(err, joining.ErrSealed):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, authority.ErrUnknown):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, authority.ErrPlain):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return reply.Error(ctx, c.Logger, call, err)
}

// enrolment is EnrolmentService.
type enrolment struct {
	cfg   Config
	guard func(connect.UnaryFunc) connect.UnaryFunc
}

func (s *enrolment) Enrol(ctx context.Context, req *connect.Request[linktrialv1.EnrolRequest]) (*connect.Response[linktrialv1.EnrolResponse], error) {
	node, cert, err := s.cfg.Authority.Enrol(ctx, req.Msg.TokenSecret, req.Msg.Csr, address(req))
	if err != nil {
		return nil, s.cfg.answer(ctx, "enrol", err)
	}
	return connect.NewResponse(&linktrialv1.EnrolResponse{Name: node, Certificate: cert.Raw, Authority: s.cfg.Authority.Certificate().Raw,
		SigningKeys: reply.SigningKeys(s.cfg.SigningKeys()), OrchestratorVersion: s.cfg.Version}), nil
}

// Renew applies the guard itself: the service has no interceptor, because Enrol is
// called by nodes that have no certificate yet.
// address is the caller's, without the port.
func address(req connect.AnyRequest) string {
	from := req.Peer().Addr
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return from
}

func (s *enrolment) Renew(ctx context.Context, req *connect.Request[linktrialv1.RenewRequest]) (*connect.Response[linktrialv1.RenewResponse], error) {
	if err := s.cfg.Authority.CheckMode(); err != nil {
		return nil, s.cfg.answer(ctx, "renew", err)
	}
	res, err := s.guard(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
		cert, err := s.cfg.Authority.Renew(ctx, req.Msg.Name, req.Msg.Csr)
		if err != nil {
			if b, over := quota.Of(err); over {
				s.cfg.OverBound(b)
			}
			return nil, s.cfg.answer(ctx, "renew", err)
		}
		return connect.NewResponse(&linktrialv1.RenewResponse{Certificate: cert.Raw, Authority: s.cfg.Authority.Certificate().Raw}), nil
	})(ctx, req)
	if err != nil {
		return nil, err
	}
	return res.(*connect.Response[linktrialv1.RenewResponse]), nil
}

// nodes is NodeService.
type nodes struct{ cfg Config }

// caller names the person who calls, for the record of identities.
func caller(ctx context.Context) string {
	p, ok := access.From(ctx)
	switch {
	case ok && p.User != "":
		return p.User
	case ok && p.Via != "":
		return p.Via
	}
	return "somebody"
}

func (s *nodes) CreateNodeToken(ctx context.Context, req *connect.Request[linktrialv1.CreateNodeTokenRequest]) (*connect.Response[linktrialv1.CreateNodeTokenResponse], error) {
	// A number of seconds that no Duration can hold is refused like any other that is too large.
	seconds := min(max(req.Msg.ValidSeconds, -1), int64(authority.MaxTokenLife/time.Second)+1)
	t, expires, err := s.cfg.Authority.CreateToken(ctx, req.Msg.Name, time.Duration(seconds)*time.Second, caller(ctx))
	if err != nil {
		return nil, s.cfg.answer(ctx, "create node token", err)
	}
	return connect.NewResponse(&linktrialv1.CreateNodeTokenResponse{Token: t.String(), Expires: timestamppb.New(expires)}), nil
}

func (s *nodes) RevokeNode(ctx context.Context, req *connect.Request[linktrialv1.RevokeNodeRequest]) (*connect.Response[linktrialv1.RevokeNodeResponse], error) {
	if strings.ContainsFunc(req.Msg.Reason, func(r rune) bool { return r < ' ' }) || len(req.Msg.Reason) > 500 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the reason is not one line of at most 500 bytes"))
	}
	var certs, tokens int
	var err error
	if req.Msg.TokensOnly {
		tokens, err = s.cfg.Authority.WithdrawTokens(ctx, req.Msg.Name, caller(ctx))
	} else {
		certs, tokens, err = s.cfg.Authority.Revoke(ctx, req.Msg.Name, caller(ctx), req.Msg.Reason)
	}
	if err != nil {
		return nil, s.cfg.answer(ctx, "revoke node", err)
	}
	return connect.NewResponse(&linktrialv1.RevokeNodeResponse{Certificates: int32(certs), Tokens: int32(tokens)}), nil
}

var modes = map[authority.Mode]linktrialv1.GetAuthorityResponse_Mode{
	authority.ModeLoopback: linktrialv1.GetAuthorityResponse_MODE_LOOPBACK,
	authority.ModeOpen:     linktrialv1.GetAuthorityResponse_MODE_OPEN,
	authority.ModeTLS:      linktrialv1.GetAuthorityResponse_MODE_TLS,
}

func (s *nodes) GetAuthority(context.Context, *connect.Request[linktrialv1.GetAuthorityRequest]) (*connect.Response[linktrialv1.GetAuthorityResponse], error) {
	a := s.cfg.Authority
	out := &linktrialv1.GetAuthorityResponse{Mode: modes[a.Mode()], Fingerprint: a.Fingerprint()}
	if c := a.Certificate(); c != nil {
		out.Certificate = c.Raw
	}
	return connect.NewResponse(out), nil
}

func (s *nodes) ListNodeIdentities(ctx context.Context, _ *connect.Request[linktrialv1.ListNodeIdentitiesRequest]) (*connect.Response[linktrialv1.ListNodeIdentitiesResponse], error) {
	all, err := s.cfg.Authority.Identities(ctx)
	if err != nil {
		return nil, s.cfg.answer(ctx, "list node identities", err)
	}
	out := &linktrialv1.ListNodeIdentitiesResponse{}
	for i := range all {
		out.Nodes = append(out.Nodes, NodeIdentity(&all[i]))
	}
	return connect.NewResponse(out), nil
}

var states = map[authority.State]linktrialv1.NodeIdentity_State{
	authority.StateNone:     linktrialv1.NodeIdentity_STATE_NONE,
	authority.StateInvited:  linktrialv1.NodeIdentity_STATE_INVITED,
	authority.StateEnrolled: linktrialv1.NodeIdentity_STATE_ENROLLED,
	authority.StateExpired:  linktrialv1.NodeIdentity_STATE_EXPIRED,
	authority.StateRevoked:  linktrialv1.NodeIdentity_STATE_REVOKED,
}

// NodeIdentity is a node's identity as calls answer with it.
func NodeIdentity(n *authority.NodeIdentity) *linktrialv1.NodeIdentity {
	out := &linktrialv1.NodeIdentity{Name: n.Name, State: states[n.State], Enrolled: stamp(n.Enrolled), Expires: stamp(n.Expires), Serial: n.Serial,
		Revoked: stamp(n.Revoked), RevokedBy: n.RevokedBy, Reason: n.Reason, OpenToken: len(n.OpenTokens) > 0}
	for _, t := range n.OpenTokens {
		out.OpenTokens = append(out.OpenTokens, &linktrialv1.OpenNodeToken{Created: timestamppb.New(t.Created), CreatedBy: t.CreatedBy, Expires: timestamppb.New(t.Expires)})
	}
	if n.Contact != nil {
		out.LastContact, out.Connected = timestamppb.New(n.Contact.Last), n.Contact.Connected
	}
	return out
}

// stamp leaves a time out that is not known.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
