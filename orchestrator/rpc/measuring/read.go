package measuring

import (
	"context"
	"math"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry"
)

// measured is what a measurement's campaigns hold, the search's first.
type measured struct {
	campaign, search string
	part             measure.Part
	created          time.Time
	tables           []report.RunTable
	runs             []report.Run
	values           measure.Values
	ended            bool
}

// find finds a measurement by the identity of its newest campaign, or its beginning; its runs
// are not read.
func (s *Service) find(ctx context.Context, id string) (*measured, error) {
	if id == "" {
		all, err := s.list(ctx)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, connect.NewError(connect.CodeNotFound, errNone)
		}
		id = all[0].CampaignId
	}
	scope, err := s.cfg.Store.FindScope(ctx, id)
	if err != nil {
		return nil, err
	}
	c, err := s.cfg.Store.Campaign(ctx, scope.Campaign)
	if err := reply.NotFound("campaign "+scope.Campaign, err); err != nil {
		return nil, err
	}
	part, ok := measure.PartOf(c.Plan)
	if !ok {
		return nil, refuse("campaign %s is of the plan %s and no measurement of a link: 'linktrial results %s' has its results", c.ID, c.Plan, c.ID)
	}
	return &measured{campaign: c.ID, search: measure.SearchOf(string(c.PlanText)), part: part, created: c.CreatedAt}, nil
}

// read is [Service.find] with the runs and what they measured.
func (s *Service) read(ctx context.Context, id string) (*measured, error) {
	m, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if m.search != "" && m.part == measure.Rest {
		if _, err := s.add(ctx, m, m.search); err != nil {
			return nil, err
		}
	}
	if m.ended, err = s.add(ctx, m, m.campaign); err != nil {
		return nil, err
	}
	m.values = measure.ValuesOf(m.tables, m.runs)
	m.values.Running = !m.ended
	return m, nil
}

// add reads the runs of a campaign, and reports whether all have ended.
func (s *Service) add(ctx context.Context, m *measured, id string) (ended bool, err error) {
	ds, err := s.cfg.Store.Dataset(ctx, store.Scope{Campaign: id}, nil)
	if err != nil {
		return false, err
	}
	for i := range ds.Runs {
		if err := telemetry.Fill(ctx, s.cfg.Store.Conn, &ds.Runs[i]); err != nil {
			return false, err
		}
	}
	m.runs = append(m.runs, ds.Runs...)
	m.tables = append(m.tables, report.Analyse(ds, report.Options{}).Tables...)
	return ds.Complete, nil
}

// restMissing says that a search has no rest.
const restMissing = "Only the capacity was searched: the rest of the measurement was not started after it."

func (s *Service) GetMeasurement(ctx context.Context, req *connect.Request[linktrialv1.GetMeasurementRequest]) (*connect.Response[linktrialv1.GetMeasurementResponse], error) {
	t := thresholds(req.Msg.Thresholds)
	if err := t.Check(); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	m, err := s.read(ctx, req.Msg.CampaignId)
	if err != nil {
		return nil, s.answer(ctx, "get measurement", err)
	}
	page := measure.Page{Campaign: m.campaign, Started: m.created, Values: m.values, Uses: measure.Judge(&m.values, m.part, t), Changed: t.Changed(), Positions: measure.PositionsOf(m.runs)}
	out := &linktrialv1.GetMeasurementResponse{CampaignId: m.campaign, SearchCampaignId: m.search, Ended: m.ended, Started: timestamppb.New(m.created),
		Place: m.values.Place, Radio: m.values.Radio, Partial: m.values.Partial, ChangedThresholds: page.Changed, DistanceMetres: distance(page.Positions),
		Values: asValues(m.values.Lines()), Uses: asUses(page.Uses), Positions: asPositions(page.Positions)}
	if m.part == measure.Search {
		out.RestMissing, page.Hint = true, restMissing
	}
	if len(m.tables) > 0 {
		page.Topology = m.tables[0].TopologyTitle
	}
	out.Topology, out.Text, out.Csv, out.Kml = page.Topology, page.Text(), string(page.CSV()), string(page.KML())
	return connect.NewResponse(out), nil
}

