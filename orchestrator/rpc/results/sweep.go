package results

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
)

// sweepMetrics are what curves can show, by the names of the API.
var sweepMetrics = []struct {
	name   string
	metric plan.Metric
	unit   string
}{
	{"throughput", plan.MetricKBps, "KB/s"},
	{"normalised", plan.MetricNormalised, ""},
	{"share-of-ideal", report.MetricShareOfIdeal, ""},
	{"share-of-coded-bound", report.MetricShareOfCodedBound, ""},
	{"gain", plan.MetricGain, "%"},
	{"timeouts", plan.MetricTimeouts, ""},
}

func (s *Service) Sweep(ctx context.Context, req *connect.Request[linktrialv1.SweepRequest]) (*connect.Response[linktrialv1.SweepResponse], error) {
	all, err := s.values(ctx, []string{req.Msg.CampaignId})
	if err != nil {
		return nil, s.answer(ctx, "sweep", err)
	}
	out, err := sweep(report.Analyse(&all[0].Dataset, report.Options{}), req.Msg.Axis, req.Msg.Metric)
	if err != nil {
		return nil, s.answer(ctx, "sweep", err)
	}
	return connect.NewResponse(out), nil
}

func sweep(a *report.Analysis, axis, metric string) (*linktrialv1.SweepResponse, error) {
	m, err := sweepMetric(metric)
	if err != nil {
		return nil, err
	}
	out := &linktrialv1.SweepResponse{Axes: a.SweptAxes(), Axis: axis, Metric: sweepMetrics[m].name, Unit: sweepMetrics[m].unit}
	for _, m := range sweepMetrics {
		out.Metrics = append(out.Metrics, m.name)
	}
	if err := isSwept(a, axis); err != nil {
		return nil, err
	}
	if axis == "" && len(out.Axes) > 0 {
		out.Axis = out.Axes[0]
	}
	for _, c := range a.ChartsOf(sweepMetrics[m].metric, out.Axis) {
		out.Panels = append(out.Panels, asPanel(c))
	}
	return out, nil
}

// sweepMetric is the place of a metric's name, the first's for none.
func sweepMetric(name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	var names []string
	for _, m := range sweepMetrics {
		names = append(names, m.name)
	}
	if k := slices.Index(names, name); k >= 0 {
		return k, nil
	}
	return 0, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("unknown metric %q%s; there are %s", name, yamldoc.Suggest(name, names), strings.Join(names, ", ")))
}

// isSwept refuses an axis in which the runs do not differ.
func isSwept(a *report.Analysis, axis string) error {
	axes := a.SweptAxes()
	if axis == "" || slices.Contains(axes, axis) {
		return nil
	}
	there := "the runs do not differ in any axis"
	if len(axes) > 0 {
		there = "the runs differ in " + strings.Join(axes, ", ")
	}
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("nothing is swept over %q%s; %s", axis, yamldoc.Suggest(axis, axes), there))
}

func asPanel(c *report.Chart) *linktrialv1.SweepPanel {
	var title []string
	for _, part := range []string{c.Group, report.ConditionText(c.Fixed)} {
		if part != "" {
			title = append(title, part)
		}
	}
	if len(c.Averaged) > 0 {
		title = append(title, "averaged over "+strings.Join(c.Averaged, ", "))
	}
	if c.Metric == plan.MetricGain && c.Reference != "" {
		title = append(title, "against "+c.Reference)
	}
	p := &linktrialv1.SweepPanel{Title: strings.Join(title, " · ")}
	for _, x := range c.Stations {
		p.Values = append(p.Values, x.Label)
		if c.Numeric {
			p.Positions = append(p.Positions, x.At)
		}
	}
	for i := range c.Curves {
		p.Curves = append(p.Curves, asCurves(&c.Curves[i])...)
	}
	return p
}

// asCurves are ours, where there is any of it, and what is published of the
// same treatment, a curve for each source.
func asCurves(c *report.Curve) (out []*linktrialv1.SweepCurve) {
	blank := func(source string) *linktrialv1.SweepCurve {
		x := &linktrialv1.SweepCurve{Treatment: c.Treatment, Label: c.Label, Source: source, N: make([]int32, len(c.Points))}
		for range c.Points {
			x.Value, x.Low, x.High = append(x.Value, math.NaN()), append(x.Low, math.NaN()), append(x.High, math.NaN())
			x.Ideal, x.CodedBound = append(x.Ideal, math.NaN()), append(x.CodedBound, math.NaN())
		}
		return x
	}
	ours, some := blank(""), false
	var published []*linktrialv1.SweepCurve
	for i := range c.Points {
		p := &c.Points[i]
		if p.Known {
			some = true
			ours.Value[i], ours.N[i] = p.Mean, int32(p.N)
			ours.Ideal[i], ours.CodedBound[i] = p.Ideal, p.CodedBound
			if r := p.Interval(); r != nil {
				ours.Low[i], ours.High[i] = r.Low, r.High
			}
		}
		f := p.Published
		if f == nil {
			continue
		}
		source := f.Source
		if source == "" {
			source = "source not stated"
		}
		k := slices.IndexFunc(published, func(x *linktrialv1.SweepCurve) bool { return x.Source == source })
		if k < 0 {
			k, published = len(published), append(published, blank(source))
		}
		for _, x := range []struct {
			to   []float64
			from *float64
		}{{published[k].Value, f.Value}, {published[k].Low, f.AtLeast}, {published[k].High, f.AtMost}} {
			if x.from != nil {
				x.to[i] = *x.from
			}
		}
	}
	if some {
		out = append(out, ours)
	}
	return append(out, published...)
}
