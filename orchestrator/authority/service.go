package authority

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/rpc/reply"
)

// maxRequest is more than any certificate request.
const maxRequest = 64 << 10

// Mount adds the services to a mux; opts are of the people's service.
func (a *Authority) Mount(mux *http.ServeMux, opts ...connect.HandlerOption) {
	read := connect.WithReadMaxBytes(maxRequest)
	mux.Handle(linktrialv1connect.NewEnrolmentServiceHandler(&enrolment{a: a, guard: a.Guard().WrapUnary}, read))
	mux.Handle(linktrialv1connect.NewNodeServiceHandler(&nodes{a: a}, append([]connect.HandlerOption{read}, opts...)...))
}

// enrolment is EnrolmentService.
type enrolment struct {
	a     *Authority
	guard func(connect.UnaryFunc) connect.UnaryFunc
}

func (s *enrolment) Enrol(ctx context.Context, req *connect.Request[linktrialv1.EnrolRequest]) (*connect.Response[linktrialv1.EnrolResponse], error) {
	from := req.Peer().Addr
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	// The keys first: a token that is used up and an answer that is lost for
	// want of them would be half an enrolment.
	var keys []*linktrialv1.SigningKey
	if s.a.cfg.SigningKeys != nil {
		var err error
		if keys, err = s.a.cfg.SigningKeys(ctx); err != nil {
			return nil, s.a.answer(ctx, "enrol", err)
		}
	}
	node, cert, err := s.a.Enrol(ctx, req.Msg.TokenSecret, req.Msg.Csr, from)
	if err != nil {
		return nil, s.a.answer(ctx, "enrol", err)
	}
	return connect.NewResponse(&linktrialv1.EnrolResponse{Name: node, Certificate: cert.Raw, Authority: s.a.keys.cert.Raw, SigningKeys: keys, OrchestratorVersion: s.a.cfg.Version}), nil
}

// Renew is guarded by hand: Enrol, of the same service, must not be.
func (s *enrolment) Renew(ctx context.Context, req *connect.Request[linktrialv1.RenewRequest]) (*connect.Response[linktrialv1.RenewResponse], error) {
	if err := s.a.plain(); err != nil {
		return nil, s.a.answer(ctx, "renew", err)
	}
	res, err := s.guard(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
		cert, err := s.a.Renew(ctx, req.Msg.Name, req.Msg.Csr)
		if err != nil {
			return nil, s.a.answer(ctx, "renew", err)
		}
		return connect.NewResponse(&linktrialv1.RenewResponse{Certificate: cert.Raw, Authority: s.a.keys.cert.Raw}), nil
	})(ctx, req)
	if err != nil {
		return nil, err
	}
	return res.(*connect.Response[linktrialv1.RenewResponse]), nil
}

// nodes is NodeService.
type nodes struct{ a *Authority }

func (s *nodes) who(ctx context.Context) string {
	if s.a.cfg.Who != nil {
		if w := s.a.cfg.Who(ctx); w != "" {
			return w
		}
	}
	return "somebody"
}

func (s *nodes) CreateNodeToken(ctx context.Context, req *connect.Request[linktrialv1.CreateNodeTokenRequest]) (*connect.Response[linktrialv1.CreateNodeTokenResponse], error) {
	valid := time.Duration(min(max(req.Msg.ValidSeconds, -1), int64(maxTokenLife/time.Second)+1)) * time.Second
	t, expires, err := s.a.CreateToken(ctx, req.Msg.Name, valid, s.who(ctx))
	if err != nil {
		return nil, s.a.answer(ctx, "create node token", err)
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
		tokens, err = s.a.WithdrawTokens(ctx, req.Msg.Name, s.who(ctx))
	} else {
		certs, tokens, err = s.a.Revoke(ctx, req.Msg.Name, s.who(ctx), req.Msg.Reason)
	}
	if err != nil {
		return nil, s.a.answer(ctx, "revoke node", err)
	}
	return connect.NewResponse(&linktrialv1.RevokeNodeResponse{Certificates: int32(certs), Tokens: int32(tokens)}), nil
}

