package rpc

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/fleet"
)

// fleetCalls is FleetService.
type fleetCalls struct{ cfg Config }

func (c *Config) fleetFault(ctx context.Context, call string, err error) error {
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, fleet.ErrBusy), errors.Is(err, fleet.ErrNotReady):
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

func (s *fleetCalls) ProposeRadio(ctx context.Context, req *connect.Request[linktrialv1.ProposeRadioRequest]) (*connect.Response[linktrialv1.ProposeRadioResponse], error) {
	r, err := s.cfg.Fleet.ProposeRadio(req.Msg.Node, req.Msg.Role, req.Msg.Interface)
	if err != nil {
		return nil, s.cfg.fleetFault(ctx, "propose radio", err)
	}
	return connect.NewResponse(&linktrialv1.ProposeRadioResponse{Radio: r}), nil
}

func (s *fleetCalls) SetRadio(ctx context.Context, req *connect.Request[linktrialv1.SetRadioRequest]) (*connect.Response[linktrialv1.SetRadioResponse], error) {
	m := req.Msg
	if m.Radio.GetInterface() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("no interface is named, expected the one that leads to the radio"))
	}
	r := proto.CloneOf(m.Radio)
	if r.Address == "" || r.Role == "" {
		p, err := s.cfg.Fleet.ProposeRadio(m.Node, r.Role, r.Interface)
		if err != nil {
			return nil, s.cfg.fleetFault(ctx, "set radio", err)
		}
		r.Role = p.Role
		if r.Address == "" {
			r.Address = p.Address
			if len(r.Routes) == 0 {
				r.Routes = p.Routes
			}
		}
	}
	state, err := s.cfg.Fleet.OrderRadio(ctx, m.Node, &linktrialv1.RadioOrder{Radio: r})
	if err != nil {
		return nil, s.cfg.fleetFault(ctx, "set radio", err)
	}
	return connect.NewResponse(&linktrialv1.SetRadioResponse{Done: state.Done, Text: state.Text, Radio: r}), nil
}

func (s *fleetCalls) RemoveRadio(ctx context.Context, req *connect.Request[linktrialv1.RemoveRadioRequest]) (*connect.Response[linktrialv1.RemoveRadioResponse], error) {
	state, err := s.cfg.Fleet.OrderRadio(ctx, req.Msg.Node, &linktrialv1.RadioOrder{Remove: true, Radio: &linktrialv1.NodeRadio{Interface: req.Msg.Interface}})
	if err != nil {
		return nil, s.cfg.fleetFault(ctx, "remove radio", err)
	}
	return connect.NewResponse(&linktrialv1.RemoveRadioResponse{Done: state.Done, Text: state.Text}), nil
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
	s.cfg.Fleet.SetInterfaces(m.Name, m.Interfaces, m.Radios)
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
	n.Interfaces, n.Radios = s.cfg.Fleet.Interfaces(n.Name)
	if h.ClockKnown {
		n.ClockOffsetKnown, n.ClockOffsetSeconds, n.ClockErrorSeconds = true, h.ClockOffset.Seconds(), h.ClockError.Seconds()
	}
}