func asValues(lines []measure.Line) (out []*linktrialv1.MeasuredValue) {
	for _, l := range lines {
		x := &linktrialv1.MeasuredValue{Group: l.Group, Metric: l.Metric, Way: l.Way, Unit: l.Unit, Text: measure.Quantity(l.Value, l.Unit), Note: l.Note}
		if !math.IsNaN(l.Value) {
			x.Value = &l.Value
		}
		out = append(out, x)
	}
	return out
}

func asPositions(positions []measure.Position) (out []*linktrialv1.MeasuredPosition) {
	for _, p := range positions {
		out = append(out, &linktrialv1.MeasuredPosition{Role: p.Role, Latitude: p.Latitude, Longitude: p.Longitude})
	}
	return out
}

// distance is that of client and server, in m; nil: it is not known.
func distance(positions []measure.Position) *float64 {
	if d, ok := measure.Distance(positions); ok {
		return &d
	}
	return nil
}

func asUses(uses []measure.Use) (out []*linktrialv1.JudgedUse) {
	for i := range uses {
		out = append(out, asUse(&uses[i]))
	}
	return out
}

func asUse(u *measure.Use) *linktrialv1.JudgedUse {
	out := &linktrialv1.JudgedUse{Name: u.Name, Outcome: string(u.Outcome), NotMeasured: u.NotMeasured}
	for i := range u.Checks {
		out.Checks = append(out.Checks, &linktrialv1.JudgedCheck{Outcome: string(u.Checks[i].Outcome), Text: u.Checks[i].Text()})
	}
	return out
}

// thresholds are the defaults with what is set.
func thresholds(m *linktrialv1.MeasureThresholds) measure.Thresholds {
	t := measure.Defaults
	if m == nil {
		return t
	}
	for _, x := range []struct {
		into *float64
		set  *float64
	}{
		{&t.VoiceMOS, m.VoiceMos}, {&t.VoiceDelayMS, m.VoiceDelayMs}, {&t.ChatLoss, m.ChatLoss}, {&t.ChatDelayMS, m.ChatDelayMs},
		{&t.PictureBytes, m.PictureBytes}, {&t.PictureSeconds, m.PictureSeconds}, {&t.FileBytes, m.FileBytes}, {&t.FileSeconds, m.FileSeconds},
	} {
		if x.set != nil {
			*x.into = *x.set
		}
	}
	return t
}

func (s *Service) ListMeasurements(ctx context.Context, _ *connect.Request[linktrialv1.ListMeasurementsRequest]) (*connect.Response[linktrialv1.ListMeasurementsResponse], error) {
	all, err := s.list(ctx)
	if err != nil {
		return nil, s.answer(ctx, "list measurements", err)
	}
	out := &linktrialv1.ListMeasurementsResponse{Measurements: all}
	for _, r := range measure.Ranges {
		out.Thresholds = append(out.Thresholds, &linktrialv1.ThresholdRange{Key: r.Key, Label: r.Label, DefaultValue: r.Default(), Lowest: r.Lowest, Highest: r.Highest,
			Bounds: r.Bounds(), Unit: r.Unit, Scale: r.Scale})
	}
	return connect.NewResponse(out), nil
}

// most bounds how many measurements are listed, and how many points of a series.
const most = 500

// list lists the newest measurements without those of series: a walk of some hours would
// leave no other.
func (s *Service) list(ctx context.Context) (out []*linktrialv1.Measurement, err error) {
	ids, err := s.cfg.Store.CampaignsOfPlans(ctx, measure.PlanNames(measure.Whole, measure.Search, measure.Rest), "", most)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	res, err := s.cfg.Campaigns.ListCampaigns(ctx, connect.NewRequest(&linktrialv1.ListCampaignsRequest{Ids: ids}))
	if err != nil {
		return nil, err
	}
	for _, c := range res.Msg.Campaigns {
		out = append(out, &linktrialv1.Measurement{CampaignId: c.Id, Created: c.Created, Radios: c.Radios, Topologies: c.Topologies, Place: c.Place, Ended: c.Ended != nil, Part: c.Plan})
	}
	return out, nil
}
