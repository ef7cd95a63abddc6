package rpc

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/fleet"
)

// fleetCalls is FleetService.
type fleetCalls struct{ cfg Config }

func (c *Config) fleetFault(ctx context.Context, call string, err error) error {
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, fleet.ErrBusy):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	case errors.Is(err, fleet.ErrBad):
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return c.answer(ctx, call, err)
}

func (s *fleetCalls) StartPreflight(ctx context.Context, req *connect.Request[linktrialv1.StartPreflightRequest]) (*connect.Response[linktrialv1.StartPreflightResponse], error) {
	m := req.Msg
	r := fleet.Request{Nodes: m.Nodes, Topology: m.Topology, Radio: m.Radio, Protocols: m.Protocols}
	if len(m.PlanText) > 0 {
		p, sheets, err := s.cfg.Launcher.Compile(ctx, m.PlanFile, m.PlanText, false)
		problems, err := asProblems(m.PlanFile, err)
		if err != nil {
			return nil, s.cfg.answer(ctx, "start preflight", err)
		}
		if problems != nil {
			return connect.NewResponse(&linktrialv1.StartPreflightResponse{Problems: problems}), nil
		}
		r.OfPlan(p.Name, p.Protocols(), s.cfg.Launcher.Cells(sheets))
	}
	id, err := s.cfg.Fleet.StartPreflight(ctx, r)
	if err != nil {
		return nil, s.cfg.fleetFault(ctx, "start preflight", err)
	}
	return connect.NewResponse(&linktrialv1.StartPreflightResponse{Id: id}), nil
}

func (s *fleetCalls) GetPreflight(ctx context.Context, req *connect.Request[linktrialv1.GetPreflightRequest]) (*connect.Response[linktrialv1.GetPreflightResponse], error) {
	p, err := s.cfg.Fleet.Preflight(ctx, req.Msg.Id)
	if err != nil {
		return nil, s.cfg.fleetFault(ctx, "get preflight", err)
	}
	return connect.NewResponse(p), nil
}

func (s *fleetCalls) Links(ctx context.Context, _ *connect.Request[linktrialv1.LinksRequest]) (*connect.Response[linktrialv1.LinksResponse], error) {
	links, err := s.cfg.Fleet.Links(ctx)
	if err != nil {
		return nil, s.cfg.fleetFault(ctx, "links", err)
	}
	return connect.NewResponse(&linktrialv1.LinksResponse{Links: links}), nil
}

// ReportPreflight is the answer of an agent.
func (s *agents) ReportPreflight(ctx context.Context, req *connect.Request[linktrialv1.ReportPreflightRequest]) (*connect.Response[linktrialv1.ReportPreflightResponse], error) {
	m := req.Msg
	if err := s.cfg.Fleet.Report(ctx, m); err != nil {
		return nil, s.cfg.fleetFault(ctx, "report preflight", err)
	}
	return connect.NewResponse(&linktrialv1.ReportPreflightResponse{}), nil
}

// noteContact notes what a registered node reports with a poll.
func (s *agents) noteContact(m *linktrialv1.PollRequest) {
	if !s.cfg.Engine.Nodes.IsRegistered(m.Name, m.Incarnation) {
		return
	}
	h := fleet.Health{Discharging: m.Discharging, ClockOffset: time.Duration(m.ClockOffsetNs), ClockError: time.Duration(m.ClockErrorNs)}
	if m.Battery != nil && *m.Battery >= 0 && *m.Battery <= 1 {
		h.Battery = m.Battery
	}
	h.ClockKnown = m.ClockErrorNs > 0 || m.ClockOffsetNs != 0
	h.Telemetry, h.ReportedAt = fleet.CleanTelemetry(m.Telemetry), time.Now()
	for _, f := range m.Faults {
		h.Faults = append(h.Faults, fleet.Fault{Run: f.RunId, Text: f.Text})
	}
	s.cfg.Fleet.SetHealth(m.Name, h)
}

// noteFaults stops the runs that a registered node reports it cannot go on with.
func (s *agents) noteFaults(ctx context.Context, m *linktrialv1.PollRequest) {
	if len(m.Faults) == 0 || !s.cfg.Engine.Nodes.IsRegistered(m.Name, m.Incarnation) {
		return
	}
	for _, f := range m.Faults {
		if f.RunId == "" {
			continue
		}
		if err := s.cfg.Engine.Fault(ctx, m.Name, f.RunId, f.Text); err != nil {
			// The node reports it again with its next poll.
			s.cfg.Logger.Error("fault of a node could not be stored", "node", m.Name, "run", f.RunId, "error", err)
		}
	}
}

// health adds to a node what its agent told last.
func (s *operators) health(n *linktrialv1.Node) {
	h := s.cfg.Fleet.Health(n.Name)
	n.Battery, n.Discharging = h.Battery, h.Discharging
	for _, f := range h.Faults {
		// The fault of a run is the run's, and is shown with it once that has ended.
		if f.Run == "" || f.Run == n.RunId {
			n.Faults = append(n.Faults, f.Text)
		}
	}
	n.Telemetry = h.Aged(time.Now())
	if h.ClockKnown {
		n.ClockOffsetKnown, n.ClockOffsetSeconds, n.ClockErrorSeconds = true, h.ClockOffset.Seconds(), h.ClockError.Seconds()
	}
}
