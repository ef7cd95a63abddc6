package people

import (
	"context"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
)

// GetSecondFactor implements AccessService.
func (s *Service) GetSecondFactor(ctx context.Context, _ *connect.Request[linktrialv1.GetSecondFactorRequest]) (*connect.Response[linktrialv1.GetSecondFactorResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "GetSecondFactor", err)
	}
	f, err := s.access.SecondFactor(ctx, p)
	if err != nil {
		return nil, s.answer(ctx, "GetSecondFactor", err)
	}
	return connect.NewResponse(&linktrialv1.GetSecondFactorResponse{Set: f.Since != nil, Since: stamp(f.Since), RecoveryCodes: int32(f.RecoveryCodes), Required: f.Required}), nil
}

// BeginSecondFactor implements AccessService.
func (s *Service) BeginSecondFactor(ctx context.Context, req *connect.Request[linktrialv1.BeginSecondFactorRequest]) (*connect.Response[linktrialv1.BeginSecondFactorResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "BeginSecondFactor", err)
	}
	f, err := s.access.BeginSecondFactor(ctx, p, req.Msg.Password)
	if err != nil {
		return nil, s.answer(ctx, "BeginSecondFactor", err)
	}
	res := connect.NewResponse(&linktrialv1.BeginSecondFactorResponse{Secret: f.Secret, Url: f.URL, Image: f.Image})
	noStore(res.Header())
	return res, nil
}

// ConfirmSecondFactor implements AccessService.
func (s *Service) ConfirmSecondFactor(ctx context.Context, req *connect.Request[linktrialv1.ConfirmSecondFactorRequest]) (*connect.Response[linktrialv1.ConfirmSecondFactorResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "ConfirmSecondFactor", err)
	}
	codes, cookie, err := s.access.ConfirmSecondFactor(ctx, p, req.Msg.Code)
	if err != nil {
		return nil, s.answer(ctx, "ConfirmSecondFactor", err)
	}
	res := connect.NewResponse(&linktrialv1.ConfirmSecondFactorResponse{RecoveryCodes: codes})
	setCookie(res.Header(), cookie)
	noStore(res.Header())
	return res, nil
}

// RenewRecoveryCodes implements AccessService.
func (s *Service) RenewRecoveryCodes(ctx context.Context, req *connect.Request[linktrialv1.RenewRecoveryCodesRequest]) (*connect.Response[linktrialv1.RenewRecoveryCodesResponse], error) {
	p, err := access.Caller(ctx)
	if err != nil {
		return nil, s.answer(ctx, "RenewRecoveryCodes", err)
	}
	codes, err := s.access.RenewRecoveryCodes(ctx, p, req.Msg.Code)
	if err != nil {
		return nil, s.answer(ctx, "RenewRecoveryCodes", err)
	}
	res := connect.NewResponse(&linktrialv1.RenewRecoveryCodesResponse{RecoveryCodes: codes})
	noStore(res.Header())
	return res, nil
}

// RemoveSecondFactor implements AccessService.
func (s *Service) RemoveSecondFactor(ctx context.Context, req *connect.Request[linktrialv1.RemoveSecondFactorRequest]) (*connect.Response[linktrialv1.RemoveSecondFactorResponse], error) {
	p, err := access.Caller(ctx)
	if err == nil {
		err = s.access.RemoveSecondFactor(ctx, p, req.Msg.Code)
	}
	if err != nil {
		return nil, s.answer(ctx, "RemoveSecondFactor", err)
	}
	return connect.NewResponse(&linktrialv1.RemoveSecondFactorResponse{}), nil
}

// RemoveUserSecondFactor implements AccessService.
func (s *Service) RemoveUserSecondFactor(ctx context.Context, req *connect.Request[linktrialv1.RemoveUserSecondFactorRequest]) (*connect.Response[linktrialv1.RemoveUserSecondFactorResponse], error) {
	p, err := access.Caller(ctx)
	if err == nil {
		err = s.access.RemoveUserSecondFactor(ctx, p, req.Msg.Name)
	}
	if err != nil {
		return nil, s.answer(ctx, "RemoveUserSecondFactor", err)
	}
	return connect.NewResponse(&linktrialv1.RemoveUserSecondFactorResponse{}), nil
}
