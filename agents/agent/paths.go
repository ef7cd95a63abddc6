package agent

import (
	"context"
	"fmt"

	"linktrial/agents/path"
	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/internal/portholder"
	"linktrial/internal/radio"
)

// DefaultSparePorts are behind those that a sheet can give to listeners (5001 to 5800).
const DefaultSparePorts = "5900-5998"

// ParseSparePorts reads a range of ports for listeners whose own is taken, as "5900-5998";
// "none" is an empty one.
func ParseSparePorts(s string) (r executor.PortRange, err error) {
	if s == "none" {
		return r, nil
	}
	var rest string
	if n, _ := fmt.Sscanf(s, "%d-%d%s", &r.First, &r.Last, &rest); n != 2 || r.First > r.Last {
		return executor.PortRange{}, fmt.Errorf("ports %.40q, expected a range such as %s, or none", s, DefaultSparePorts)
	}
	if r.First < runsheet.FirstPort || r.Last >= path.Port {
		return executor.PortRange{}, fmt.Errorf("ports %s, expected some of %d to %d: others count as traffic that interferes, and firewalls may not let them in", s, runsheet.FirstPort, path.Port-1)
	}
	return r, nil
}

// reachPaths gives the executor what it needs to know of paths and ports. In a lab nodes
// reach each other beside the radio.
func (x *execution) reachPaths(cfg *executor.Config) {
	n := x.run.node
	cfg.Network, cfg.PortHolder = n.network, portholder.Find
	if n.cfg.RadioControl != "" {
		return
	}
	x.run.mu.Lock()
	key := path.NewKey(x.run.id, x.run.note.Signature)
	x.run.mu.Unlock()
	if cfg.Role == radio.RoleClient {
		cfg.Paths = &path.Paths{Device: cfg.Device, Key: key, Rate: slowest(x.sheet.Network)}
		return
	}
	device := cfg.Device
	if len(x.radios) > 1 && cfg.Role == radio.RoleRelay { // the leading node may be at another one
		device = ""
	}
	cfg.SparePorts = n.cfg.SparePorts
	cfg.AnswerPaths = func(ctx context.Context, address string, state func(executor.PathQuestion) executor.NodeState) {
		path.Respond(ctx, path.End{Address: address, Device: device, Key: key}, state, x.run.log)
	}
}

// slowest is the least rate of a network's links, in bit/s; 0: not known.
func slowest(n *radio.Network) (rate float64) {
	if n == nil {
		return 0
	}
	for _, l := range n.Links {
		if r := float64(l.RateBitsPerSecond); rate == 0 || r < rate {
			rate = r
		}
	}
	return rate
}
