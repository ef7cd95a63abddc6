package results

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
)

// formatOf reads the format of a request, which can have a number: sequence-svg:3 is of an
// iteration, svg:2 of a part. 0: none is stated.
func formatOf(text string) (f *render.Format, number int, err error) {
	name, n, stated := strings.Cut(text, ":")
	if f = render.Find(name); f == nil || stated && f.Numbered == render.ByNothing {
		return nil, 0, fmt.Errorf("unknown format %q%s; there are %s", text, yamldoc.Suggest(text, render.Names()), strings.Join(render.Names(), ", "))
	}
	if !stated {
		return f, 0, nil
	}
	if number, err = strconv.Atoi(n); err != nil || number < 1 {
		return nil, 0, fmt.Errorf("%q: expected the number of %s after %s:, found %q", text, f.Numbered, name, n)
	}
	return f, number, nil
}

func (s *Service) ListFormats(ctx context.Context, req *connect.Request[linktrialv1.ListFormatsRequest]) (*connect.Response[linktrialv1.ListFormatsResponse], error) {
	there := func(*render.Format) bool { return true }
	if len(req.Msg.Ids) > 0 {
		var err error
		if there, err = s.formatsOf(ctx, req.Msg.Ids); err != nil {
			return nil, s.answer(ctx, "list formats", err)
		}
	}
	out := &linktrialv1.ListFormatsResponse{}
	for _, f := range render.Formats() {
		if there(f) {
			out.Formats = append(out.Formats, asFormat(f))
		}
	}
	return connect.NewResponse(out), nil
}

// formatsOf reports which formats there are of what ids name. Whether there are probes, and
// whether a trial has begun, is known when a file is asked for.
func (s *Service) formatsOf(ctx context.Context, ids []string) (func(*render.Format) bool, error) {
	scopes, err := s.scopes(ctx, ids)
	if err != nil {
		return nil, err
	}
	var campaigns []string
	imported, swept, published := false, false, false
	for _, x := range scopes {
		campaigns = addTo(campaigns, x.Campaign)
		if !x.Imported {
			continue
		}
		imported = true
		ds, err := s.cfg.Store.Dataset(ctx, x, func(int, int) {})
		if err != nil {
			return nil, err
		}
		swept = swept || len(report.Analyse(ds, report.Options{}).SweptAxes()) > 0
		published = published || len(ds.Published) > 0
	}
	listed, err := s.listCampaigns(ctx, maxSummarized, "", campaigns) // without imports
	if err != nil {
		return nil, err
	}
	for _, c := range listed.Campaigns {
		swept, published = swept || c.Sweeps, published || c.Published
	}
	return func(f *render.Format) bool {
		switch {
		case f.Own() && imported:
			return false
		case f.Of == render.OfSweeps:
			return swept
		case f.Of == render.OfPublished:
			return published
		case f.Of == render.OfSeveral:
			return len(campaigns) > 1
		}
		return true
	}, nil
}

func asFormat(f *render.Format) *linktrialv1.Format {
	return &linktrialv1.Format{Name: f.Name, Title: f.Title, FileName: f.File, MediaType: f.MediaType, OnScreen: f.OnScreen, Document: f.Document, Rows: f.Source == render.FromRows,
		Drawing: f.Drawing(), MayBeMissing: slices.Contains([]render.Of{render.OfProbes, render.OfSamples}, f.Of)}
}
