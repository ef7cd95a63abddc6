package agent

import (
	"context"
	"slices"
	"sync"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
)

// desk is where the orders of people to one run lie for the executor.
type desk struct {
	mu   sync.Mutex
	all  []executor.Command
	more notify.Notifier // commands were added
}

func newDesk(all []executor.Command) *desk { return &desk{all: all} }

// Given answers [executor.Commands].
func (d *desk) Given() ([]executor.Command, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all), d.more.Changed()
}

func (d *desk) set(all []executor.Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = slices.Clone(all)
	d.more.Notify()
}

func asCommands(list []*linktrialv1.RunCommand) []executor.Command {
	var out []executor.Command
	for _, o := range list {
		out = append(out, executor.Command{ID: o.Id, Kind: journal.CommandKind(o.Kind), Trial: int(o.Trial), By: o.By})
	}
	return out
}

// order takes the orders that are new. They are in the note before the
// executor has them: an agent that starts again without a control link must
// not have forgotten a pause that it was told.
func (r *run) order(list []*linktrialv1.RunCommand) {
	if r.a.cfg.Role != radio.RoleClient {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.note
	n.Orders = slices.Clone(n.Orders)
	for _, c := range asCommands(list) {
		if !slices.ContainsFunc(n.Orders, func(o executor.Command) bool { return o.ID == c.ID }) {
			n.Orders = append(n.Orders, c)
		}
	}
	if len(n.Orders) == len(r.note.Orders) {
		return
	}
	if err := n.write(r.dir); err != nil {
		// The next answer of the orchestrator has them again.
		r.log.Error("orders could not be noted", "error", err)
		return
	}
	r.log.Info("run has new orders", "orders", len(n.Orders)-len(r.note.Orders))
	r.note = n
	r.desk.set(n.Orders)
}

// hold lets the session speak in a pause of a run with in-band control: nothing
// runs on the radio, and the order to go on must be heard.
func (r *run) hold(ctx context.Context) (release func()) {
	r.a.session.Speak()
	return func() {
		// What was obeyed should be known before the next trial's silence.
		ctx, cancel := context.WithTimeout(ctx, r.a.cfg.Window)
		defer cancel()
		r.delivery.Await(ctx)
		r.a.session.Silence()
	}
}