func (s *nodes) GetAuthority(context.Context, *connect.Request[linktrialv1.GetAuthorityRequest]) (*connect.Response[linktrialv1.GetAuthorityResponse], error) {
	out := &linktrialv1.GetAuthorityResponse{Mode: map[Mode]linktrialv1.GetAuthorityResponse_Mode{
		ModeLoopback: linktrialv1.GetAuthorityResponse_MODE_LOOPBACK,
		ModeOpen:     linktrialv1.GetAuthorityResponse_MODE_OPEN,
		ModeTLS:      linktrialv1.GetAuthorityResponse_MODE_TLS,
	}[s.a.cfg.Mode], Fingerprint: s.a.Fingerprint()}
	if c := s.a.keys.cert; c != nil {
		out.Certificate = c.Raw
	}
	return connect.NewResponse(out), nil
}

func (s *nodes) ListNodeIdentities(ctx context.Context, _ *connect.Request[linktrialv1.ListNodeIdentitiesRequest]) (*connect.Response[linktrialv1.ListNodeIdentitiesResponse], error) {
	list, err := s.a.Identities(ctx)
	if err != nil {
		return nil, s.a.answer(ctx, "list node identities", err)
	}
	return connect.NewResponse(&linktrialv1.ListNodeIdentitiesResponse{Nodes: list}), nil
}

// Identities is what is known of every node, by name.
func (a *Authority) Identities(ctx context.Context) ([]*linktrialv1.NodeIdentity, error) {
	now := a.now()
	byName := map[string]*linktrialv1.NodeIdentity{}
	get := func(name string) *linktrialv1.NodeIdentity {
		if byName[name] == nil {
			byName[name] = &linktrialv1.NodeIdentity{Name: name, State: linktrialv1.NodeIdentity_STATE_NONE}
		}
		return byName[name]
	}
	certs, err := a.cfg.Store.NewestNodeCertificates(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range certs {
		n := get(c.Node)
		n.Enrolled, n.Expires, n.Serial = timestamppb.New(c.IssuedAt), timestamppb.New(c.ExpiresAt), c.Serial
		switch {
		case c.RevokedAt != nil:
			n.State, n.Revoked, n.RevokedBy, n.Reason = linktrialv1.NodeIdentity_STATE_REVOKED, timestamppb.New(*c.RevokedAt), c.RevokedBy, c.Reason
		case now.After(c.ExpiresAt):
			n.State = linktrialv1.NodeIdentity_STATE_EXPIRED
		default:
			n.State = linktrialv1.NodeIdentity_STATE_ENROLLED
		}
	}
	tokens, err := a.cfg.Store.OpenNodeTokens(ctx, now)
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		n := get(t.Node)
		n.OpenToken = true
		n.OpenTokens = append(n.OpenTokens, &linktrialv1.OpenNodeToken{Created: timestamppb.New(t.CreatedAt), CreatedBy: t.CreatedBy, Expires: timestamppb.New(t.ExpiresAt)})
		if n.State == linktrialv1.NodeIdentity_STATE_NONE {
			n.State, n.Expires = linktrialv1.NodeIdentity_STATE_INVITED, timestamppb.New(t.ExpiresAt)
		}
	}
	if a.cfg.Contacts != nil {
		for name, c := range a.cfg.Contacts() {
			n := get(name)
			n.LastContact, n.Connected = timestamppb.New(c.Last), c.Connected
		}
	}
	out := make([]*linktrialv1.NodeIdentity, 0, len(byName))
	for _, n := range byName {
		out = append(out, n)
	}
	slices.SortFunc(out, func(x, y *linktrialv1.NodeIdentity) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

func (a *Authority) answer(ctx context.Context, call string, err error) error {
	switch {
	case errors.Is(err, ErrToken):
		return connect.NewError(connect.CodeUnauthenticated, err)
	case errors.Is(err, ErrRequest), errors.Is(err, ErrName):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, ErrUnknown):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, ErrPlain):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return reply.Error(ctx, a.log, call, err)
}
