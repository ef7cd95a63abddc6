package executor

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// maxReported is how much of a listener's message another node is told, in bytes.
const maxReported = 300

// answerPaths answers the leading node's exchanges until ctx ends; the returned function
// waits for that end.
func (n *node) answerPaths(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	if n.AnswerPaths != nil {
		running.Go(func() { n.AnswerPaths(ctx, n.ownAddress(), n.report) })
	}
	return running.Wait
}

// report is what this node knows of itself.
func (n *node) report(q PathQuestion) NodeState {
	now := n.Clock.Now()
	since := now.Add(-max(0, q.Since))
	s := NodeState{Since: q.Since}
	o, _ := n.interfaceSince(since)
	if o.Text == "" {
		o, _ = n.stallSince(since)
	}
	s.Fault = o.Text
	for _, x := range n.sheet.Listeners(n.Role) {
		state := n.listeners.get(nameOf(&x))
		port := cmp.Or(state.port, x.Port())
		moved := port != x.Port()
		if !moved && !slices.Contains(q.Treatments, x.Treatment.Name) {
			continue
		}
		l := ListenerReport{Treatment: x.Treatment.Name, At: x.At(), Port: port, Up: state.up, Own: state.own, Crashed: state.own && state.crashed, Code: state.code}
		if state.up {
			l.UpFor = now.Sub(state.since)
		} else {
			l.Message = cut(state.failure, maxReported)
		}
		if state.outages > 0 && !state.outageAt.Before(since) {
			l.Outage = cut(state.outage, maxReported)
		}
		s.Listeners = append(s.Listeners, l)
	}
	return s
}
