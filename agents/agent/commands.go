package agent

import (
	"slices"
	"sync"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/notify"
)

// commandQueue is people's commands to one run, for the executor to apply. It
// implements [executor.Commands].
type commandQueue struct {
	mu   sync.Mutex
	all  []executor.Command
	more notify.Notifier // commands were added
}

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
