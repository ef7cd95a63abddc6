package enrol

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/joining"
)

type joins struct{ cfg Config }

func (s *joins) OpenJoining(ctx context.Context, req *connect.Request[linktrialv1.OpenJoiningRequest]) (*connect.Response[linktrialv1.OpenJoiningResponse], error) {
	// As with tokens: what no Duration can hold is too long.
	seconds := min(max(req.Msg.ValidSeconds, -1), int64(24*time.Hour/time.Second))
	c, expires, err := s.cfg.Joining.Open(time.Duration(seconds)*time.Second, caller(ctx))
	if err != nil {
		return nil, s.cfg.answer(ctx, "open joining", err)
	}
	return connect.NewResponse(&linktrialv1.OpenJoiningResponse{Code: c.String(), Spoken: c.Spoken(), Expires: timestamppb.New(expires), Tries: joining.MaxWrong}), nil
}

var joiningStates = map[joining.State]linktrialv1.GetJoiningResponse_State{
	joining.None:    linktrialv1.GetJoiningResponse_STATE_NONE,
	joining.Open:    linktrialv1.GetJoiningResponse_STATE_OPEN,
	joining.Expired: linktrialv1.GetJoiningResponse_STATE_EXPIRED,
	joining.Tried:   linktrialv1.GetJoiningResponse_STATE_TRIED,
	joining.Closed:  linktrialv1.GetJoiningResponse_STATE_CLOSED,
}

func (s *joins) GetJoining(context.Context, *connect.Request[linktrialv1.GetJoiningRequest]) (*connect.Response[linktrialv1.GetJoiningResponse], error) {
	now := s.cfg.Joining.Status()
	out := &linktrialv1.GetJoiningResponse{State: joiningStates[now.State], Expires: stamp(now.Expires), TriesLeft: int32(now.TriesLeft)}
	for _, l := range now.Joined {
		out.Joined = append(out.Joined, &linktrialv1.JoinedLaptop{Name: l.Name, At: timestamppb.New(l.At)})
	}
	return connect.NewResponse(out), nil
}

func (s *joins) CloseJoining(ctx context.Context, _ *connect.Request[linktrialv1.CloseJoiningRequest]) (*connect.Response[linktrialv1.CloseJoiningResponse], error) {
	return connect.NewResponse(&linktrialv1.CloseJoiningResponse{Closed: s.cfg.Joining.Close(caller(ctx))}), nil
}

func (s *joins) BeginJoin(ctx context.Context, req *connect.Request[linktrialv1.BeginJoinRequest]) (*connect.Response[linktrialv1.BeginJoinResponse], error) {
	id, point, err := s.cfg.Joining.Begin(address(req), req.Msg.Point)
	if err != nil {
		return nil, s.cfg.answer(ctx, "begin join", err)
	}
	return connect.NewResponse(&linktrialv1.BeginJoinResponse{Exchange: id, Point: point}), nil
}

func (s *joins) FinishJoin(ctx context.Context, req *connect.Request[linktrialv1.FinishJoinRequest]) (*connect.Response[linktrialv1.FinishJoinResponse], error) {
	confirmation, sealed, err := s.cfg.Joining.Finish(req.Msg.Exchange, req.Msg.Confirmation, req.Msg.Sealed, func(a *joining.Admission, question []byte) ([]byte, error) {
		return s.admit(ctx, a, question)
	})
	if err != nil {
		return nil, s.cfg.answer(ctx, "finish join", err)
	}
	return connect.NewResponse(&linktrialv1.FinishJoinResponse{Confirmation: confirmation, Sealed: sealed}), nil
}

// admit answers a laptop that has the code.
func (s *joins) admit(ctx context.Context, a *joining.Admission, question []byte) ([]byte, error) {
	var q linktrialv1.JoinQuestion
	if err := proto.Unmarshal(question, &q); err != nil {
		return nil, fmt.Errorf("%w: it is no question of a laptop that joins", joining.ErrSealed)
	}
	token, refusal, err := a.Admit(ctx, joining.Question{Name: q.Name, Replace: q.Replace, Version: q.Version, Protocol: q.Protocol})
	if err != nil {
		return nil, err
	}
	access.Note(ctx, fmt.Sprintf("name=%q replace=%v", q.Name, q.Replace), refusal)
	return proto.Marshal(&linktrialv1.JoinAnswer{Refusal: refusal, Token: token, Time: timestamppb.New(s.cfg.Joining.Now()), Version: s.cfg.Version})
}
