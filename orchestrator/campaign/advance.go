package campaign

import (
	"context"
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/runcommand"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/store"
)

// openRuns is what the store has on open runs at one moment.
type openRuns struct {
	runs         []campaigndb.OpenRunsRow
	participants map[string][]participant                 // by run
	listening    map[string]map[journal.ListenerName]bool // by run
	commands     map[string][]nodes.Command               // by run
	unfinished   []campaigndb.UnfinishedPartsRow
}

// unfinishedFor is how long after a run's end the orchestrator tells a node that was
// away to end its part.
const unfinishedFor = 24 * time.Hour

// advance takes every step that is due, until there is none, and then tells
// each node what to do.
func (e *Engine) advance(ctx context.Context) error {
	for {
		open, err := e.readOpenRuns(ctx)
		if err != nil {
			return err
		}
		runs, err := e.derive(ctx, open)
		if err != nil {
			return err
		}
		moved := false
		now := e.cfg.Now()
		for _, r := range runs {
			done, err := e.carryOut(ctx, r, next(r, now, e.cfg.Waits))
			if err != nil {
				return fmt.Errorf("run %s: %w", r.id, err)
			}
			moved = moved || done
		}
		if moved {
			continue
		}
		if err := e.publish(ctx, open, runs); err != nil {
			return err
		}
		for _, r := range runs {
			if r.state != Running && r.state != Collecting {
				continue
			}
			if err := e.attemptsEnded(ctx, r, false); err != nil {
				return err
			}
		}
		return nil
	}
}

func (e *Engine) readOpenRuns(ctx context.Context) (*openRuns, error) {
	out := &openRuns{participants: map[string][]participant{}, listening: map[string]map[journal.ListenerName]bool{}, commands: map[string][]nodes.Command{}}
	err := e.cfg.Store.Snapshot(ctx, func(tx store.Conn) error {
		q := campaigndb.New(tx)
		var err error
		if out.runs, err = q.OpenRuns(ctx); err != nil {
			return err
		}
		if err := out.readParticipants(ctx, q); err != nil {
			return err
		}
		listeners, err := q.OpenRunListeners(ctx)
		if err != nil {
			return err
		}
		for _, l := range listeners {
			if out.listening[l.RunID] == nil {
				out.listening[l.RunID] = map[journal.ListenerName]bool{}
			}
			out.listening[l.RunID][journal.ListenerName{Treatment: l.Treatment, At: radio.Role(l.AtRole)}] = true
		}
		commands, err := q.OpenRunCommands(ctx, runcommand.Led())
		if err != nil {
			return err
		}
		for _, c := range commands {
			x := nodes.Command{ID: c.ID, Kind: c.Kind, By: c.GivenBy}
			if c.Trial != nil {
				x.Trial = int(*c.Trial)
			}
			out.commands[c.RunID] = append(out.commands[c.RunID], x)
		}
		out.unfinished, err = q.UnfinishedParts(ctx, e.cfg.Now().Add(-unfinishedFor))
		return err
	})
	return out, err
}

func (o *openRuns) readParticipants(ctx context.Context, q *campaigndb.Queries) error {
	rows, err := q.OpenRunNodes(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		p := participant{role: radio.Role(row.Role), node: row.Node, reason: row.EndReason, provenance: row.HasProvenance, refused: row.Refused}
		if row.Ended != nil {
			p.ended = journal.RunEnd(*row.Ended)
		}
		if row.DeliveredAt != nil {
			p.deliveredAt = *row.DeliveredAt
		}
		o.participants[row.RunID] = append(o.participants[row.RunID], p)
	}
	return nil
}

// derive adds to what the store has what else the next step of each run depends
// on: the sheets, the connections of the nodes, and the runs before it.
func (e *Engine) derive(ctx context.Context, open *openRuns) ([]*run, error) {
	occupied := map[string]*run{} // nodes of earlier runs that have not ended: no run overtakes another
	var before activeTransmissions
	var out []*run
	for i := range open.runs {
		row := &open.runs[i]
		sheet, err := e.sheetOf(ctx, row.ID, row.SheetHash)
		if err != nil {
			return nil, err
		}
		r := &run{id: row.ID, campaign: row.CampaignID, state: State(row.State), sheetInfo: sheet, attempted: row.Attempted, confirmMove: row.ConfirmMove && !row.Continued,
			abort: abort{reason: row.AbortReason, fault: row.AbortFault}, participants: open.participants[row.ID], listening: open.listening[row.ID]}
		if row.AbortAt != nil {
			r.abort.at = *row.AbortAt
		}
		if row.CollectingAt != nil {
			r.collectingAt = *row.CollectingAt
		}
		for k := range r.participants {
			p := &r.participants[k]
			n, _ := e.Nodes.Get(p.node)
			p.connected = n.Connected
			r.blockedBy(occupied[p.node], p.node)
		}
		for _, p := range r.participants {
			if occupied[p.node] == nil {
				occupied[p.node] = r
			}
		}
		var named bool
		if r.realRadios, named = e.realRadiosOf(r.participants); !named {
			r.radio = nil // the sheet's profile may be another radio's
		}
		if r.conflict = before.conflict(r); r.conflict != "" {
			r.blocked = true
		}
		before = before.add(r)
		out = append(out, r)
	}
	return out, nil
}

// blockedBy records that an earlier run uses a node; nil: none does. Only runs of
// other campaigns become blockers, which are shown as what the run waits for: the runs
// of one campaign always follow one another.
func (r *run) blockedBy(earlier *run, node string) {
	if earlier == nil {
		return
	}
	r.blocked = true
	if earlier.campaign == r.campaign {
		return
	}
	for _, b := range r.blockers {
		if b.run == earlier {
			b.nodes = append(b.nodes, node)
			return
		}
	}
	r.blockers = append(r.blockers, &blocker{earlier, []string{node}})
}

// carryOut takes a step. False: there was none to take, or the run's state had
// changed meanwhile.
func (e *Engine) carryOut(ctx context.Context, r *run, s step) (bool, error) {
	var n int64
	var err error
	to := s.state
	switch s.action {
	case none:
		return false, nil
	case awaitMove:
		n, err = e.db.SetWaiting(ctx, r.id)
		to = Waiting
	case prepare:
		n, err = e.db.SetPreparing(ctx, r.id)
		to = Preparing
	case start:
		n, err = e.db.SetRunning(ctx, r.id)
		to = Running
	case collect:
		n, err = e.db.SetCollecting(ctx, r.id)
		to = Collecting
	case requestAbort:
		n, err = e.db.AbortRun(ctx, campaigndb.AbortRunParams{ID: r.id, Reason: s.message, Fault: true})
		to = r.state
	case end:
		if r.attempted {
			if err := e.attemptsEnded(ctx, r, true); err != nil {
				return false, err
			}
		}
		n, err = e.db.SetEnded(ctx, campaigndb.SetEndedParams{ID: r.id, State: string(s.state), Message: s.message})
	}
	if err != nil || n == 0 {
		return false, err
	}
	e.cfg.Logger.Info("run moves on", "run", r.id, "from", r.state, "to", to, "message", s.message)
	if s.action == end {
		e.Live.Ended(r.id)
	} else {
		e.Live.TablesChanged(r.id)
	}
	return true, nil
}
