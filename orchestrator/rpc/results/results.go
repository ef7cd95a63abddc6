// Package results answers what the pages and the command line ask of results:
// lists, summaries, curves, time series, and files in every format.
package results

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/results/resultsdb"
	"linktrial/orchestrator/store"
)

// Config is what results are made from.
type Config struct {
	Store   *store.Store
	Catalog *catalog.Catalog // the published values stand in plans, which are read with it
	Logger  *slog.Logger
	// Stopping is closed when the orchestrator stops; nil: it does not.
	Stopping <-chan struct{}
}

// Service is ResultService.
type Service struct {
	cfg        Config
	rowExports chan struct{} // one for each file of rows that is being made
}

// New is the service of one store.
func New(cfg Config) *Service {
	return &Service{cfg, make(chan struct{}, maxRowExports)}
}

func (s *Service) answer(ctx context.Context, call string, err error) error {
	return reply.Error(ctx, s.cfg.Logger, call, err)
}

// maxCampaigns bounds a page of campaigns.
const maxCampaigns = 500

func (s *Service) ListCampaigns(ctx context.Context, req *connect.Request[linktrialv1.ListCampaignsRequest]) (*connect.Response[linktrialv1.ListCampaignsResponse], error) {
	limit := min(req.Msg.Limit, maxCampaigns)
	if limit <= 0 {
		limit = 50
	}
	before := req.Msg.Before
	if len(req.Msg.Ids) > 0 {
		limit, before = maxCampaigns, ""
	}
	out, err := s.listCampaigns(ctx, limit, before, req.Msg.Ids)
	if err != nil {
		return nil, s.answer(ctx, "list campaigns", err)
	}
	return connect.NewResponse(out), nil
}

func (s *Service) listCampaigns(ctx context.Context, limit int32, before string, only []string) (*linktrialv1.ListCampaignsResponse, error) {
	if before != "" {
		_, err := s.cfg.Store.Campaign(ctx, before)
		if err := reply.NotFound(fmt.Sprintf("campaign %q", before), err); err != nil {
			return nil, err
		}
	}
	out := &linktrialv1.ListCampaignsResponse{}
	err := s.cfg.Store.Snapshot(ctx, func(tx store.Conn) error {
		page, err := resultsdb.New(tx).CampaignPage(ctx, resultsdb.CampaignPageParams{Before: before, Ids: only, Count: limit + 1})
		if err != nil {
			return err
		}
		if out.More = len(page) > int(limit); out.More {
			page = page[:limit]
		}
		var ids, runs []string
		for _, c := range page {
			ids = append(ids, c.ID)
		}
		heads, err := tx.RunHeads(ctx, store.RunHeadsParams{Campaigns: ids})
		if err != nil {
			return err
		}
		for _, h := range heads {
			runs = append(runs, h.ID)
		}
		rows, err := resultsdb.New(tx).TrialCounts(ctx, runs)
		if err != nil {
			return err
		}
		counts := map[string]resultsdb.TrialCountsRow{}
		for _, c := range rows {
			counts[c.RunID] = c
		}
		byCampaign := map[string][]store.RunHeadsRow{}
		for _, h := range heads {
			byCampaign[h.CampaignID] = append(byCampaign[h.CampaignID], h)
		}
		for i := range page {
			out.Campaigns = append(out.Campaigns, asCampaign(&page[i], byCampaign[page[i].ID], counts))
		}
		return nil
	})
	return out, err
}

// ends are the states in which runs end; the last one of them that a run of a campaign has
// is the campaign's.
var ends = []campaign.State{campaign.Completed, campaign.Aborted, campaign.Stopped}

func asCampaign(c *resultsdb.CampaignPageRow, heads []store.RunHeadsRow, counts map[string]resultsdb.TrialCountsRow) *linktrialv1.Campaign {
	out := &linktrialv1.Campaign{Id: c.ID, Name: c.Name, Plan: c.Plan, Created: timestamppb.New(c.CreatedAt), Runs: int32(len(heads)),
		Published: c.Published}
	open := len(heads) == 0
	rank := 0
	for _, h := range heads {
		if h.EndedAt != nil {
			out.RunsEnded++
			if out.Ended == nil || out.Ended.AsTime().Before(*h.EndedAt) {
				out.Ended = timestamppb.New(*h.EndedAt)
			}
		} else {
			open = true
		}
		if n := slices.Index(ends, campaign.State(h.State)) + 1; n > rank {
			rank, out.EndedAs, out.Message = n, reply.State(h.State), h.Message
		}
		if out.LastActivity == nil || out.LastActivity.AsTime().Before(h.ActiveAt) {
			out.LastActivity = timestamppb.New(h.ActiveAt)
		}
		out.Trials += h.Trials
		out.TrialsEnded += counts[h.ID].Ended
		out.TrialsNotNeeded += counts[h.ID].NotNeeded
		out.AttemptsFailed += counts[h.ID].AttemptsFailed
		out.Radios, out.Topologies = addTo(out.Radios, h.Radio), addTo(out.Topologies, h.Topology)
		out.SizesBytes = addTo(out.SizesBytes, h.SizeBytes)
		if h.Place != "" {
			out.Place = h.Place
		}
		for _, label := range h.TreatmentLabels {
			out.Treatments = addTo(out.Treatments, label)
		}
		out.Sweeps = out.Sweeps || h.Swept
	}
	if open {
		out.Ended, out.EndedAs, out.Message = nil, linktrialv1.RunState_RUN_STATE_UNSPECIFIED, ""
	}
	out.Sweeps = out.Sweeps || len(out.SizesBytes) > 1
	return out
}

