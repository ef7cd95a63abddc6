package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// Flows may start on nodes that do not lead. The leading node gives each of
// those an [Order] before the trial, begins the trial on the radio when all
// have taken theirs, and tells them the moment at which it began; each starts
// its flows by its own clock, which must be the leading node's (nodes of one
// machine, as in a laboratory). What came of the flows goes back to the leading
// node, whose journal has the attempt; their samples stay in the journal of the
// node that carried them.

// Order is the part of another node in one attempt.
type FlowAssignment struct {
	Run       string `json:"run"`
	SheetHash string `json:"sheet_hash"`
	Trial     int    `json:"trial"`
	Attempt   int    `json:"attempt"`
}

// Carried is one flow as the node that carried it saw it.
type Carried struct {
	Result journal.FlowResult `json:"result"`
	Notes  []string           `json:"notes,omitempty"` // breaches of the driver contract that decided nothing
	Log    string             `json:"log,omitempty"`   // of a flow that did not succeed
	// Ready is when its driver was about to connect and Exited when that had
	// gone, by the clock that the nodes share; zero: not known.
	Ready  time.Time `json:"ready,omitzero"`
	Exited time.Time `json:"exited,omitzero"`
}

// Sources reaches the nodes that do not lead.
type Sources interface {
	// Prepare gives a node its order and returns when the node has taken it and
	// has its drivers ready. The context bounds it. Several nodes are given
	// theirs at once.
	Prepare(ctx context.Context, role radio.Role, o FlowAssignment) (Source, error)
}

// Source is a node that has taken an order.
type Source interface {
	// Carry tells the node when the trial began and returns what came of its
	// flows. The end of the context stops them; what came of them is
	// still returned, or an error within seconds.
	Carry(ctx context.Context, began time.Time) ([]Carried, error)
	// Close takes back an order that was not begun. It may be called twice,
	// and after Carry.
	Close() error
}

// Carrier is a node that carries flows for the leading one; see [Config.Orders].
type Carrier struct{ p *part }

// Check says whether an order can be carried out here.
func (c *Carrier) Check(o FlowAssignment) error {
	switch {
	case o.Run != c.p.RunID || o.SheetHash != c.p.SheetHash:
		return fmt.Errorf("the order is for run %s with sheet %s, this node is in run %s with sheet %s", o.Run, o.SheetHash, c.p.RunID, c.p.SheetHash)
	case o.Trial < 0 || o.Trial >= len(c.p.sheet.Trials) || o.Attempt < 1:
		return fmt.Errorf("the order is for attempt %d of trial %d, the sheet has %d trials", o.Attempt, o.Trial, len(c.p.sheet.Trials))
	case !slices.Contains(elsewhere(&c.p.sheet.Trials[o.Trial], ""), c.p.Role):
		return fmt.Errorf("no flow of trial %d starts on the %s", o.Trial, c.p.Role)
	}
	return nil
}

// Ready has the drivers of an order that passes Check prepared, where the
// runner can; what Carry does not take of them, release takes back.
func (c *Carrier) Ready(ctx context.Context, o FlowAssignment) (release func()) {
	return c.p.ready(ctx, c.flows(o))
}

// flows are this node's of an order.
func (c *Carrier) flows(o FlowAssignment) (out []*flow) {
	for i, spec := range c.p.sheet.Trials[o.Trial].Flows {
		if spec.From == c.p.Role {
			out = append(out, newFlow(c.p, o.Trial, o.Attempt, i))
		}
	}
	return out
}

// Carry carries this node's flows of an order that passes Check, and returns
// when their drivers have gone. The end of ctx stops them.
func (c *Carrier) Carry(ctx context.Context, o FlowAssignment, began time.Time) []Carried {
	flows := c.flows(o)
	runAll(ctx, flows, began)
	out := make([]Carried, len(flows))
	for i, f := range flows {
		out[i] = Carried{Result: f.result, Notes: f.notes, Ready: f.ready, Exited: f.exited}
		if f.result.Verdict != journal.Succeeded || len(f.notes) > 0 {
			out[i].Log = tail(f.log, MaxLog/len(flows))
		}
	}
	return out
}

