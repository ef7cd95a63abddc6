package rpc

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/library"
)

// plans is LibraryService.
type plans struct{ cfg Config }

// StartPlan is how a library starts plans by itself: as a person would, on the
// nodes that are connected then.
func StartPlan(cfg Config) func(ctx context.Context, file string, text []byte, name string) (string, []string, error) {
	o := &operators{cfg: cfg}
	return func(ctx context.Context, file string, text []byte, name string) (string, []string, error) {
		res, err := o.StartPlan(ctx, connect.NewRequest(&linktrialv1.StartPlanRequest{File: file, Text: text, Name: name}))
		if coded := (*connect.Error)(nil); errors.As(err, &coded) {
			return "", nil, errors.New(coded.Message()) // without the code's name: people read it
		} else if err != nil {
			return "", nil, err
		}
		var problems []string
		for _, p := range res.Msg.Problems {
			if p.Line > 0 {
				problems = append(problems, fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message))
			} else {
				problems = append(problems, p.Message)
			}
		}
		return res.Msg.CampaignId, problems, nil
	}
}

// fault puts the library's refusals into codes that callers branch on.
func (s *plans) fault(ctx context.Context, call string, err error) error {
	for _, c := range []struct {
		is   error
		code connect.Code
	}{
		{library.ErrNotFound, connect.CodeNotFound}, {library.ErrShipped, connect.CodePermissionDenied}, {library.ErrExists, connect.CodeAlreadyExists},
		{library.ErrRevision, connect.CodeAborted}, {library.ErrRefused, connect.CodeInvalidArgument},
		{library.ErrInUse, connect.CodeFailedPrecondition}, {library.ErrEnded, connect.CodeFailedPrecondition},
	} {
		if errors.Is(err, c.is) {
			return connect.NewError(c.code, err)
		}
	}
	return s.cfg.answer(ctx, call, err)
}

func asPlan(p library.Plan) *linktrialv1.SavedPlan {
	out := &linktrialv1.SavedPlan{Name: p.Name, Shipped: p.Shipped, Title: p.Title, Summary: p.Summary, Problems: int32(p.Problems), Revision: int32(p.Revision)}
	if !p.Changed.IsZero() {
		out.Changed = timestamppb.New(p.Changed)
	}
	return out
}

func (s *plans) ListPlans(ctx context.Context, _ *connect.Request[linktrialv1.ListPlansRequest]) (*connect.Response[linktrialv1.ListPlansResponse], error) {
	all, err := s.cfg.Library.List(ctx)
	if err != nil {
		return nil, s.fault(ctx, "list plans", err)
	}
	out := &linktrialv1.ListPlansResponse{}
	for _, p := range all {
		out.Plans = append(out.Plans, asPlan(p))
	}
	return connect.NewResponse(out), nil
}

func (s *plans) GetPlan(ctx context.Context, req *connect.Request[linktrialv1.GetPlanRequest]) (*connect.Response[linktrialv1.GetPlanResponse], error) {
	p, err := s.cfg.Library.Get(ctx, req.Msg.Name)
	if err != nil {
		return nil, s.fault(ctx, "get plan", err)
	}
	return connect.NewResponse(&linktrialv1.GetPlanResponse{Plan: asPlan(p), Text: p.Text}), nil
}

func (s *plans) SavePlan(ctx context.Context, req *connect.Request[linktrialv1.SavePlanRequest]) (*connect.Response[linktrialv1.SavePlanResponse], error) {
	p, err := s.cfg.Library.Save(ctx, req.Msg.Name, req.Msg.Text, int(req.Msg.Revision))
	if err != nil {
		return nil, s.fault(ctx, "save plan", err)
	}
	return connect.NewResponse(&linktrialv1.SavePlanResponse{Plan: asPlan(p)}), nil
}

func (s *plans) DeletePlan(ctx context.Context, req *connect.Request[linktrialv1.DeletePlanRequest]) (*connect.Response[linktrialv1.DeletePlanResponse], error) {
	if err := s.cfg.Library.Delete(ctx, req.Msg.Name); err != nil {
		return nil, s.fault(ctx, "delete plan", err)
	}
	return connect.NewResponse(&linktrialv1.DeletePlanResponse{}), nil
}

func asScheduled(x library.Scheduled) *linktrialv1.ScheduledPlan {
	return &linktrialv1.ScheduledPlan{Id: x.ID, Plan: x.Plan, At: timestamppb.New(x.At), Name: x.Name, By: x.By, State: string(x.State), Message: x.Message, CampaignId: x.Campaign}
}

func (s *plans) Schedule(ctx context.Context, req *connect.Request[linktrialv1.ScheduleRequest]) (*connect.Response[linktrialv1.ScheduleResponse], error) {
	m := req.Msg
	if err := m.At.CheckValid(); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("time to start at: %w", err))
	}
	x, err := s.cfg.Library.Schedule(ctx, m.Plan, m.At.AsTime(), m.Name, m.By)
	if err != nil {
		return nil, s.fault(ctx, "schedule", err)
	}
	return connect.NewResponse(&linktrialv1.ScheduleResponse{Schedule: asScheduled(x)}), nil
}

func (s *plans) ListSchedules(ctx context.Context, _ *connect.Request[linktrialv1.ListSchedulesRequest]) (*connect.Response[linktrialv1.ListSchedulesResponse], error) {
	all, err := s.cfg.Library.Schedules(ctx)
	if err != nil {
		return nil, s.fault(ctx, "list schedules", err)
	}
	out := &linktrialv1.ListSchedulesResponse{}
	for _, x := range all {
		out.Schedules = append(out.Schedules, asScheduled(x))
	}
	return connect.NewResponse(out), nil
}

func (s *plans) CancelSchedule(ctx context.Context, req *connect.Request[linktrialv1.CancelScheduleRequest]) (*connect.Response[linktrialv1.CancelScheduleResponse], error) {
	if err := s.cfg.Library.Cancel(ctx, req.Msg.Id); err != nil {
		return nil, s.fault(ctx, "cancel schedule", err)
	}
	return connect.NewResponse(&linktrialv1.CancelScheduleResponse{}), nil
}
