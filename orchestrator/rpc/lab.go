package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
	"linktrial/orchestrator/rpc/reply"
)

// Lab brings emulated radio networks up on the orchestrator's own machine. The
// orchestrator does not know how: what runs it gives it one.
type Lab interface {
	Status(ctx context.Context) (*linktrialv1.LabStatusResponse, error)
	Up(ctx context.Context, radio, topology string) error
	Down(ctx context.Context) error
	SetControlLink(ctx context.Context, node string, up bool) error
}

// ErrLab reports that the lab is not in a state for what was asked.
var ErrLab = errors.New("the lab cannot do that now")

// labUpLimit bounds the making of a lab; it takes a few seconds.
const labUpLimit = 90 * time.Second

// lab is LabService.
type lab struct{ cfg Config }

// there is the lab, or why there is none.
func (s *lab) there() (Lab, error) {
	if s.cfg.Lab == nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New(s.cfg.NoLab))
	}
	return s.cfg.Lab, nil
}

func (s *lab) fault(ctx context.Context, call string, err error) error {
	if errors.Is(err, ErrLab) {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return reply.Told(ctx, s.cfg.Logger, call, err)
}

func (s *lab) LabStatus(ctx context.Context, _ *connect.Request[linktrialv1.LabStatusRequest]) (*connect.Response[linktrialv1.LabStatusResponse], error) {
	if s.cfg.Lab == nil {
		return connect.NewResponse(&linktrialv1.LabStatusResponse{Unavailable: s.cfg.NoLab}), nil
	}
	st, err := s.cfg.Lab.Status(ctx)
	if err != nil {
		return nil, s.fault(ctx, "lab status", err)
	}
	return connect.NewResponse(st), nil
}

func (s *lab) LabUp(ctx context.Context, req *connect.Request[linktrialv1.LabUpRequest]) (*connect.Response[linktrialv1.LabUpResponse], error) {
	l, err := s.there()
	if err != nil {
		return nil, err
	}
	m := req.Msg
	p, t := s.cfg.Catalog.Profile(m.Radio), s.cfg.Catalog.Topology(m.Topology)
	switch {
	case p == nil:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("no radio %q; there are %s", m.Radio, strings.Join(s.cfg.Catalog.Profiles(), ", ")))
	case t == nil:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("no topology %q; there are %s", m.Topology, strings.Join(s.cfg.Catalog.Topologies(), ", ")))
	}
	if _, err := radio.Resolve(p, t); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	st, err := l.Status(ctx)
	if err != nil {
		return nil, s.fault(ctx, "lab up", err)
	}
	if !st.Up {
		// The lab's nodes are called by their roles, and a name is given once.
		var taken []string
		for _, n := range s.cfg.Engine.Nodes.List() {
			if n.Connected && slices.ContainsFunc(t.Stations, func(x radio.Station) bool { return string(x.Role) == n.Name }) {
				taken = append(taken, n.Name)
			}
		}
		if len(taken) > 0 {
			return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("nodes named %s are connected already, from another lab or from laptops: end those first, or give them other names", strings.Join(taken, ", ")))
		}
	}
	// Half a lab is none: it is brought up also when whoever asked has gone.
	up, cancel := context.WithTimeout(context.WithoutCancel(ctx), labUpLimit)
	defer cancel()
	if err := l.Up(up, m.Radio, m.Topology); err != nil {
		return nil, s.fault(up, "lab up", err)
	}
	return connect.NewResponse(&linktrialv1.LabUpResponse{}), nil
}

func (s *lab) LabDown(ctx context.Context, _ *connect.Request[linktrialv1.LabDownRequest]) (*connect.Response[linktrialv1.LabDownResponse], error) {
	l, err := s.there()
	if err != nil {
		return nil, err
	}
	st, err := l.Status(ctx)
	if err != nil {
		return nil, s.fault(ctx, "lab down", err)
	}
	for _, n := range s.cfg.Engine.Nodes.List() {
		if n.Run != "" && slices.ContainsFunc(st.Nodes, func(x *linktrialv1.LabNode) bool { return x.Name == n.Name }) {
			return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("node %s is in run %s: abort it first, or wait for its end", n.Name, n.Run))
		}
	}
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), labUpLimit)
	defer cancel()
	if err := l.Down(down); err != nil {
		return nil, s.fault(down, "lab down", err)
	}
	return connect.NewResponse(&linktrialv1.LabDownResponse{}), nil
}

func (s *lab) SetControlLink(ctx context.Context, req *connect.Request[linktrialv1.SetControlLinkRequest]) (*connect.Response[linktrialv1.SetControlLinkResponse], error) {
	l, err := s.there()
	if err != nil {
		return nil, err
	}
	if err := l.SetControlLink(ctx, req.Msg.Node, req.Msg.Up); err != nil {
		return nil, s.fault(ctx, "set control link", err)
	}
	return connect.NewResponse(&linktrialv1.SetControlLinkResponse{}), nil
}
