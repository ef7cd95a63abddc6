package measuring

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/measure"
)

func (s *Service) ProposeComparison(ctx context.Context, req *connect.Request[linktrialv1.ProposeComparisonRequest]) (*connect.Response[linktrialv1.ProposeComparisonResponse], error) {
	budget, err := budgetOf(req.Msg.BudgetSeconds)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	protocols, err := measure.ProtocolsOf(req.Msg.Protocols)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	m, err := s.complete(ctx, req.Msg.CampaignId)
	if err != nil {
		return nil, s.answer(ctx, "propose comparison", err)
	}
	c := measure.Comparison{Campaign: m.campaign, Radio: m.tables[0].Radio, Topology: m.tables[0].Topology, Budget: budget}
	for _, p := range protocols {
		if s.cfg.Catalog.Manifest(p.Driver) == nil {
			c.LeftOut = append(c.LeftOut, fmt.Sprintf("Without %s: the orchestrator has no driver %q.", p.Label, p.Driver))
			continue
		}
		c.Protocols = append(c.Protocols, p)
	}
	p, err := s.propose(ctx, &m.values, c)
	if err != nil {
		return nil, s.answer(ctx, "propose comparison", err)
	}
	out := &linktrialv1.ProposeComparisonResponse{CampaignId: m.campaign, Plan: p.Name, Text: p.Text, BudgetSeconds: budget.Seconds(), EstimatedSeconds: p.Estimated.Seconds(), BoundSeconds: p.Bound.Seconds(),
		SizeBytes: p.SizeBytes, Iterations: int32(p.Iterations), Labels: p.Labels, Decides: p.Decides, DecisiveBudgetSeconds: p.DecisiveBudget.Seconds(), Sentences: p.Sentences}
	if !math.IsInf(p.Smallest, 0) {
		out.SmallestDifference = &p.Smallest
	}
	return connect.NewResponse(out), nil
}

// budgetOf is the time that a request names; none: the usual one.
func budgetOf(seconds float64) (time.Duration, error) {
	if seconds == 0 {
		return measure.DefaultBudget, nil
	}
	least, most := measure.LeastBudget.Seconds(), measure.MostBudget.Seconds()
	if !(seconds >= least && seconds <= most) {
		return 0, fmt.Errorf("budget_seconds is %g, expected 0 or %g to %g", seconds, least, most)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// complete reads a measurement that a comparison can be made from; an empty identity: the
// newest one.
func (s *Service) complete(ctx context.Context, id string) (*measured, error) {
	if id == "" {
		newest, err := s.newestComplete(ctx)
		if err != nil {
			return nil, err
		}
		id = newest
	}
	m, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case !m.ended:
		return nil, refuse("the measurement %s has not ended", m.campaign)
	case m.part == measure.Search:
		return nil, refuse("campaign %s is the search for the capacity alone: measure the rest, or the link anew ('linktrial measure')", m.campaign)
	case m.part == measure.Track:
		return nil, refuse("campaign %s is one of a series: a comparison is made from the measurement %s before it", m.campaign, m.search)
	case len(m.tables) == 0:
		return nil, refuse("the measurement %s has no results", m.campaign)
	}
	return m, nil
}

// newestComplete is the newest measurement that has ended and has all parts.
func (s *Service) newestComplete(ctx context.Context) (string, error) {
	all, err := s.list(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if part, _ := measure.PartOf(m.Part); m.Ended && (part == measure.Whole || part == measure.Rest) {
			return m.CampaignId, nil
		}
	}
	return "", connect.NewError(connect.CodeNotFound, errNone)
}

// propose composes a comparison of the protocols that the connected nodes can run. Where no
// nodes are connected, nothing is known of them, and the plan has all.
func (s *Service) propose(ctx context.Context, v *measure.Values, c measure.Comparison) (measure.Proposal, error) {
	p, err := measure.Propose(v, c)
	if err != nil {
		return p, refuse("%w", err)
	}
	_, sheets, err := s.cfg.Launcher.Compile(ctx, p.Name+".yaml", []byte(p.Text), false)
	if missing := (launch.Missing)(nil); errors.As(err, &missing) {
		p.Sentences = append(p.Sentences, "It cannot start now: "+strings.Join(missing, " "))
		return p, nil
	}
	if problems := (yamldoc.Problems)(nil); errors.As(err, &problems) {
		return p, refuse("the comparison is no plan that can be started: %w", err)
	}
	if err != nil {
		return p, err
	}
	runnable := withoutMissing(c, sheets[0].Treatments)
	if len(runnable.Protocols) == len(c.Protocols) {
		return p, nil
	}
	if p, err = measure.Propose(v, runnable); err != nil { // with other iterations: more fit
		return p, refuse("%w", err)
	}
	return p, nil
}

// withoutMissing is the comparison of those protocols that are not missing among the
// treatments.
func withoutMissing(c measure.Comparison, treatments []runsheet.Treatment) measure.Comparison {
	why := map[string]string{}
	for _, t := range treatments {
		why[t.Name] = t.Missing
	}
	kept := c
	kept.Protocols, kept.LeftOut = nil, slices.Clone(c.LeftOut)
	for _, x := range c.Protocols {
		if reason := why[x.Name]; reason != "" {
			kept.LeftOut = append(kept.LeftOut, fmt.Sprintf("Without %s: %s.", x.Label, strings.TrimSuffix(reason, ".")))
			continue
		}
		kept.Protocols = append(kept.Protocols, x)
	}
	return kept
}
