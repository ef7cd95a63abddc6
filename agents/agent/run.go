package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/internal/radio"
)

// run is this node's part in one run.
type run struct {
	node    *node
	id      string
	hash    string // of the sheet
	dir     string
	log     *slog.Logger
	cancel  context.CancelCauseFunc // of the execution
	mayLead chan struct{}           // closed when the client may lead
	ended   chan struct{}           // closed when the execution is over
	err     error                   // set before the goroutine ends

	mu            sync.Mutex
	note          note
	leading       bool      // mayLead is closed
	unlistedSince time.Time // since when the orchestrator no longer lists the run
	unlisted      int       // answers in a row that did not list it

	commands   *commandQueue
	delivery   *session.Delivery       // nil without an orchestrator
	assignment *linktrialv1.Assignment // verified, from when the sheet was read; nil without an orchestrator
}

// setDesired notes the state that the orchestrator wants and acts on it. A note
// that cannot be written is tried again with the next answer.
func (r *run) setDesired(d DesiredState, reason string) {
	r.mu.Lock()
	if rank[d] <= rank[r.note.Desired] {
		r.mu.Unlock()
		return
	}
	n := r.note
	n.Desired, n.Reason = d, reason
	if err := n.write(r.dir); err != nil {
		r.mu.Unlock()
		r.log.Error("desired state could not be noted", "desired_state", string(d), "error", err)
		return
	}
	r.note = n
	r.mu.Unlock()
	r.log.Info("run has a new desired state", "desired_state", string(d), "reason", reason)
	r.applyDesired()
}

func (r *run) applyDesired() {
	r.mu.Lock()
	desired, reason, role := r.note.Desired, r.note.Reason, r.node.cfg.Role
	if desired == desiredRun && !r.leading {
		r.leading = true
		close(r.mayLead)
	}
	leading := r.leading
	r.mu.Unlock()
	switch {
	case desired == desiredAbort:
		if reason == "" {
			reason = "by command"
		}
		r.cancel(&executor.AbortError{By: "orchestrator", Reason: reason})
	case desired == desiredFinish && role != radio.RoleClient:
		r.cancel(executor.ErrFinish)
	case desired == desiredFinish && !leading:
		// A client that has to finish and never had to run has lost its state folder.
		r.cancel(&executor.AbortError{By: "orchestrator", Reason: "the run was finished without this node"})
	}
}

// An orchestrator that answers and no longer lists a run has ended it while this
// node was away. One such answer may come from one that is just starting.
const (
	minUnlisted = 2 // answers
	unlistedFor = 10 * time.Second
)

// setListed notes whether an answer listed the run. A client that leads is not
// stopped by its absence: its trials are worth more than a run that should have
// been stopped.
func (r *run) setListed(listed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if listed {
		r.unlisted = 0
		return
	}
	if r.unlisted++; r.unlisted == 1 {
		r.unlistedSince = time.Now()
	}
	if r.unlisted < minUnlisted || time.Since(r.unlistedSince) < unlistedFor || r.leading && r.node.cfg.Role == radio.RoleClient {
		return
	}
	if r.node.cfg.Role == radio.RoleClient {
		r.cancel(&executor.AbortError{By: "agent", Reason: "the orchestrator no longer lists the run"})
		return
	}
	r.cancel(executor.ErrFinish)
}

// addCommands takes the commands that are new. They are in the note before the
// executor has them: an agent that starts again without a control link must not
// have forgotten a pause.
func (r *run) addCommands(list []*linktrialv1.RunCommand) {
	if r.node.cfg.Role != radio.RoleClient {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.note
	n.Commands = slices.Clone(n.Commands)
	for _, c := range asCommands(list) {
		if !slices.ContainsFunc(n.Commands, func(known executor.Command) bool { return known.ID == c.ID }) {
			n.Commands = append(n.Commands, c)
		}
	}
	added := len(n.Commands) - len(r.note.Commands)
	if added == 0 {
		return
	}
	if err := n.write(r.dir); err != nil {
		// The next answer of the orchestrator has them again.
		r.log.Error("commands could not be noted", "error", err)
		return
	}
	r.log.Info("run has new commands", "commands", added)
	r.note = n
	r.commands.set(n.Commands)
}

// peers are the addresses of the agent's configuration, over those of the assignment.
func (r *run) peers() map[radio.Role]string {
	out := map[radio.Role]string{}
	for role, address := range r.assignment.GetRadioAddresses() {
		out[radio.Role(role)] = address
	}
	maps.Copy(out, r.node.cfg.Peers)
	return out
}
