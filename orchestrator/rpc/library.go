package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/library"
)

// plans is LibraryService.
type plans struct{ cfg Config }

// fault puts the library's refusals into codes that callers branch on.
func (s *plans) fault(ctx context.Context, call string, err error) error {
	for _, c := range []struct {
		is   error
		code connect.Code
	}{
		{library.ErrNotFound, connect.CodeNotFound}, {library.ErrShipped, connect.CodePermissionDenied}, {library.ErrExists, connect.CodeAlreadyExists},
		{library.ErrRevision, connect.CodeAborted}, {library.ErrRefused, connect.CodeInvalidArgument},
		{library.ErrInUse, connect.CodeFailedPrecondition}, {library.ErrEnded, connect.CodeFailedPrecondition},
		{library.ErrState, connect.CodeFailedPrecondition},
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
	return &linktrialv1.ScheduledPlan{Id: x.ID, Plan: x.Plan, At: timestamppb.New(x.At), Name: x.Name, By: x.By, State: string(x.State), Message: x.Message, CampaignId: x.Campaign,
		Patience: durationpb.New(x.Patience), RecurrenceId: x.Recurrence, Number: int32(x.Number)}
}

// validPatience checks a duration that may be left out.
func validPatience(d *durationpb.Duration) error {
	if d == nil {
		return nil
	}
	if err := d.CheckValid(); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("how late the plan may start: %w", err))
	}
	return nil
}

func (s *plans) Schedule(ctx context.Context, req *connect.Request[linktrialv1.ScheduleRequest]) (*connect.Response[linktrialv1.ScheduleResponse], error) {
	m := req.Msg
	if err := m.At.CheckValid(); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("time to start at: %w", err))
	}
	if err := validPatience(m.Patience); err != nil {
		return nil, err
	}
	x, err := s.cfg.Library.Schedule(ctx, library.Order{Plan: m.Plan, At: m.At.AsTime(), Patience: m.Patience.AsDuration(), Name: m.Name, By: m.By})
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
	rules, err := s.cfg.Library.Recurrences(ctx)
	if err != nil {
		return nil, s.fault(ctx, "list schedules", err)
	}
	for _, x := range rules {
		out.Recurrences = append(out.Recurrences, asRecurrence(x))
	}
	return connect.NewResponse(out), nil
}

func (s *plans) CancelSchedule(ctx context.Context, req *connect.Request[linktrialv1.CancelScheduleRequest]) (*connect.Response[linktrialv1.CancelScheduleResponse], error) {
	if err := s.cfg.Library.Cancel(ctx, req.Msg.Id); err != nil {
		return nil, s.fault(ctx, "cancel schedule", err)
	}
	return connect.NewResponse(&linktrialv1.CancelScheduleResponse{}), nil
}

func asRecurrence(x library.Recurrence) *linktrialv1.Recurrence {
	out := &linktrialv1.Recurrence{Id: x.ID, Plan: x.Plan, Rule: x.Rule, Name: x.Name, By: x.By, State: string(x.State), Next: timestamps(x.Next), Message: x.Message}
	for _, l := range x.Last {
		out.Last = append(out.Last, asScheduled(l))
	}
	return out
}

func timestamps(times []time.Time) []*timestamppb.Timestamp {
	out := make([]*timestamppb.Timestamp, len(times))
	for i, t := range times {
		out[i] = timestamppb.New(t)
	}
	return out
}

// PreviewRecurrence is asked while a person types, so that a fault of the rule is an
// answer and no error.
func (s *plans) PreviewRecurrence(_ context.Context, req *connect.Request[linktrialv1.PreviewRecurrenceRequest]) (*connect.Response[linktrialv1.PreviewRecurrenceResponse], error) {
	rule, next, err := s.cfg.Library.Preview(req.Msg.Rule)
	if err != nil {
		return connect.NewResponse(&linktrialv1.PreviewRecurrenceResponse{Problem: err.Error()}), nil
	}
	out := &linktrialv1.PreviewRecurrenceResponse{Rule: rule.String(), Next: timestamps(next), Zone: rule.Zone().String()}
	for _, t := range next {
		out.Local = append(out.Local, t.In(rule.Zone()).Format("Mon 2006-01-02 15:04"))
	}
	return connect.NewResponse(out), nil
}

func (s *plans) ScheduleRecurrence(ctx context.Context, req *connect.Request[linktrialv1.ScheduleRecurrenceRequest]) (*connect.Response[linktrialv1.ScheduleRecurrenceResponse], error) {
	m := req.Msg
	if err := validPatience(m.Patience); err != nil {
		return nil, err
	}
	x, err := s.cfg.Library.Recur(ctx, m.Rule, library.Order{Plan: m.Plan, Patience: m.Patience.AsDuration(), Name: m.Name, By: m.By})
	if err != nil {
		return nil, s.fault(ctx, "schedule repeatedly", err)
	}
	return connect.NewResponse(&linktrialv1.ScheduleRecurrenceResponse{Recurrence: asRecurrence(x)}), nil
}

func (s *plans) ChangeRecurrence(ctx context.Context, req *connect.Request[linktrialv1.ChangeRecurrenceRequest]) (*connect.Response[linktrialv1.ChangeRecurrenceResponse], error) {
	change, ok := map[linktrialv1.ChangeRecurrenceRequest_Change]func(context.Context, string) error{
		linktrialv1.ChangeRecurrenceRequest_CHANGE_PAUSE:  s.cfg.Library.Pause,
		linktrialv1.ChangeRecurrenceRequest_CHANGE_RESUME: s.cfg.Library.Resume,
		linktrialv1.ChangeRecurrenceRequest_CHANGE_REMOVE: s.cfg.Library.Remove,
	}[req.Msg.Change]
	if !ok {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("change %s of a repeated schedule, expected pause, resume or remove", req.Msg.Change))
	}
	if err := change(ctx, req.Msg.Id); err != nil {
		return nil, s.fault(ctx, "change repeated schedule", err)
	}
	return connect.NewResponse(&linktrialv1.ChangeRecurrenceResponse{}), nil
}
