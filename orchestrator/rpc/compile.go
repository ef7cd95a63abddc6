package rpc

import (
	"context"
	"errors"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

// compile reads a plan and compiles it for the nodes that are connected now: a
// treatment that they lack is listed as missing, and the rest is run. Only
// where that leaves nothing to run is it a problem.
func (c *Config) compile(ctx context.Context, file string, text []byte, virtual bool) (*plan.Plan, []*runsheet.Sheet, []*linktrialv1.Problem, error) {
	p, err := plan.Parse(ctx.Err, file, text, c.Catalog)
	var problems yamldoc.Problems
	if errors.As(err, &problems) {
		return nil, nil, asProblems(problems), nil
	} else if err != nil {
		return nil, nil, nil, err
	}
	sheets, err := sheet.Compile(ctx.Err, p)
	if err == nil {
		lacking := c.Engine.Unavailable(sheets, virtual)
		if why := p.MarkUnavailable(lacking); len(why) > 0 {
			if p.Trials() == 0 {
				var out []*linktrialv1.Problem
				for _, w := range why {
					out = append(out, &linktrialv1.Problem{File: file, Message: w})
				}
				return nil, nil, out, nil
			}
			sheets, err = sheet.Compile(ctx.Err, p)
		}
	}
	if errors.As(err, &problems) {
		// What a plan asks for and no sheet can hold is the plan's problem too.
		return nil, nil, asProblems(problems), nil
	} else if err != nil {
		return nil, nil, nil, err
	}
	untold, err := c.Trust.Name(ctx, sheets)
	if err != nil || untold != nil {
		var out []*linktrialv1.Problem
		for _, why := range untold {
			out = append(out, &linktrialv1.Problem{File: file, Message: why})
		}
		return nil, nil, out, err
	}
	return p, sheets, nil, nil
}

// cells are a plan's runs with the nodes that would run them now.
func (c *Config) cells(sheets []*runsheet.Sheet) []fleet.Cell {
	out := make([]fleet.Cell, len(sheets))
	for i, s := range sheets {
		out[i].Sheet = s
		out[i].Nodes, out[i].Missing = c.Engine.NodesFor(s)
	}
	return out
}

// caveats are what is said with every result of a campaign that began without a fresh
// preflight, for these reasons.
func caveats(without []string) (out []string) {
	for _, why := range without {
		out = append(out, "Started without a preflight of the treatments. "+why+" Failures may be the network's and not the protocols'.")
	}
	return out
}
