package executor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// describeStall says when an agent did not run.
func describeStall(role radio.Role, s *journal.AgentStopped) string {
	const form = "15:04:05.0"
	return fmt.Sprintf("the agent of the %s did not run for %.1f s, from %s to %s UTC", role, s.To.Sub(s.From).Seconds(), s.From.UTC().Format(form), s.To.UTC().Format(form))
}

// stallSince is the first stall of this node's agent that ended after a moment; more is
// closed when there are more.
func (n *node) stallSince(at time.Time) (o Outage, more <-chan struct{}) {
	if n.Stalls == nil {
		return Outage{}, nil
	}
	all, more := n.Stalls.Since(at)
	if len(all) > 0 {
		o = Outage{Text: describeStall(n.Role, &all[0]), Stopped: true}
	}
	return o, more
}

// recordStalls records when this node's agent did not run, from now on until ctx ends;
// wait returns when all of them are in the journal.
func (n *node) recordStalls(ctx context.Context) (wait func()) {
	if n.Stalls == nil {
		return func() {}
	}
	at := n.Clock.Now()
	var recording sync.WaitGroup
	recording.Go(func() {
		for {
			all, more := n.Stalls.Since(at)
			for _, s := range all {
				n.log.Warn("the agent did not run", "from", s.From, "to", s.To)
				n.record.append(journal.TypeAgentStopped, s)
				at = s.To
			}
			if len(all) > 0 {
				n.record.syncNow()
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	})
	return recording.Wait
}
