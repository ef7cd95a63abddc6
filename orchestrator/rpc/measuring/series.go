package measuring

import (
	"context"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/measure"
)

func (s *Service) GetSeries(ctx context.Context, req *connect.Request[linktrialv1.GetSeriesRequest]) (*connect.Response[linktrialv1.GetSeriesResponse], error) {
	t := thresholds(req.Msg.Thresholds)
	if err := t.Check(); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	out, err := s.series(ctx, req.Msg, t)
	if err != nil {
		return nil, s.answer(ctx, "get series", err)
	}
	return connect.NewResponse(out), nil
}

func (s *Service) series(ctx context.Context, req *linktrialv1.GetSeriesRequest, t measure.Thresholds) (*linktrialv1.GetSeriesResponse, error) {
	base, ids, err := s.points(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &linktrialv1.GetSeriesResponse{CampaignId: base, Cut: len(ids) > most}
	ids = ids[:min(len(ids), most)]
	var ended []measure.TrackPoint
	for _, id := range slices.Backward(ids) {
		m, err := s.read(ctx, id)
		if err != nil {
			return nil, err
		}
		p := measure.TrackPoint{Campaign: m.campaign, At: m.created, Uses: measure.Judge(&m.values, m.part, t), Positions: measure.PositionsOf(m.runs), Values: m.values}
		if m.ended && (!m.values.Partial || len(p.Values.Brief()) > 0) {
			ended = append(ended, p)
		}
		out.Points = append(out.Points, &linktrialv1.SeriesPoint{CampaignId: p.Campaign, Started: timestamppb.New(p.At), Ended: m.ended, Partial: m.ended && m.values.Partial,
			Outcome: string(p.Outcome()), Uses: asUses(p.Uses), Values: asValues(p.Values.Brief()), Positions: asPositions(p.Positions), DistanceMetres: distance(p.Positions)})
	}
	out.Moving, out.Csv, out.Kml = measure.Moving(ended), string(measure.TrackCSV(ended)), string(measure.TrackKML(ended))
	return out, nil
}

// points finds the measurement whose series is meant, and the campaigns of its points, the
// newest first: one more than is shown, where there are more.
func (s *Service) points(ctx context.Context, req *linktrialv1.GetSeriesRequest) (base string, ids []string, err error) {
	m, err := s.find(ctx, req.CampaignId)
	if err != nil {
		return "", nil, err
	}
	base = m.campaign
	if m.part == measure.Track && m.search != "" {
		base = m.search
	}
	ids, err = s.cfg.Store.CampaignsOfPlans(ctx, measure.PlanNames(measure.Track), measure.SearchLine(base), most+1)
	if err != nil || req.First == "" {
		return base, ids, err
	}
	at := slices.Index(ids, req.First)
	switch {
	case at < 0 && len(ids) > most: // it lies before what is shown
		return base, ids, nil
	case at < 0:
		return "", nil, refuse("campaign %s is no point of the series of %s", req.First, base)
	}
	return base, ids[:at+1], nil
}