func addTo[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// maxSummarized bounds how many campaigns and runs one request compares.
const maxSummarized = 100

// scopes are what ids name, each once.
func (s *Service) scopes(ctx context.Context, ids []string) (out []store.Scope, err error) {
	if len(ids) > maxSummarized {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%d campaigns and runs at once, at most %d can be compared", len(ids), maxSummarized))
	}
	for _, id := range ids {
		scope, err := s.cfg.Store.FindScope(ctx, id)
		if err != nil {
			return nil, err
		}
		out = addTo(out, scope)
	}
	return out, nil
}

// ownScopes are [Service.scopes] of what this orchestrator measured itself.
func (s *Service) ownScopes(ctx context.Context, ids []string) ([]store.Scope, error) {
	out, err := s.scopes(ctx, ids)
	for _, x := range out {
		if x.Imported {
			return nil, fmt.Errorf("campaign %s %w", x.Campaign, store.ErrImported)
		}
	}
	return out, err
}

// values reads what ids name, in their order, with the published values of
// their plans. What no id names is the newest campaign.
func (s *Service) values(ctx context.Context, ids []string) ([]store.Measured, error) {
	if len(ids) == 0 {
		ids = []string{""}
	}
	scopes, err := s.scopes(ctx, ids)
	if err != nil {
		return nil, err
	}
	all, err := s.cfg.Store.Measured(ctx, scopes)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if scopes[i].Imported { // it has those of its own plan
			continue
		}
		if err := s.addPublished(ctx, &all[i].Dataset); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Service) Summarize(ctx context.Context, req *connect.Request[linktrialv1.SummarizeRequest]) (*connect.Response[linktrialv1.SummarizeResponse], error) {
	all, err := s.values(ctx, req.Msg.Ids)
	if err != nil {
		return nil, s.answer(ctx, "summarize", err)
	}
	out := &linktrialv1.SummarizeResponse{}
	var analyses []*report.Analysis
	for i := range all {
		a := report.Analyse(&all[i].Dataset, report.Options{Reference: req.Msg.Reference})
		for k := range a.Tables {
			run, err := s.runOf(ctx, &all[i].Heads[k])
			if err != nil {
				return nil, s.answer(ctx, "summarize", err)
			}
			x := asSummary(&a.Tables[k], &a.Dataset.Runs[k])
			if x.Run = run; req.Msg.Points {
				x.Points = asPoints(&a.Tables[k], &a.Dataset.Runs[k])
			}
			out.Runs = append(out.Runs, x)
		}
		out.Notes = append(out.Notes, a.Dataset.Notes...)
		analyses = append(analyses, a)
	}
	out.Notes = append(out.Notes, report.OverRunsTexts(report.HoldRuns(analyses...))...)
	differences := report.HoldCampaigns(analyses...)
	out.DifferencesAlone = int32(differences.Alone)
	for i := range differences.Lines {
		out.Differences = append(out.Differences, asDifference(&differences.Lines[i]))
	}
	for _, l := range differences.Lacking {
		out.DifferencesLacking = append(out.DifferencesLacking, &linktrialv1.LackingTreatment{Where: l.Where, Label: l.Label, Campaign: l.Campaign})
	}
	return connect.NewResponse(out), nil
}

// runOf is a run as lists have it. What has ended needs no estimates.
func (s *Service) runOf(ctx context.Context, h *store.Head) (*linktrialv1.Run, error) {
	if h.EndedAt != nil {
		return reply.Run(h.Overview()), nil
	}
	o, err := s.cfg.Store.RunOverview(ctx, h.ID)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", h.ID, err)
	}
	return reply.Run(&o), nil
}
