package trust

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/signing"
)

func changeMessage(c *signing.Change) *linktrialv1.ChangeRequest {
	if c == nil {
		return nil
	}
	m := &linktrialv1.ChangeRequest{Id: c.ID, Hash: c.Hash, Action: c.Action, Protocol: c.Protocol, Digest: c.Digest, Reason: c.Reason, KeyId: c.KeyID,
		RequestedBy: c.RequestedBy, RequestedAt: timestamppb.New(c.RequestedAt), Expires: timestamppb.New(c.ExpiresAt), State: c.State}
	if c.DecidedBy != nil {
		m.DecidedBy, m.DecidedAt = *c.DecidedBy, timestamppb.New(*c.DecidedAt)
	}
	return m
}

// ListChangeRequests implements TrustService.
func (s *Service) ListChangeRequests(ctx context.Context, _ *connect.Request[linktrialv1.ListChangeRequestsRequest]) (*connect.Response[linktrialv1.ListChangeRequestsResponse], error) {
	all, err := s.trust.Changes(ctx)
	if err != nil {
		return nil, s.answer(ctx, "list change requests", err)
	}
	out := &linktrialv1.ListChangeRequestsResponse{ValidSeconds: int64(s.trust.SecondApproval() / time.Second)}
	for _, c := range all {
		out.Requests = append(out.Requests, changeMessage(&c))
	}
	return connect.NewResponse(out), nil
}

// ConfirmChange implements TrustService.
func (s *Service) ConfirmChange(ctx context.Context, req *connect.Request[linktrialv1.ConfirmChangeRequest]) (*connect.Response[linktrialv1.ConfirmChangeResponse], error) {
	c, err := s.trust.Confirm(ctx, req.Msg.Id, req.Msg.Hash, req.Msg.By)
	if err != nil {
		return nil, s.answer(ctx, "confirm a change", err)
	}
	return connect.NewResponse(&linktrialv1.ConfirmChangeResponse{Change: changeMessage(c)}), nil
}

// RefuseChange implements TrustService.
func (s *Service) RefuseChange(ctx context.Context, req *connect.Request[linktrialv1.RefuseChangeRequest]) (*connect.Response[linktrialv1.RefuseChangeResponse], error) {
	c, err := s.trust.Refuse(ctx, req.Msg.Id, req.Msg.By)
	if err != nil {
		return nil, s.answer(ctx, "refuse a change", err)
	}
	return connect.NewResponse(&linktrialv1.RefuseChangeResponse{Change: changeMessage(c)}), nil
}
