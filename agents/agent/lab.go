package agent

import (
	"context"
	"fmt"
	"time"

	"linktrial/agents/radiolink"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/backoff"
	"linktrial/internal/signature"
)

// The lab's emulator answers at once while it runs, and is started again within seconds
// where it has ended.
const (
	labAnswer = 2 * time.Second
	labRetry  = 500 * time.Millisecond
)

// vouched is the lab's proof of a statement about this node.
func (n *node) vouched(ctx context.Context, s signature.LabStatement) (signature.LabProof, error) {
	ctx, cancel := context.WithTimeout(ctx, labAnswer)
	defer cancel()
	p, err := radiolink.Vouch(ctx, n.cfg.RadioControl, n.cfg.Device, s)
	if err != nil {
		err = fmt.Errorf("the emulated radios at %s do not vouch for this node: %w", n.cfg.RadioControl, err)
	}
	return p, err
}

// nodeStatement is what a lab signs for this start of the agent.
func (n *node) nodeStatement() signature.LabStatement {
	return signature.LabStatement{Kind: signature.LabNode, Subject: n.cfg.Name, Detail: n.incarnation, Role: string(n.cfg.Role), Address: n.cfg.RadioAddress}
}

// addLab adds to a registration that the node's radio is emulated, with the proof, or why
// there is none.
func (n *node) addLab(ctx context.Context, r *linktrialv1.RegisterRequest) {
	if !n.cfg.inLab() {
		return
	}
	r.Emulated = true
	p, err := n.vouched(ctx, n.nodeStatement())
	if err != nil {
		r.LabProblem = err.Error()
	} else {
		r.LabKey, r.LabSignature = p.Key, p.Signature
	}
	n.setLabFault(r.LabProblem)
}

// setLabFault notes why the lab does not vouch for the node, empty: it does, and reports
// whether that is news.
func (n *node) setLabFault(text string) bool {
	news := n.setFault(&n.labFault, text)
	if news && text != "" {
		n.cfg.Logger.Warn("the node does not count as emulated", "reason", text)
	}
	return news
}

// watchLab registers the node again once the lab vouches for it that did not as the node
// registered.
func (n *node) watchLab(ctx context.Context) {
	for backoff.Sleep(ctx, labRetry) {
		n.mu.Lock()
		missing := n.labFault != ""
		n.mu.Unlock()
		if !missing {
			continue
		}
		if _, err := n.vouched(ctx, n.nodeStatement()); err == nil {
			n.setLabFault("")
			n.session.RegisterAgain()
		}
	}
}
