package agent

import (
	"context"
	"fmt"
	"time"

	"linktrial/agents/radiolink"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/signature"
)

// The lab's emulator answers at once while it runs, and is started again within seconds
// where it has ended.
const (
	labAnswer = 2 * time.Second
	labRetry  = 500 * time.Millisecond
)

// emulated reports whether the node's radio is emulated, as far as the agent was told:
// results have it where the lab's emulator proves it.
func (c *Config) emulated() bool {
	return c.Place == journal.PlaceEmulated || c.Place == journal.PlaceVirtual
}

// inLab reports whether a lab has to vouch for the node. The guests of the virtual-time
// lab have no other radio, and their lab speaks for them.
func (c *Config) inLab() bool { return c.Place == journal.PlaceEmulated }

// vouched is the lab's proof of a statement about this node.
func (a *agent) vouched(ctx context.Context, s signature.LabStatement) (signature.LabProof, error) {
	ctx, cancel := context.WithTimeout(ctx, labAnswer)
	defer cancel()
	p, err := radiolink.Vouch(ctx, a.cfg.RadioControl, a.cfg.Device, s)
	if err != nil {
		err = fmt.Errorf("the emulated radios at %s do not vouch for this node: %w", a.cfg.RadioControl, err)
	}
	return p, err
}

// nodeStatement is what a lab signs for this start of the agent.
func (a *agent) nodeStatement() signature.LabStatement {
	return signature.LabStatement{Kind: signature.LabNode, Subject: a.cfg.Name, Detail: a.incarnation, Role: string(a.cfg.Role), Address: a.cfg.RadioAddress}
}

// addLab adds to a registration that the node's radio is emulated, with the proof, or why
// there is none.
func (a *agent) addLab(ctx context.Context, r *linktrialv1.RegisterRequest) {
	if !a.cfg.inLab() {
		return
	}
	r.Emulated = true
	p, err := a.vouched(ctx, a.nodeStatement())
	if err != nil {
		r.LabProblem = err.Error()
	} else {
		r.LabKey, r.LabSignature = p.Key, p.Signature
	}
	a.setLabFault(r.LabProblem)
}

// setLabFault notes why the lab does not vouch for the node, empty: it does, and reports
// whether that is news.
func (a *agent) setLabFault(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	news := text != a.labFault
	a.labFault = text
	if news && text != "" {
		a.cfg.Logger.Warn("the node does not count as emulated", "reason", text)
	}
	return news
}

// watchLab registers the node again once the lab vouches for it that did not as the node
// registered.
func (a *agent) watchLab(ctx context.Context) {
	for backoff.Sleep(ctx, labRetry) {
		a.mu.Lock()
		missing := a.labFault != ""
		a.mu.Unlock()
		if !missing {
			continue
		}
		if _, err := a.vouched(ctx, a.nodeStatement()); err == nil {
			a.setLabFault("")
			a.session.RegisterAgain()
		}
	}
}

// labProof is the lab's proof for the run. Where the emulator does not answer, the run
// waits, and the node reports why, until it does or ctx ends: trials on anything but the
// lab's radios would not be what the results say.
func (x *execution) labProof(ctx context.Context) (*journal.LabProof, error) {
	a := x.run.a
	s := journal.LabStatement(x.run.id, x.run.hash, a.cfg.Role, a.cfg.RadioAddress)
	for {
		p, err := a.vouched(ctx, s)
		if err == nil {
			if a.setLabFault("") && a.session != nil {
				a.session.RegisterAgain()
			}
			return &journal.LabProof{LabProof: p, Role: a.cfg.Role, Address: a.cfg.RadioAddress}, nil
		}
		if a.setLabFault(err.Error()) && a.session != nil {
			a.session.PollNow()
		}
		if !backoff.Sleep(ctx, labRetry) {
			return nil, err
		}
	}
}
