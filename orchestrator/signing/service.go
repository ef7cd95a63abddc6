package signing

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/signature"
	"linktrial/orchestrator/rpc/reply"
)

// Service is TrustService.
type Service struct{ t *Trust }

// Service answers TrustService. Where people log in, who calls stands in a
// request's own field by the time it comes here.
func (t *Trust) Service() *Service { return &Service{t} }

func (s *Service) answer(ctx context.Context, call string, err error) error {
	if errors.Is(err, ErrRefused) {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return reply.Error(ctx, s.t.cfg.Logger, call, err)
}

// Messages are keys as agents and people get them.
func Messages(keys []signature.Endorsed) []*linktrialv1.SigningKey {
	out := make([]*linktrialv1.SigningKey, len(keys))
	for i, k := range keys {
		out[i] = &linktrialv1.SigningKey{PublicKey: k.Key[:], EndorsedBy: k.By, Endorsement: k.Endorsement}
	}
	return out
}

// ListSigningKeys implements TrustService.
func (s *Service) ListSigningKeys(context.Context, *connect.Request[linktrialv1.ListSigningKeysRequest]) (*connect.Response[linktrialv1.ListSigningKeysResponse], error) {
	return connect.NewResponse(&linktrialv1.ListSigningKeysResponse{Keys: Messages(s.t.Keys())}), nil
}

// RotateSigningKey implements TrustService.
func (s *Service) RotateSigningKey(ctx context.Context, _ *connect.Request[linktrialv1.RotateSigningKeyRequest]) (*connect.Response[linktrialv1.RotateSigningKeyResponse], error) {
	if err := s.t.cfg.Keys.Rotate(); err != nil {
		return nil, s.answer(ctx, "rotate signing key", err)
	}
	keys := s.t.Keys()
	s.t.cfg.Logger.Info("a new key signs run sheets", "key", keys[len(keys)-1].Key.ID())
	return connect.NewResponse(&linktrialv1.RotateSigningKeyResponse{Keys: Messages(keys)}), nil
}

// GetSignedSheet implements TrustService.
func (s *Service) GetSignedSheet(ctx context.Context, req *connect.Request[linktrialv1.GetSignedSheetRequest]) (*connect.Response[linktrialv1.GetSignedSheetResponse], error) {
	sheet, err := s.t.cfg.Store.RunSheet(ctx, req.Msg.RunId)
	if err != nil {
		return nil, s.answer(ctx, "signed sheet", err)
	}
	out := &linktrialv1.GetSignedSheetResponse{Sheet: sheet, Keys: Messages(s.t.Keys())}
	switch sig, err := s.t.cfg.Store.RunSignature(ctx, req.Msg.RunId); {
	case err == nil:
		out.Signature = &linktrialv1.SheetSignature{KeyId: sig.KeyID, Signature: sig.Signature}
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, s.answer(ctx, "signed sheet", err)
	}
	return connect.NewResponse(out), nil
}

// ListApprovals implements TrustService.
func (s *Service) ListApprovals(ctx context.Context, _ *connect.Request[linktrialv1.ListApprovalsRequest]) (*connect.Response[linktrialv1.ListApprovalsResponse], error) {
	approved, err := s.t.cfg.Store.Approvals(ctx)
	if err != nil {
		return nil, s.answer(ctx, "list approvals", err)
	}
	out := &linktrialv1.ListApprovalsResponse{}
	accepted := map[[2]string]bool{}
	for _, p := range s.t.cfg.Catalog.Protocols() {
		own, err := s.t.own(p)
		if err != nil {
			// One driver without a digest must not hide the others.
			s.t.cfg.Logger.Warn("a driver has no digest", "protocol", p, "error", err)
			continue
		}
		accepted[[2]string{p, string(own)}] = true
		out.Accepted = append(out.Accepted, &linktrialv1.AcceptedDriver{Protocol: p, Digest: string(own), Own: true})
	}
	for _, a := range approved {
		accepted[[2]string{a.Protocol, a.Digest}] = true
		out.Accepted = append(out.Accepted, &linktrialv1.AcceptedDriver{Protocol: a.Protocol, Digest: a.Digest, Reason: a.Reason, By: a.GivenBy, ApprovedAt: timestamppb.New(a.GivenAt)})
	}
	for _, n := range s.t.cfg.Nodes() {
		for _, d := range n.Drivers {
			if d.Digest != "" {
				out.OnNodes = append(out.OnNodes, &linktrialv1.DriverOnNode{Node: n.Name, Protocol: d.Name, Version: d.Version, Digest: d.Digest, Accepted: accepted[[2]string{d.Name, d.Digest}]})
			}
		}
	}
	return connect.NewResponse(out), nil
}

// ApproveDriver implements TrustService.
func (s *Service) ApproveDriver(ctx context.Context, req *connect.Request[linktrialv1.ApproveDriverRequest]) (*connect.Response[linktrialv1.ApproveDriverResponse], error) {
	m := req.Msg
	if err := s.t.Approve(ctx, m.Protocol, m.Digest, m.Reason, m.By); err != nil {
		return nil, s.answer(ctx, "approve driver", err)
	}
	return connect.NewResponse(&linktrialv1.ApproveDriverResponse{}), nil
}

// UnapproveDriver implements TrustService.
func (s *Service) UnapproveDriver(ctx context.Context, req *connect.Request[linktrialv1.UnapproveDriverRequest]) (*connect.Response[linktrialv1.UnapproveDriverResponse], error) {
	m := req.Msg
	if err := s.t.Unapprove(ctx, m.Protocol, m.Digest, m.By); err != nil {
		return nil, s.answer(ctx, "unapprove driver", err)
	}
	return connect.NewResponse(&linktrialv1.UnapproveDriverResponse{}), nil
}
