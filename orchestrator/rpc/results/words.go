package results

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
)

// GetWords is of [linktrialv1connect.ReportServiceHandler], as is SetWords.
func (s *Service) GetWords(ctx context.Context, req *connect.Request[linktrialv1.GetWordsRequest]) (*connect.Response[linktrialv1.GetWordsResponse], error) {
	scope, err := s.wordsScope(ctx, req.Msg.CampaignId)
	if err != nil {
		return nil, s.answer(ctx, "get words", err)
	}
	w, version, err := s.cfg.Store.Words(ctx, scope)
	if err != nil {
		return nil, s.answer(ctx, "get words", err)
	}
	out := &linktrialv1.GetWordsResponse{CampaignId: scope.Campaign, Imported: scope.Imported,
		MaxLine: report.MaxWordsLine, MaxSummary: report.MaxWordsSummary, MaxRemark: report.MaxWordsRemark}
	for _, c := range report.Chapters {
		out.Chapters = append(out.Chapters, &linktrialv1.ReportChapter{Key: c.Key, Title: c.Title})
	}
	if version > 0 || !w.Empty() {
		out.Words = asReportWords(&w, version)
	}
	return connect.NewResponse(out), nil
}

func (s *Service) SetWords(ctx context.Context, req *connect.Request[linktrialv1.SetWordsRequest]) (*connect.Response[linktrialv1.SetWordsResponse], error) {
	m := req.Msg
	scope, err := s.wordsScope(ctx, m.CampaignId)
	if err != nil {
		return nil, s.answer(ctx, "set words", err)
	}
	w := report.Words{Campaign: scope.Campaign, Title: m.Title, Author: m.Author, Summary: m.Summary, Remarks: m.Remarks, By: m.By}
	w.Tidy()
	switch err := w.Check(); {
	case scope.Imported:
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("campaign %s was imported: the words of its report are those of the orchestrator that measured it, and stay as they are", scope.Campaign))
	case err != nil:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("words of campaign %s: %w", scope.Campaign, err))
	case m.Version < 0:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("version %d of the words of campaign %s: expected 0 or more", m.Version, scope.Campaign))
	}
	stored, version, err := s.cfg.Store.SetWords(ctx, w, int(m.Version))
	if errors.Is(err, store.ErrWordsChanged) {
		return nil, connect.NewError(connect.CodeAborted, err)
	}
	if err != nil {
		return nil, s.answer(ctx, "set words", err)
	}
	s.cfg.Logger.Info("words of a report are saved", "campaign", scope.Campaign, "version", version, "by", w.By)
	return connect.NewResponse(&linktrialv1.SetWordsResponse{Words: asReportWords(&stored, version)}), nil
}

// wordsScope is the campaign that an identity or a unique prefix names; words are of no single
// run.
func (s *Service) wordsScope(ctx context.Context, campaign string) (store.Scope, error) {
	if campaign == "" {
		return store.Scope{}, connect.NewError(connect.CodeInvalidArgument, errors.New("words of a report: expected the identity of a campaign, found none"))
	}
	scope, err := s.cfg.Store.FindScope(ctx, campaign)
	if err == nil && scope.Run != "" {
		err = connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s is a run: words are of the whole campaign %s", scope.Run, scope.Campaign))
	}
	return scope, err
}

func asReportWords(w *report.Words, version int) *linktrialv1.ReportWords {
	out := &linktrialv1.ReportWords{Version: int32(version), Title: w.Title, Author: w.Author, Summary: w.Summary, Remarks: w.Remarks, By: w.By}
	if !w.At.IsZero() {
		out.At = timestamppb.New(w.At)
	}
	return out
}
