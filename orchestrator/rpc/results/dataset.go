package results

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store"
)

// datasets is what results are made from, of all these runs and campaigns.
func (s *Service) datasets(ctx context.Context, ids []string) (*report.Dataset, error) {
	scopes, err := s.scopes(ctx, ids)
	if err != nil {
		return nil, err
	}
	var all []*report.Dataset
	for _, scope := range scopes {
		ds, err := s.cfg.Store.Dataset(ctx, scope)
		if err != nil {
			return nil, err
		}
		if err := s.addPublished(ctx, ds); err != nil {
			return nil, err
		}
		all = append(all, ds)
	}
	return report.Merge(all), nil
}

// reportOptions are what a request asks of a report beyond its format.
func reportOptions(m *linktrialv1.ResultsRequest) (report.Options, error) {
	o := report.Options{Reference: m.Reference, Axis: m.Axis}
	if m.Metric == "" {
		return o, nil
	}
	k, err := sweepMetric(m.Metric)
	o.Metric = sweepMetrics[k].metric
	return o, err
}

// renderAs refuses what the runs do not have before it renders.
func renderAs(ds *report.Dataset, format string, o report.Options) (render.File, error) {
	if o.Reference != "" {
		var names []string
		for i := range ds.Runs {
			if ds.Runs[i].Sheet == nil {
				continue
			}
			for _, t := range ds.Runs[i].Sheet.Treatments {
				names = addTo(names, t.Name)
			}
			for _, m := range ds.Runs[i].Sheet.Mixes {
				names = addTo(names, m.Name)
			}
		}
		if !slices.Contains(names, o.Reference) {
			return render.File{}, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("no run has a treatment %q%s; there are %s", o.Reference, yamldoc.Suggest(o.Reference, names), strings.Join(names, ", ")))
		}
	}
	return render.Checked(ds, format, o, func(a *report.Analysis) error {
		if format == render.DelaysSVG && !slices.ContainsFunc(a.Tables, func(t report.RunTable) bool { return len(t.Probes) > 0 }) {
			return fmt.Errorf("%w: campaign %s has no probes", store.ErrNotFound, ds.Campaign)
		}
		return isSwept(a, o.Axis)
	})
}

// Export is a campaign or run as a file.
func (s *Service) Export(ctx context.Context, req *connect.Request[linktrialv1.ResultsRequest]) (*connect.Response[linktrialv1.ResultsResponse], error) {
	format := cmp.Or(req.Msg.Format, "table")
	known := append(render.Formats(), samplesCSV, channelsCSV, readingsCSV, sequenceSVG)
	format, iteration, err := ofIteration(format)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if !slices.Contains(known, format) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("unknown format %q%s; there are %s", format, yamldoc.Suggest(format, known), strings.Join(known, ", ")))
	}
	o, err := reportOptions(req.Msg)
	if err != nil {
		return nil, err
	}
	ds, err := s.datasets(ctx, append([]string{req.Msg.RunId}, req.Msg.MoreIds...))
	if err != nil {
		return nil, s.answer(ctx, "results", err)
	}
	if showsTelemetry[format] {
		if err := fillTelemetry(ctx, s.cfg.Store, ds); err != nil {
			return nil, s.answer(ctx, "results", err)
		}
	}
	var file render.File
	switch format {
	case samplesCSV:
		file, err = writeSamples(ctx, s.cfg.Store, ds)
	case channelsCSV:
		file, err = writeChannels(ctx, s.cfg.Store, ds)
	case readingsCSV:
		file, err = writeReadings(ctx, s.cfg.Store, ds)
	case sequenceSVG:
		file, err = drawSequence(ctx, s.cfg.Store, ds, iteration)
	default:
		file, err = renderAs(ds, format, o)
	}
	if err != nil {
		return nil, s.answer(ctx, "results", err)
	}
	out := &linktrialv1.ResultsResponse{CampaignId: ds.Campaign, FileName: file.Name, MediaType: file.MediaType, Content: file.Content}
	for _, r := range ds.Runs {
		out.RunIds = append(out.RunIds, r.ID)
	}
	return connect.NewResponse(out), nil
}
