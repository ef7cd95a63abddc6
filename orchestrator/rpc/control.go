package rpc

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/runcommand"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store"
)

// control is ControlService.
type control struct{ cfg Config }

// give finds the run, by a unique prefix too, and gives it the command.
func (s *control) give(ctx context.Context, run string, o campaign.Command) error {
	id, err := s.find(ctx, run)
	if err == nil {
		err = s.cfg.Engine.Submit(ctx, id, o)
	}
	return s.cfg.answer(ctx, o.Kind, err)
}

var errNoRun = errors.New("no run is given: expected its identity, or a unique prefix")

func (s *control) find(ctx context.Context, run string) (string, error) {
	if run == "" {
		return "", connect.NewError(connect.CodeInvalidArgument, errNoRun)
	}
	id, _, err := s.cfg.Store.FindRun(ctx, run)
	return id, err
}

func (s *control) PauseRun(ctx context.Context, req *connect.Request[linktrialv1.PauseRunRequest]) (*connect.Response[linktrialv1.PauseRunResponse], error) {
	if err := s.give(ctx, req.Msg.RunId, campaign.Command{Kind: runcommand.Pause, By: req.Msg.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.PauseRunResponse{}), nil
}

func (s *control) ResumeRun(ctx context.Context, req *connect.Request[linktrialv1.ResumeRunRequest]) (*connect.Response[linktrialv1.ResumeRunResponse], error) {
	if err := s.give(ctx, req.Msg.RunId, campaign.Command{Kind: runcommand.Resume, By: req.Msg.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.ResumeRunResponse{}), nil
}

func (s *control) AbortRun(ctx context.Context, req *connect.Request[linktrialv1.AbortRunRequest]) (*connect.Response[linktrialv1.AbortRunResponse], error) {
	reason := req.Msg.Reason
	if reason == "" {
		reason = "aborted"
	}
	if err := s.give(ctx, req.Msg.RunId, campaign.Command{Kind: runcommand.Abort, Reason: reason, By: req.Msg.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.AbortRunResponse{}), nil
}

func (s *control) SkipTrial(ctx context.Context, req *connect.Request[linktrialv1.SkipTrialRequest]) (*connect.Response[linktrialv1.SkipTrialResponse], error) {
	if err := s.give(ctx, req.Msg.RunId, campaign.Command{Kind: runcommand.Skip, Trial: int(req.Msg.Trial), By: req.Msg.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.SkipTrialResponse{}), nil
}

func (s *control) RepeatTrial(ctx context.Context, req *connect.Request[linktrialv1.RepeatTrialRequest]) (*connect.Response[linktrialv1.RepeatTrialResponse], error) {
	if err := s.give(ctx, req.Msg.RunId, campaign.Command{Kind: runcommand.Repeat, Trial: int(req.Msg.Trial), By: req.Msg.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.RepeatTrialResponse{}), nil
}

func (s *control) ContinueRun(ctx context.Context, req *connect.Request[linktrialv1.ContinueRunRequest]) (*connect.Response[linktrialv1.ContinueRunResponse], error) {
	if err := s.give(ctx, req.Msg.RunId, campaign.Command{Kind: runcommand.Continue, By: req.Msg.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.ContinueRunResponse{}), nil
}

func (s *control) ExcludeAttempt(ctx context.Context, req *connect.Request[linktrialv1.ExcludeAttemptRequest]) (*connect.Response[linktrialv1.ExcludeAttemptResponse], error) {
	m := req.Msg
	if err := s.mark(ctx, m.RunId, runcommand.Exclude, campaign.Mark{Trial: int(m.Trial), Attempt: int(m.Attempt), Invalid: true, Reason: m.Reason, By: m.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.ExcludeAttemptResponse{}), nil
}

func (s *control) IncludeAttempt(ctx context.Context, req *connect.Request[linktrialv1.IncludeAttemptRequest]) (*connect.Response[linktrialv1.IncludeAttemptResponse], error) {
	m := req.Msg
	if err := s.mark(ctx, m.RunId, runcommand.Include, campaign.Mark{Trial: int(m.Trial), Attempt: int(m.Attempt), By: m.By}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.IncludeAttemptResponse{}), nil
}

// mark finds the run and marks an attempt, or takes its mark back.
func (s *control) mark(ctx context.Context, run, command string, m campaign.Mark) error {
	id, err := s.find(ctx, run)
	if err == nil {
		err = s.cfg.Engine.MarkAttempt(ctx, id, m)
	}
	return s.cfg.answer(ctx, command+" attempt", err)
}

func (s *control) ListCommands(ctx context.Context, req *connect.Request[linktrialv1.ListCommandsRequest]) (*connect.Response[linktrialv1.ListCommandsResponse], error) {
	id, err := s.find(ctx, req.Msg.RunId)
	if err != nil {
		return nil, s.cfg.answer(ctx, "list commands", err)
	}
	out := &linktrialv1.ListCommandsResponse{}
	err = s.cfg.Store.Snapshot(ctx, func(tx store.Conn) error {
		var err error
		out.Commands, err = readCommands(ctx, tx, id)
		return err
	})
	if err != nil {
		return nil, s.cfg.answer(ctx, "list commands", err)
	}
	return connect.NewResponse(out), nil
}

// readCommands reads the commands and the marks of a run, oldest first.
func readCommands(ctx context.Context, conn store.Conn, run string) ([]*linktrialv1.Command, error) {
	states, err := campaign.Commands(ctx, conn, run)
	if err != nil {
		return nil, err
	}
	marks, err := rpcdb.New(conn).Marks(ctx, run)
	if err != nil {
		return nil, err
	}
	var out []*linktrialv1.Command
	for _, o := range states {
		x := &linktrialv1.Command{Id: o.ID, RunId: run, Kind: o.Kind, Trial: o.Trial, Reason: o.Reason, By: o.GivenBy, Given: timestamppb.New(o.GivenAt)}
		if o.AppliedAt != nil {
			x.Applied = timestamppb.New(*o.AppliedAt)
		}
		if o.Rejected != "" {
			x.Reason = "rejected: " + o.Rejected
		}
		out = append(out, x)
	}
	for _, m := range marks {
		x := &linktrialv1.Command{Id: m.ID, RunId: run, Kind: runcommand.Include, Trial: &m.Trial, Attempt: m.Attempt, Reason: m.Reason, By: m.GivenBy,
			Given: timestamppb.New(m.GivenAt), Applied: timestamppb.New(m.GivenAt)}
		if m.Invalid {
			x.Kind = runcommand.Exclude
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b *linktrialv1.Command) int { return a.Given.AsTime().Compare(b.Given.AsTime()) })
	return out, nil
}
