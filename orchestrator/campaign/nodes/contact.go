package nodes

import (
	"context"
	"fmt"
	"time"

	"linktrial/orchestrator/campaign/nodes/nodesdb"
)

// loss is a time without contact with a node, from when people are told of it until
// the node is back.
type loss struct {
	run         string
	at          time.Time // last contact before
	incarnation string    // of the agent then
}

// reviewContactsLocked adds what has changed of the contact with nodes in runs to what
// is to be stored.
func (r *Registry) reviewContactsLocked(now time.Time) {
	for run, names := range r.active {
		for _, name := range names {
			n := r.nodes[name]
			if n == nil {
				continue
			}
			last := n.lastContact(now)
			switch {
			case n.lost != nil && last.After(n.lost.at):
				r.losses = append(r.losses, nodesdb.PutContactLossParams{RunID: n.lost.run, Node: name, LostAt: n.lost.at, BackAt: &last, Restarted: n.Incarnation != n.lost.incarnation})
				n.lost = nil
			case n.lost == nil && r.isMissingLocked(n, now):
				n.lost = &loss{run, last, n.Incarnation}
				r.losses = append(r.losses, nodesdb.PutContactLossParams{RunID: run, Node: name, LostAt: last})
			case n.lost != nil && n.lost.run != run: // that one has ended without the node
				n.lost = nil
			}
		}
	}
}

// restartedLocked notes that the agent of a node was started again during a run, where
// that took so little time that nobody missed it.
func (r *Registry) restartedLocked(old *node, now time.Time) {
	if run := r.runOf[old.Name]; run != "" && old.lost == nil && !old.Virtual {
		r.losses = append(r.losses, nodesdb.PutContactLossParams{RunID: run, Node: old.Name, LostAt: old.lastContact(now), BackAt: &now, Restarted: true})
	}
}

// storeLosses stores what has changed of the contact with nodes. What cannot be stored
// is tried again with the next call.
func (r *Registry) storeLosses(ctx context.Context) error {
	for {
		r.mu.Lock()
		if len(r.losses) == 0 {
			r.mu.Unlock()
			return nil
		}
		first := r.losses[0]
		r.mu.Unlock()
		if err := r.db.PutContactLoss(ctx, first); err != nil {
			return fmt.Errorf("store the loss of contact with %s: %w", first.Node, err)
		}
		r.mu.Lock()
		r.losses = r.losses[1:]
		r.mu.Unlock()
		r.cfg.ContactChanged(first.RunID)
	}
}
