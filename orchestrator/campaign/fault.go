package campaign

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"linktrial/orchestrator/campaign/campaigndb"
)

// maxFault bounds the text of a fault, in bytes: it is shown in one line of a table.
const maxFault = 1200

// Fault stops a run because a node that takes part in it reports that it cannot go
// on: its journal or its sheet is damaged, or its journal is refused. Without that
// the run would wait for the node for ever. A node reports a fault with every poll;
// only the first report has an effect.
func (e *Engine) Fault(ctx context.Context, node, run, text string) error {
	// Memory first: the store is not asked with every poll.
	if n, ok := e.Nodes.Get(node); !ok || n.Run != run {
		return nil
	}
	key := node + "\x00" + run
	if _, known := e.faults.LoadOrStore(key, true); known {
		return nil
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxFault {
		cut := maxFault
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	reason := fmt.Sprintf("node %s: %s", node, text)
	n, err := e.db.AbortRun(ctx, campaigndb.AbortRunParams{ID: run, Reason: reason, Fault: true})
	if err != nil {
		e.faults.Delete(key)
		return fmt.Errorf("fault of node %s in run %s: %w", node, run, err)
	}
	if n > 0 {
		e.cfg.Logger.Error("a node cannot go on with a run, which is stopped", "run", run, "node", node, "reason", text)
		e.tablesChanged(run)
	}
	return nil
}

// blocker is an earlier run that uses nodes of another one.
type blocker struct {
	run   *run
	nodes []string
}

// text says what a run waits for and how to end it, for people.
func (b *blocker) text() string {
	var away []string
	for _, p := range b.run.participants {
		if !p.connected && p.ended == "" {
			away = append(away, p.node)
		}
	}
	contact := ""
	if len(away) > 0 {
		contact = fmt.Sprintf(" (no contact with %s)", strings.Join(away, " and "))
	}
	return fmt.Sprintf("the end of run %s, which is %s and uses %s%s; to end it: linktrial run abort %s",
		b.run.id, b.run.state, strings.Join(b.nodes, " and "), contact, b.run.id)
}
