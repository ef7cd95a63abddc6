package campaign

import (
	"context"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
)

// publish tells each node what to do, and watchers what runs wait for.
func (e *Engine) publish(ctx context.Context, open *openRuns, runs []*run) error {
	work := nodes.Work{Assignments: map[string][]nodes.Assignment{}, RunOf: map[string]string{}, Active: map[string][]string{}, Silent: map[string]bool{}}
	sheets := map[string]*sheetInfo{}
	waiting := map[string][]string{}
	for _, r := range runs {
		sheets[r.id] = r.sheetInfo
		waiting[r.id] = waitingFor(r)
		if r.state.assigned() {
			e.assign(&work, r, open.commands[r.id])
		}
	}
	if err := e.assignUnfinished(ctx, &work, open, sheets); err != nil {
		return err
	}
	e.sheets = sheets // those of runs that have ended are dropped
	e.open.Store(int64(len(runs)))
	e.Nodes.Assign(work)
	e.Live.SetOpen(waiting)
	return nil
}

// assign adds an open run to the work of its nodes.
func (e *Engine) assign(work *nodes.Work, r *run, commands []nodes.Command) {
	a := r.assignment(r.id)
	a.DesiredState, a.Reason = desiredFor(r)
	a.Addresses = e.addresses(r.participants)
	for _, p := range r.participants {
		work.RunOf[p.node] = r.id
		a.Commands, a.Role = nil, p.role
		if p.role == leader {
			a.Commands = commands
		}
		work.Assignments[p.node] = append(work.Assignments[p.node], a)
		switch {
		case r.inBand:
			work.Silent[p.node] = true
		case p.ended == "":
			work.Active[r.id] = append(work.Active[r.id], p.node)
		}
	}
}

// assignUnfinished has nodes finish their part in runs that have ended without
// them, and adds the sheets of those runs.
func (e *Engine) assignUnfinished(ctx context.Context, work *nodes.Work, open *openRuns, sheets map[string]*sheetInfo) error {
	for _, u := range open.unfinished {
		// An agent that lost its memory must not begin a run only to end it.
		if !u.UpSince && !e.Nodes.HasDelivered(u.Node, u.RunID) {
			continue
		}
		sheet, err := e.sheetOf(ctx, u.RunID, u.SheetHash)
		if err != nil {
			return err
		}
		sheets[u.RunID] = sheet
		a := sheet.assignment(u.RunID)
		a.DesiredState = nodes.DesireFinish
		if State(u.State) != Completed {
			a.DesiredState, a.Reason = nodes.DesireAbort, u.Message
		}
		work.Assignments[u.Node] = append(work.Assignments[u.Node], a)
	}
	return nil
}

func (s *sheetInfo) assignment(run string) nodes.Assignment {
	return nodes.Assignment{Run: run, SheetHash: s.hash, Sheet: s.encoded, Signature: s.signature, Radio: s.radio}
}

// addresses returns those of a run's nodes on the radio network, as far as they are known.
func (e *Engine) addresses(all []participant) map[radio.Role]string {
	out := map[radio.Role]string{}
	for _, p := range all {
		if n, _ := e.Nodes.Get(p.node); n.RadioAddress != "" {
			out[p.role] = n.RadioAddress
		}
	}
	return out
}

func desiredFor(r *run) (nodes.DesiredState, string) {
	if r.abort.reason != nil && r.participant(leader).ended != journal.RunCompleted {
		return nodes.DesireAbort, *r.abort.reason
	}
	switch r.state {
	case Preparing:
		return nodes.DesirePrepare, ""
	case Running:
		return nodes.DesireRun, ""
	}
	return nodes.DesireFinish, ""
}
