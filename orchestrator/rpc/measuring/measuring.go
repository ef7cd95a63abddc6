package measuring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/store"
)

// Campaigns is what is asked of ResultService.
type Campaigns interface {
	ListCampaigns(context.Context, *connect.Request[linktrialv1.ListCampaignsRequest]) (*connect.Response[linktrialv1.ListCampaignsResponse], error)
}

// Config is what links are measured with.
type Config struct {
	Store     *store.Store
	Catalog   *catalog.Catalog
	Launcher  *launch.Launcher
	Nodes     func() []nodes.Node
	Campaigns Campaigns
	// Problems are the reasons for which a plan cannot be started; any other error is returned.
	Problems func(file string, err error) ([]*linktrialv1.Problem, error)
	Logger   *slog.Logger
}

// Service is MeasureService.
type Service struct{ cfg Config }

// New is the service.
func New(cfg Config) *Service { return &Service{cfg} }

func (s *Service) answer(ctx context.Context, call string, err error) error {
	return reply.Error(ctx, s.cfg.Logger, call, err)
}

// Where nothing else is chosen: the topology, and the profile by which plans name a radio
// that has none.
const (
	defaultTopology = "point-to-point"
	unnamedRadio    = "unnamed-radio"
)

func (s *Service) PreviewMeasurement(ctx context.Context, req *connect.Request[linktrialv1.PreviewMeasurementRequest]) (*connect.Response[linktrialv1.PreviewMeasurementResponse], error) {
	_, p, err := s.compose(ctx, req.Msg.Link)
	var no *connect.Error
	if errors.As(err, &no) && no.Code() == connect.CodeFailedPrecondition {
		// Pages ask before there is a node: this is an answer, and no error.
		return connect.NewResponse(&linktrialv1.PreviewMeasurementResponse{Refused: no.Message()}), nil
	}
	if err != nil {
		return nil, s.answer(ctx, "preview measurement", err)
	}
	return connect.NewResponse(&linktrialv1.PreviewMeasurementResponse{Plan: p}), nil
}

func (s *Service) StartMeasurement(ctx context.Context, req *connect.Request[linktrialv1.StartMeasurementRequest]) (*connect.Response[linktrialv1.StartMeasurementResponse], error) {
	name, p, err := s.compose(ctx, req.Msg.Link)
	if err != nil {
		return nil, s.answer(ctx, "start measurement", err)
	}
	file := name + ".yaml"
	started, err := s.cfg.Launcher.Start(ctx, launch.Request{File: file, Text: []byte(p.Text), Moves: campaign.MovesNone})
	problems, err := s.cfg.Problems(file, err)
	if err != nil {
		return nil, s.answer(ctx, "start measurement", err)
	}
	return connect.NewResponse(&linktrialv1.StartMeasurementResponse{Plan: p, CampaignId: started.Campaign, RunIds: started.Runs, Problems: problems}), nil
}

// compose is the plan for what was chosen, with its name.
func (s *Service) compose(ctx context.Context, c *linktrialv1.LinkChoice) (string, *linktrialv1.MeasurementPlan, error) {
	if c == nil {
		c = &linktrialv1.LinkChoice{}
	}
	link, part, search, err := s.choose(ctx, c)
	if err != nil {
		return "", nil, err
	}
	plan := measure.Compose(link, part, search)
	out := &linktrialv1.MeasurementPlan{Radio: link.Radio, Topology: link.Topology, RateBps: link.RateBPS, Text: plan.Text,
		PartSeconds: plan.Bound.Seconds(), BoundSeconds: plan.Bound.Seconds(), RestFollows: part == measure.Search}
	if part == measure.Search {
		out.BoundSeconds = measure.Bound(link).Seconds()
	}
	return plan.Name, out, nil
}

// choose finds the link, and which part of its measurement is next.
func (s *Service) choose(ctx context.Context, c *linktrialv1.LinkChoice) (link measure.Link, part measure.Part, search string, err error) {
	name, topology, found := c.Radio, c.Topology, 0.0
	if c.Search != "" {
		v, err := s.searched(ctx, c.Search, c.Track)
		if err != nil {
			return link, 0, "", err
		}
		search, found, name, topology = v.campaign, v.bps, v.radio, v.topology
	}
	client, err := s.client()
	if err != nil {
		return link, 0, "", err
	}
	unnamed := !client.Emulated && client.Radio == ""
	if name == "" {
		switch {
		case client.Radio != "":
			name = client.Radio
		case unnamed:
			name = unnamedRadio
		default:
			return link, 0, "", refuse("the client's node %s has an emulated radio, which can be any of the catalogue: name one (linktrial measure --radio NAME)", client.Name)
		}
	}
	if topology == "" {
		topology = defaultTopology
	}
	p, t := s.cfg.Catalog.Profile(name), s.cfg.Catalog.Topology(topology)
	switch {
	case p == nil:
		return link, 0, "", refuse("there is no radio %q%s", name, yamldoc.Suggest(name, s.cfg.Catalog.Profiles()))
	case t == nil:
		return link, 0, "", refuse("there is no topology %q%s", topology, yamldoc.Suggest(topology, s.cfg.Catalog.Topologies()))
	}
	link = measure.LinkOf(p, t, unnamed)
	switch {
	case c.Track && search == "":
		return link, 0, "", connect.NewError(connect.CodeInvalidArgument, errors.New("a track is made by the capacities of a measurement: expected its campaign as search"))
	case c.Track:
		link.RateBPS, part = found, measure.Track
	case search != "":
		link.RateBPS, part = found, measure.Rest
	case link.RateBPS == 0:
		part = measure.Search
	}
	return link, part, search, nil
}

// client is the connected node that leads: as for runs, one of a lab before one with a real
// radio that has a name, and that before one whose radio has none.
func (s *Service) client() (*nodes.Node, error) {
	var best *nodes.Node
	rank := func(n *nodes.Node) int {
		switch {
		case n.Emulated:
			return 0
		case n.Radio != "":
			return 1
		}
		return 2
	}
	for _, n := range s.cfg.Nodes() {
		if n.Role != string(radio.RoleClient) || !n.Connected || n.Virtual || n.WithoutRadio() {
			continue
		}
		if best == nil || rank(&n) < rank(best) {
			best = &n
		}
	}
	if best == nil {
		return nil, refuse("no client node with a radio is connected: it is the one from which a link is measured; 'linktrial nodes' lists those that there are")
	}
	return best, nil
}

func refuse(format string, args ...any) error {
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf(format, args...))
}

// found is what a search found.
type found struct {
	campaign, radio, topology string
	bps                       float64
}

// searched reads the capacities by which a rest is made, or a track: that also follows what
// is more than a search.
func (s *Service) searched(ctx context.Context, id string, track bool) (found, error) {
	m, err := s.read(ctx, id)
	if err == nil && track && m.part == measure.Track {
		m, err = s.read(ctx, m.search) // one of a series: the next one is by the same capacities
	}
	if err != nil {
		return found{}, err
	}
	if m.part != measure.Search && !track {
		return found{}, refuse("campaign %s is no search of a measurement", m.campaign)
	}
	if !m.ended {
		return found{}, refuse("the measurement %s has not ended", m.campaign)
	}
	bps, ok := m.values.FoundBPS()
	if !ok || len(m.tables) == 0 {
		return found{}, refuse("campaign %s found no capacity in both directions, by which what follows would be made: 'linktrial results %s' says what happened", m.campaign, m.campaign)
	}
	return found{m.campaign, m.tables[0].Radio, m.tables[0].Topology, bps}, nil
}

var errNone = errors.New("no link has been measured yet: linktrial measure")
