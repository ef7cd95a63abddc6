package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
)

// addPublished takes what others have measured from the campaign's plan. A
// plan that no longer reads, as its radios or drivers have changed since,
// costs the published values and a note, never the results.
func (s *Service) addPublished(ctx context.Context, ds *report.Dataset) error {
	c, err := s.cfg.Store.Campaign(ctx, ds.Campaign)
	if err != nil {
		return fmt.Errorf("plan of the results: %w", err)
	}
	if !bytes.Contains(c.PlanText, []byte("published:")) {
		return nil
	}
	p, err := plan.Parse(ctx.Err, c.PlanFile, c.PlanText, s.cfg.Catalog)
	if err != nil {
		var problems yamldoc.Problems
		why := err.Error()
		if errors.As(err, &problems) && len(problems) > 0 {
			why = problems[0].String()
		}
		ds.Notes = append(ds.Notes, "The plan's published values are left out, as it does not read with today's radios, topologies and drivers: "+why)
		return nil
	}
	for _, r := range p.Published {
		ds.Published = append(ds.Published, report.PublishedRow{Group: r.Group, Where: r.Where, Topology: r.Topology, Radio: r.Radio, Treatment: r.Treatment, N: r.N,
			AvgKBps: r.Average, MaxKBps: r.Maximum, MinKBps: r.Minimum, SDKBps: r.SD, Source: r.Source})
	}
	ds.PublishedValues = p.PublishedValues
	return nil
}