// Settle makes durable what Carry noted. It is called when the leading node has
// its answer, and before the next order is taken: both nodes' disks work at the
// same time, and the next trial waits for one of them less.
func (c *Carrier) Settle() {
	if err := c.p.sync(); err != nil {
		c.p.Logger.Error("journal could not be synced", "error", err)
	}
}

// elsewhere lists the roles other than one on which flows of a trial start.
func elsewhere(t *runsheet.Trial, but radio.Role) []radio.Role {
	var out []radio.Role
	for _, f := range t.Flows {
		if f.From != but && !slices.Contains(out, f.From) {
			out = append(out, f.From)
		}
	}
	return out
}

// prepare gives every node its order, all at once, or none.
func (l *leader) prepare(ctx context.Context, trial *runsheet.Trial, attempt int) (map[radio.Role]Source, error) {
	out := map[radio.Role]Source{}
	if l.Sources == nil {
		return out, nil
	}
	o := FlowAssignment{Run: l.RunID, SheetHash: l.SheetHash, Trial: trial.Index, Attempt: attempt}
	ctx, cancel := context.WithTimeout(ctx, radioPatience)
	defer cancel()
	var mu sync.Mutex
	var failed error // the first; what follows may only be of its making
	var asking sync.WaitGroup
	for _, role := range elsewhere(trial, l.Role) {
		asking.Go(func() {
			s, err := l.Sources.Prepare(ctx, role, o)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				out[role] = s
			case failed == nil:
				failed = fmt.Errorf("flows start on the %s: %w", role, err)
				cancel()
			}
		})
	}
	asking.Wait()
	if failed != nil {
		release(out)
		return nil, failed
	}
	return out, nil
}

func release(sources map[radio.Role]Source) {
	for _, s := range sources {
		_ = s.Close() // a second close, or of a connection that is of no more use
	}
}

// carried has another node carry its flows of an attempt, and takes over what
// came of them.
func (l *leader) carried(ctx context.Context, s Source, began time.Time, flows []*flow) {
	limit := l.sheet.Limits.Connect + l.sheet.Limits.Transfer + radioPatience
	last := time.Duration(0)
	for _, f := range flows {
		last = max(last, f.spec.Start)
	}
	cctx, cancel := context.WithTimeout(ctx, last+limit)
	defer cancel()
	results, err := s.Carry(cctx, began)
	for _, c := range results {
		i := slices.IndexFunc(flows, func(f *flow) bool { return f.index == c.Result.Flow && f.id == c.Result.Transfer })
		_, known := severity[c.Result.Verdict]
		if i < 0 || flows[i].decided || !known || c.Result.Verdict == journal.Succeeded && c.Result.Result == nil {
			continue
		}
		f := flows[i]
		f.notes, f.log = c.Notes, c.Log
		f.ready, f.exited = began, l.Clock.Now()
		if !c.Ready.IsZero() {
			f.ready = c.Ready
		}
		if !c.Exited.IsZero() {
			f.exited = c.Exited
		}
		if c.Result.Verdict == journal.Aborted {
			// Why is for this node to say: the whole run's end, or that one's alone.
			f.result.LastSample = c.Result.LastSample
			if ctx.Err() != nil {
				f.abort(ctx)
			} else {
				f.decide(journal.Invalid, ReasonSourceDown, c.Result.Message)
			}
			continue
		}
		f.decided, f.result = true, c.Result
	}
	for _, f := range flows {
		if ctx.Err() != nil {
			f.abort(ctx)
		}
		message := "the node did not say what came of the flow"
		if err != nil {
			message = err.Error()
		}
		f.decide(journal.Invalid, ReasonSourceDown, message)
	}
}
