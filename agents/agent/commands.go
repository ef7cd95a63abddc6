package agent

import (
	"slices"
	"sync"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
)

// commandQueue is people's commands to one run, for the executor to apply. It
// implements [executor.Commands].
type commandQueue struct {
	mu   sync.Mutex
	all  []executor.Command
	more notify.Notifier // commands were added
}

func newCommandQueue(all []executor.Command) *commandQueue { return &commandQueue{all: all} }

// Given implements [executor.Commands].
func (q *commandQueue) Given() ([]executor.Command, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.all), q.more.Changed()
}

func (q *commandQueue) set(all []executor.Command) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = slices.Clone(all)
	q.more.Notify()
}

func asCommands(list []*linktrialv1.RunCommand) []executor.Command {
	var out []executor.Command
	for _, c := range list {
		out = append(out, executor.Command{ID: c.Id, Kind: journal.CommandKind(c.Kind), Trial: int(c.Trial), By: c.By})
	}
	return out
}

// addCommands takes the commands that are new. They are in the note before the
// executor has them: an agent that starts again without a control link must not
// have forgotten a pause.
func (r *run) addCommands(list []*linktrialv1.RunCommand) {
	if r.a.cfg.Role != radio.RoleClient {
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
