package results

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/typeset"
	"linktrial/orchestrator/store"
)

// datasets is what results are made from, of all these runs and campaigns. tell hears which
// share of it is read.
func (s *Service) datasets(ctx context.Context, ids []string, tell func(share float64)) (*report.Dataset, error) {
	scopes, err := s.scopes(ctx, ids)
	if err != nil {
		return nil, err
	}
	var all []*report.Dataset
	for i, scope := range scopes {
		ds, err := s.cfg.Store.Dataset(ctx, scope, func(read, of int) {
			tell((float64(i) + float64(read)/float64(of)) / float64(len(scopes)))
		})
		if err != nil {
			return nil, err
		}
		if !scope.Imported { // an import has those of its own plan
			if err := s.addPublished(ctx, ds); err != nil {
				return nil, err
			}
		}
		all = append(all, ds)
	}
	return report.Merge(all), nil
}

// reportOptions are what a request asks of a report beyond its format.
func reportOptions(m *linktrialv1.ResultsRequest) (report.Options, error) {
	o := report.Options{Reference: m.Reference, Axis: m.Axis, LeaveOut: m.LeaveOut}
	if m.Metric == "" {
		return o, nil
	}
	k, err := sweepMetric(m.Metric)
	o.Metric = sweepMetrics[k].metric
	return o, err
}

// renderAs refuses what the runs do not have before it renders.
func renderAs(ds *report.Dataset, of *render.Format, o report.Options) (render.File, error) {
	if err := isTreatment(ds, o.Reference); err != nil {
		return render.File{}, err
	}
	f, err := render.Checked(ds, of.Name, o, func(a *report.Analysis) error {
		if of.Of == render.OfProbes && !slices.ContainsFunc(a.Tables, func(t report.RunTable) bool { return len(t.Probes) > 0 }) {
			return fmt.Errorf("%w: campaign %s has no probes", store.ErrNotFound, ds.Campaign)
		}
		return isSwept(a, o.Axis)
	})
	if errors.Is(err, render.ErrNoPart) {
		err = connect.NewError(connect.CodeInvalidArgument, err)
	}
	write := f.Write
	f.Write = func(w io.Writer) error {
		err := write(w)
		if errors.Is(err, typeset.ErrMissing) {
			err = connect.NewError(connect.CodeFailedPrecondition, err)
		}
		return err
	}
	return f, err
}

// isTreatment refuses names that no run's treatment or mix has; an empty one names none.
func isTreatment(ds *report.Dataset, named ...string) error {
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
	for _, name := range named {
		if name != "" && !slices.Contains(names, name) {
			return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("no run has a treatment %q%s; there are %s", name, yamldoc.Suggest(name, names), strings.Join(names, ", ")))
		}
	}
	return nil
}
