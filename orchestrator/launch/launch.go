package launch

import (
	"cmp"
	"context"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/sheet"
)

// Launcher compiles and starts plans. Any number of goroutines may use it.
type Launcher struct {
	Catalog plan.Catalog
	Engine  *campaign.Engine
	Fleet   *fleet.Fleet
	Trust   *signing.Trust
}

// Request is a plan that is to be started.
type Request struct {
	File    string
	Text    []byte
	Name    string // of the campaign; empty: the plan's
	Virtual bool   // on the nodes of the virtual-time lab
	Moves   campaign.Moves
	// Preflight: the plan starts only after a fresh preflight of its treatments.
	Preflight bool
}

// Started is a campaign that was queued.
type Started struct {
	Campaign string
	Runs     []string
	Unproven Unproven // what it lacks of a fresh preflight
}

// Missing reports what nodes lack, or what the orchestrator has no driver for, in
// sentences for people. The same plan can start later.
type Missing []string

func (m Missing) Error() string { return strings.Join(m, "\n") }

// Unproven reports what a plan lacks of a fresh preflight, in sentences for people.
type Unproven []string

func (u Unproven) Error() string { return strings.Join(u, "\n") }

// Compile reads a plan and compiles it for the nodes that are connected now: a
// treatment that they lack is listed as missing, and the rest is run. Only where
// that leaves nothing to run does it return [Missing].
func (l *Launcher) Compile(ctx context.Context, file string, text []byte, virtual bool) (*plan.Plan, []*runsheet.Sheet, error) {
	p, err := plan.Parse(ctx.Err, file, text, l.Catalog)
	if err != nil {
		return nil, nil, err
	}
	sheets, err := sheet.Compile(ctx.Err, p)
	if err != nil {
		return nil, nil, err
	}
	if why := p.MarkUnavailable(l.Engine.Unavailable(sheets, virtual)); len(why) > 0 {
		if p.Trials() == 0 {
			return nil, nil, Missing(why)
		}
		if sheets, err = sheet.Compile(ctx.Err, p); err != nil {
			return nil, nil, err
		}
	}
	lacking, err := l.Trust.AddDigests(ctx, sheets)
	if err == nil && lacking != nil {
		err = Missing(lacking)
	}
	if err != nil {
		return nil, nil, err
	}
	return p, sheets, nil
}

// Cells are a plan's runs with the nodes that would run them now.
func (l *Launcher) Cells(sheets []*runsheet.Sheet) []fleet.Cell {
	out := make([]fleet.Cell, len(sheets))
	for i, s := range sheets {
		out[i].Sheet = s
		out[i].Nodes, out[i].Missing = l.Engine.NodesFor(s)
	}
	return out
}

// Start starts a plan as one campaign. Where it returns an error, nothing has started;
// beside [Missing], what it returns may have [Started.Unproven].
func (l *Launcher) Start(ctx context.Context, r Request) (Started, error) {
	p, sheets, err := l.Compile(ctx, r.File, r.Text, r.Virtual)
	if err != nil {
		return Started{}, err
	}
	unproven, err := l.Fleet.Unproven(ctx, l.Cells(sheets))
	if err != nil {
		return Started{}, err
	}
	if len(unproven) > 0 && r.Preflight {
		return Started{}, Unproven(unproven)
	}
	c := campaign.Plan{Caveats: caveats(unproven), Name: cmp.Or(r.Name, p.Name), Plan: p.Name, File: r.File, Text: r.Text, Hash: p.Hash, Sheets: sheets, Virtual: r.Virtual, Moves: r.Moves}
	for _, s := range sheets {
		c.Estimates = append(c.Estimates, slots(s))
	}
	id, runs, missing, err := l.Engine.Queue(ctx, c)
	if err == nil && missing != nil {
		err = Missing(missing)
	}
	return Started{Campaign: id, Runs: runs, Unproven: unproven}, err
}

// caveats are what is said with every result of a campaign that began without a fresh
// preflight, for these reasons.
func caveats(unproven []string) (out []string) {
	for _, why := range unproven {
		out = append(out, "Started without a preflight of the treatments. "+why+" Failures may be the network's and not the protocols'.")
	}
	return out
}

// slots are how long each trial keeps the run, with what lies between two trials.
func slots(s *runsheet.Sheet) []time.Duration {
	out := sheet.Estimate(s)
	for i := range out {
		out[i] += sheet.DeadTime + s.Limits.Pause
	}
	return out
}
