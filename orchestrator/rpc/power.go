package rpc

import (
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store"
)

// mostEarlierTrials bounds the stored runs that spreads are taken from, which the page of a
// plan asks for again and again: a fifth of the trials that the store keeps in memory.
const mostEarlierTrials = 20_000

func (s *operators) ExplainPower(ctx context.Context, req *connect.Request[linktrialv1.ExplainPowerRequest]) (*connect.Response[linktrialv1.ExplainPowerResponse], error) {
	m := req.Msg
	o := report.PowerOptions{Assumed: m.AssumedSpread, Effect: m.Effect}
	for _, x := range []struct {
		name  string
		share float64
	}{{"assumed_spread", o.Assumed}, {"effect", o.Effect}} {
		if x.share != 0 && !(x.share >= report.LeastShare && x.share <= report.MostShare) {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s is %g, expected 0 or %g to %g", x.name, x.share, report.LeastShare, report.MostShare))
		}
	}
	_, sheets, err := s.cfg.Launcher.Compile(ctx, m.File, m.Text, false)
	problems, err := asProblems(m.File, err)
	if err != nil {
		return nil, s.cfg.answer(ctx, "explain power", err)
	}
	out := &linktrialv1.ExplainPowerResponse{Problems: problems, Note: report.PowerNote}
	if !m.Assume && len(sheets) > 0 {
		if o.Earlier, err = s.earlierRuns(ctx, sheets); err != nil {
			return nil, s.cfg.answer(ctx, "explain power", err)
		}
	}
	lines, err := report.Power(ctx.Err, sheets, o)
	if err != nil {
		return nil, s.cfg.answer(ctx, "explain power", err)
	}
	for _, l := range lines {
		x := &linktrialv1.PowerLine{Text: l.Text}
		for _, run := range l.Runs {
			x.Runs = append(x.Runs, int32(run))
		}
		out.Lines = append(out.Lines, x)
	}
	return connect.NewResponse(out), nil
}

// earlierRuns are the newest completed runs that may have cells of the sheets; nil where
// there are none.
func (s *operators) earlierRuns(ctx context.Context, sheets []*runsheet.Sheet) (*report.Spreads, error) {
	asked := rpcdb.CompletedRunsLikeParams{MostTrials: mostEarlierTrials}
	for _, sh := range sheets {
		c := &sh.Cell
		asked.Radios, asked.Topologies = withOne(asked.Radios, c.Radio), withOne(asked.Topologies, c.Topology)
		asked.SizesBytes = withOne(asked.SizesBytes, c.SizeBytes)
	}
	found, err := rpcdb.New(s.cfg.Store).CompletedRunsLike(ctx, asked)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	scopes := make([]store.Scope, len(found))
	for i, r := range found {
		scopes[i] = store.Scope{Campaign: r.CampaignID, Run: r.ID}
	}
	measured, err := s.cfg.Store.Measured(ctx, scopes)
	if err != nil {
		return nil, err
	}
	var runs []*report.Run
	for i := range measured {
		for k := range measured[i].Dataset.Runs {
			runs = append(runs, &measured[i].Dataset.Runs[k])
		}
	}
	return report.SpreadsOf("this orchestrator", runs), nil
}

// withOne is a list that has x once.
func withOne[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}
