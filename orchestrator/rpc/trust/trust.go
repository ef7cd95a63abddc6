// Package trust answers TrustService: which keys sign run sheets, the signature
// of a run's sheet, and which drivers new sheets accept. Comes in: the messages of
// api/proto. Goes out: what orchestrator/security/signing knows and decides.
package trust

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/security/signing"
)

// Service is TrustService. Where people log in, the interceptor of
// orchestrator/security/access has set the caller's name in the field "by" of a request.
type Service struct {
	trust *signing.Trust
	log   *slog.Logger
}

// New returns the service. log gets errors that are not the caller's.
func New(t *signing.Trust, log *slog.Logger) *Service { return &Service{t, log} }

func (s *Service) answer(ctx context.Context, call string, err error) error {
	if errors.Is(err, signing.ErrRefused) {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return reply.Error(ctx, s.log, call, err)
}

// ListSigningKeys implements TrustService.
func (s *Service) ListSigningKeys(context.Context, *connect.Request[linktrialv1.ListSigningKeysRequest]) (*connect.Response[linktrialv1.ListSigningKeysResponse], error) {
	return connect.NewResponse(&linktrialv1.ListSigningKeysResponse{Keys: reply.SigningKeys(s.trust.Keys())}), nil
}

// RotateSigningKey implements TrustService.
func (s *Service) RotateSigningKey(ctx context.Context, _ *connect.Request[linktrialv1.RotateSigningKeyRequest]) (*connect.Response[linktrialv1.RotateSigningKeyResponse], error) {
	keys, err := s.trust.Rotate()
	if err != nil {
		return nil, s.answer(ctx, "rotate signing key", err)
	}
	return connect.NewResponse(&linktrialv1.RotateSigningKeyResponse{Keys: reply.SigningKeys(keys)}), nil
}

// GetSignedSheet implements TrustService.
func (s *Service) GetSignedSheet(ctx context.Context, req *connect.Request[linktrialv1.GetSignedSheetRequest]) (*connect.Response[linktrialv1.GetSignedSheetResponse], error) {
	sheet, sig, err := s.trust.SignedSheet(ctx, req.Msg.RunId)
	if err != nil {
		return nil, s.answer(ctx, "signed sheet", reply.NotFound(fmt.Sprintf("run %q", req.Msg.RunId), err))
	}
	out := &linktrialv1.GetSignedSheetResponse{Sheet: sheet, Keys: reply.SigningKeys(s.trust.Keys())}
	if !sig.IsZero() {
		out.Signature = &linktrialv1.SheetSignature{KeyId: sig.KeyID, Signature: sig.Bytes}
	}
	return connect.NewResponse(out), nil
}

// ListApprovals implements TrustService.
func (s *Service) ListApprovals(ctx context.Context, _ *connect.Request[linktrialv1.ListApprovalsRequest]) (*connect.Response[linktrialv1.ListApprovalsResponse], error) {
	accepted, onNodes, err := s.trust.Drivers(ctx)
	if err != nil {
		return nil, s.answer(ctx, "list approvals", err)
	}
	out := &linktrialv1.ListApprovalsResponse{}
	for _, d := range accepted {
		x := &linktrialv1.AcceptedDriver{Protocol: d.Protocol, Digest: d.Digest, Own: d.Own, Reason: d.Reason, By: d.By}
		if !d.Own {
			x.ApprovedAt = timestamppb.New(d.ApprovedAt)
		}
		out.Accepted = append(out.Accepted, x)
	}
	for _, d := range onNodes {
		out.OnNodes = append(out.OnNodes, &linktrialv1.DriverOnNode{Node: d.Node, Protocol: d.Protocol, Version: d.Version, Digest: d.Digest, Accepted: d.Accepted})
	}
	return connect.NewResponse(out), nil
}

// ApproveDriver implements TrustService.
func (s *Service) ApproveDriver(ctx context.Context, req *connect.Request[linktrialv1.ApproveDriverRequest]) (*connect.Response[linktrialv1.ApproveDriverResponse], error) {
	m := req.Msg
	if err := s.trust.Approve(ctx, m.Protocol, m.Digest, m.Reason, m.By); err != nil {
		return nil, s.answer(ctx, "approve driver", err)
	}
	return connect.NewResponse(&linktrialv1.ApproveDriverResponse{}), nil
}

// UnapproveDriver implements TrustService.
func (s *Service) UnapproveDriver(ctx context.Context, req *connect.Request[linktrialv1.UnapproveDriverRequest]) (*connect.Response[linktrialv1.UnapproveDriverResponse], error) {
	m := req.Msg
	if err := s.trust.Unapprove(ctx, m.Protocol, m.Digest, m.By); err != nil {
		return nil, s.answer(ctx, "unapprove driver", err)
	}
	return connect.NewResponse(&linktrialv1.UnapproveDriverResponse{}), nil
}
