package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"linktrial/agents/preflight"
	"linktrial/agents/preflight/transfer"
	"linktrial/agents/radiolink"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// maxTransfersLimit bounds what an orchestrator may ask for.
const maxTransfersLimit = 30 * time.Minute

// runTransfers carries out one step of a preflight's transfers, and reports it.
func (a *agent) runTransfers(ctx context.Context, w *linktrialv1.PreflightRequest) {
	t := w.Transfers
	ctx, cancel := context.WithTimeout(ctx, min(time.Duration(t.LimitMs)*time.Millisecond, maxTransfersLimit))
	defer cancel()
	switch t.Step {
	case linktrialv1.PreflightTransfers_STEP_LISTEN:
		a.listenForTransfers(ctx, w)
	case linktrialv1.PreflightTransfers_STEP_CARRY:
		a.carryTransfers(ctx, w)
	case linktrialv1.PreflightTransfers_STEP_CLOSE:
		a.closeTransfers(ctx, w)
	default:
		a.reportTransfers(ctx, w, nil, fmt.Errorf("this agent does not know the step %d: install the orchestrator's version of linktrial on the node", t.Step))
	}
}

// listenForTransfers holds the slot of runs until the orchestrator asks for the end, or ctx
// ends: an orchestrator that has gone does not keep listeners up.
func (a *agent) listenForTransfers(ctx context.Context, w *linktrialv1.PreflightRequest) {
	part, end, err := a.beginTransfers(ctx, w.Transfers)
	if err != nil {
		a.reportTransfers(ctx, w, nil, err)
		return
	}
	open := &openTransfers{name: w.Transfers.Name, close: make(chan struct{}), seen: make(chan []*linktrialv1.TransferSeen, 1)}
	a.mu.Lock()
	a.open = open
	a.mu.Unlock()
	part.Listen(ctx)
	a.reportTransfers(ctx, w, part.Seen(), nil)
	select {
	case <-open.close:
	case <-ctx.Done():
	}
	a.mu.Lock()
	if a.open == open {
		a.open = nil
	}
	a.mu.Unlock()
	end()
	open.seen <- part.Seen()
}

// closeTransfers ends what [agent.listenForTransfers] began.
func (a *agent) closeTransfers(ctx context.Context, w *linktrialv1.PreflightRequest) {
	a.mu.Lock()
	open := a.open
	a.open = nil
	a.mu.Unlock()
	if open == nil || open.name != w.Transfers.Name {
		a.reportTransfers(ctx, w, nil, errors.New("the node's listeners had ended before: its agent was started again, or the time for the transfers was up"))
		return
	}
	close(open.close)
	select {
	case seen := <-open.seen:
		a.reportTransfers(ctx, w, seen, nil)
	case <-ctx.Done():
	}
}

func (a *agent) carryTransfers(ctx context.Context, w *linktrialv1.PreflightRequest) {
	part, end, err := a.beginTransfers(ctx, w.Transfers)
	if err != nil {
		a.reportTransfers(ctx, w, nil, err)
		return
	}
	// A moment before the limit, so that what was carried is still reported.
	limit, cancel := context.WithTimeout(ctx, time.Duration(w.Transfers.LimitMs)*time.Millisecond*9/10)
	defer cancel()
	seen, err := part.Carry(limit)
	end()
	a.reportTransfers(ctx, w, seen, err)
}

// beginTransfers takes the slot of runs and checks the drivers, as a run's start does. End
// ends the part, waits for that, and gives the slot back.
func (a *agent) beginTransfers(ctx context.Context, t *linktrialv1.PreflightTransfers) (part *transfer.Part, end func(), err error) {
	select {
	case a.slot <- struct{}{}:
	default:
		return nil, nil, errBusy
	}
	closeRadio := func() {}
	end = func() {
		if part != nil {
			part.Close()
		}
		closeRadio()
		<-a.slot
	}
	cfg, err := a.transfersConfig(ctx, t)
	if err == nil {
		if control := a.cfg.RadioControl; control != "" && a.cfg.Role == radio.RoleClient {
			link := radiolink.New(control)
			cfg.Radio, closeRadio = link, func() { _ = link.Close() } // the transfers are over either way
		}
		part, err = transfer.Begin(cfg)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return part, end, nil
}

// transfersConfig is this node's part as the executor has it.
func (a *agent) transfersConfig(ctx context.Context, t *linktrialv1.PreflightTransfers) (cfg executor.Config, err error) {
	sheet, err := runsheet.Decode(t.Sheet)
	if err != nil {
		return cfg, err
	}
	guard := &trust.Guard{Runner: a.runner, Drivers: a.runner, Sheet: sheet}
	if err := guard.CheckAll(ctx, a.cfg.Role); err != nil {
		return cfg, err
	}
	cfg = executor.Config{
		RunID: t.Name, Role: a.cfg.Role, Sheet: t.Sheet, Version: a.cfg.Version, Address: a.cfg.RadioAddress, Peers: map[radio.Role]string{},
		Device: a.cfg.Device, Place: a.cfg.Place, Runner: guard, Logger: a.cfg.Logger,
	}
	for role, address := range t.RadioAddresses {
		cfg.Peers[radio.Role(role)] = address
	}
	maps.Copy(cfg.Peers, a.cfg.Peers)
	return cfg, nil
}

var errBusy = errors.New("a run uses this node: nothing was carried; wait for its end, or abort it, and start the preflight again")

// reportTransfers reports one step; err is why the node could not carry it out, or all of it.
func (a *agent) reportTransfers(ctx context.Context, w *linktrialv1.PreflightRequest, seen []*linktrialv1.TransferSeen, err error) {
	r := preflight.Report{Transfers: seen}
	if err != nil {
		r.TransferError = err.Error()
	}
	a.reportPreflight(ctx, w, &r)
}
