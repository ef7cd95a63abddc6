package agent

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

// slowRunner is a runner whose drivers take long to start, so that they are
// prepared; it knows which are ready.
type slowRunner struct {
	executor.Runner
	mu    sync.Mutex
	ready map[string]bool // by transfer
	late  int             // clients that were started without
	began map[string]bool // what was ready when the channel began
	fails bool            // of the channel
}

func (r *slowRunner) Prepare(_ context.Context, _, transfer string) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready[transfer] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.ready, transfer)
	}
}

func (r *slowRunner) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	r.mu.Lock()
	if p.Role == contract.RoleClient && !r.ready[p.Transfer.ID] {
		r.late++
	}
	delete(r.ready, p.Transfer.ID)
	r.mu.Unlock()
	return r.Runner.Start(ctx, protocol, p, payload)
}

// The runner is the emulated radio, too.
func (r *slowRunner) Configure(context.Context, *radio.Network) error { return nil }
func (r *slowRunner) Begin(context.Context, radiocontrol.Begin) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began == nil { // of the first attempt; one without its channel is repeated
		r.began = maps.Clone(r.ready)
	}
	if r.fails {
		return executor.ErrRadioRefused
	}
	return nil
}
func (r *slowRunner) End(context.Context, string) (*radiocontrol.Report, error) {
	return nil, errors.New("not asked for")
}

// The drivers of all flows of a trial are ready when its channel begins, on
// whatever node they start, and what was not started is taken back.
func TestDriversAreReadyOnEveryNode(t *testing.T) {
	for _, fails := range []bool{false, true} {
		n := stageNodes(t, sourceSheet(t, 1, 0))
		all := &slowRunner{ready: map[string]bool{}, fails: fails}
		n.adjust = func(c *executor.Config) {
			if all.Runner == nil {
				all.Runner = c.Runner
			}
			c.Runner, c.Radio = all, all
		}
		_, endServer := n.start(radio.RoleServer, executor.Serve)
		await(t, n.journals[radio.RoleServer], journal.TypeListenerReady, 1)
		_, endRelay := n.start(radio.RoleRelay, executor.Attend)
		lead, _ := n.start(radio.RoleClient, executor.Lead)
		if err := <-lead; err != nil {
			t.Fatal(err)
		}
		n.finish(endRelay, endServer)
		transfers := recordsOf[journal.AttemptStarted](t, n.journals[radio.RoleClient], journal.TypeAttemptStarted)[0].Transfers
		if len(transfers) != 3 || len(all.began) != 3 || slices.ContainsFunc(transfers, func(x string) bool { return !all.began[x] }) {
			t.Errorf("of %v, ready at the beginning: %v", transfers, all.began)
		}
		if all.late > 0 || len(all.ready) > 0 {
			t.Errorf("%d drivers were started unprepared, and these are left: %v", all.late, all.ready)
		}
	}
}
