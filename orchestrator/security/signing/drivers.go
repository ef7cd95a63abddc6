package signing

import (
	"context"
	"time"
)

// AcceptedDriver is a driver that new sheets accept.
type AcceptedDriver struct {
	Protocol, Digest string
	Own              bool // the orchestrator's own, which needs no approval
	Reason, By       string
	ApprovedAt       time.Time // zero where Own
}

// NodeDriver is a driver that a node has.
type NodeDriver struct {
	Node, Protocol, Version, Digest string
	Accepted                        bool
}

// Drivers returns the drivers that new sheets accept, the orchestrator's own
// first, and those of all nodes that have registered.
func (t *Trust) Drivers(ctx context.Context) (accepted []AcceptedDriver, onNodes []NodeDriver, err error) {
	approved, err := t.db.Approvals(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[[2]string]bool{} // protocol and digest
	for _, p := range t.cfg.Catalog.Protocols() {
		own, err := t.own(p)
		if err != nil {
			// One driver without a digest must not hide the others.
			t.cfg.Logger.Warn("a driver has no digest", "protocol", p, "error", err)
			continue
		}
		known[[2]string{p, string(own)}] = true
		accepted = append(accepted, AcceptedDriver{Protocol: p, Digest: string(own), Own: true})
	}
	for _, a := range approved {
		known[[2]string{a.Protocol, a.Digest}] = true
		accepted = append(accepted, AcceptedDriver{Protocol: a.Protocol, Digest: a.Digest, Reason: a.Reason, By: a.GivenBy, ApprovedAt: a.GivenAt})
	}
	for _, n := range t.cfg.Nodes() {
		for _, d := range n.Drivers {
			if d.Digest != "" {
				onNodes = append(onNodes, NodeDriver{Node: n.Name, Protocol: d.Name, Version: d.Version, Digest: d.Digest, Accepted: known[[2]string{d.Name, d.Digest}]})
			}
		}
	}
	return accepted, onNodes, nil
}
