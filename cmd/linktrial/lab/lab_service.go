package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/driver"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol/client"
	"linktrial/lab/netns"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/rpc"
)

// Served is the lab of an orchestrator's pages: at most one at a time, with an agent
// in each node. This process runs it.
type Served struct {
	s    setting.Settings // with the orchestrator's own URL
	cat  *catalog.Catalog
	name string // contains the port, so that each orchestrator of a machine has its own lab
	log  *slog.Logger

	work   sync.Mutex // held while a lab is brought up or removed
	closed bool       // the orchestrator is stopping; guarded by work

	mu     sync.Mutex
	lab    *netns.Lab // nil: none
	agents labAgents
	cut    map[radio.Role]bool // control links
}

// NewServed returns an error that names what this machine lacks for a lab. It removes
// what a killed orchestrator has left behind.
func NewServed(ctx context.Context, s *setting.Settings, cat *catalog.Catalog, addr string, log *slog.Logger) (*Served, error) {
	if err := netns.Possible(); err != nil {
		return nil, err
	}
	swept, damaged, err := netns.Sweep(ctx, netns.DefaultStateDir)
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		log.Error("a lab cannot be read and stays as it is", "lab", d.Name, "error", d)
	}
	if len(swept) > 0 {
		log.Info("labs that were left behind have been removed", "labs", swept)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	l := &Served{s: *s, cat: cat, name: "serve-" + port, log: log}
	l.s.Orchestrator = "http://" + addr
	return l, nil
}

// Up implements [rpc.Lab].
func (l *Served) Up(ctx context.Context, radioName, topology string) error {
	l.work.Lock()
	defer l.work.Unlock()
	if l.closed {
		return fmt.Errorf("%w: the orchestrator is stopping", rpc.ErrLab)
	}
	l.mu.Lock()
	current := l.lab
	l.mu.Unlock()
	if current != nil {
		return fmt.Errorf("%w: one is up already, with radio %s at %s; remove it first", rpc.ErrLab, current.State.Radio, current.State.Topology)
	}
	cfg, err := labConfig(&l.s, l.cat, labFlags{name: l.name, radio: radioName, topology: topology})
	if err != nil {
		return err
	}
	cfg.Log = l.log
	// Without keys the agents would follow no sheet: fail before anything is brought up.
	keys, err := driver.OwnKeys(l.s.Data)
	if err != nil {
		return err
	}
	lab, err := netns.Up(ctx, cfg)
	if err != nil {
		return err
	}
	agents, err := startAgents(&l.s, lab, filepath.Join(l.s.Data, "agents", lab.State.Name), keys, l.log)
	if err != nil {
		agents.stop()
		return errors.Join(err, lab.Down(context.WithoutCancel(ctx)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lab, l.agents, l.cut = lab, agents, map[radio.Role]bool{}
	l.log.Info("lab is up", "radio", radioName, "topology", topology)
	return nil
}

// Down implements [rpc.Lab].
func (l *Served) Down(ctx context.Context) error {
	l.work.Lock()
	defer l.work.Unlock()
	return l.down(ctx)
}

func (l *Served) down(ctx context.Context) error {
	l.mu.Lock()
	lab, agents := l.lab, l.agents
	l.mu.Unlock()
	if lab == nil {
		return fmt.Errorf("%w: none is up", rpc.ErrLab)
	}
	agents.stop()
	err := lab.Down(ctx)
	// Also where something could not be removed: the next start removes it.
	l.mu.Lock()
	l.lab, l.agents, l.cut = nil, nil, nil
	l.mu.Unlock()
	l.log.Info("lab is down")
	return err
}

// Close removes the lab. After it, Up fails.
func (l *Served) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l.work.Lock()
	defer l.work.Unlock()
	l.closed = true
	if err := l.down(ctx); err != nil && !errors.Is(err, rpc.ErrLab) {
		l.log.Error("lab could not be removed", "error", err)
	}
}

// SetControlLink implements [rpc.Lab].
func (l *Served) SetControlLink(_ context.Context, node string, up bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lab == nil {
		return fmt.Errorf("%w: none is up", rpc.ErrLab)
	}
	role := radio.Role(node)
	if !slices.ContainsFunc(l.lab.State.Nodes, func(n netns.NodeState) bool { return n.Role == role }) {
		return fmt.Errorf("%w: it has no node %q", rpc.ErrLab, node)
	}
	if err := l.lab.SetControlLink(role, up); err != nil {
		return err
	}
	l.cut[role] = !up
	return nil
}

// statusLimit bounds the call to the emulator.
const statusLimit = 2 * time.Second

// Status implements [rpc.Lab].
func (l *Served) Status(ctx context.Context) (*linktrialv1.LabStatusResponse, error) {
	l.mu.Lock()
	lab, out := l.lab, &linktrialv1.LabStatusResponse{}
	if lab != nil {
		out.Up, out.Radio, out.Topology = true, lab.State.Radio, lab.State.Topology
		for i, n := range lab.State.Nodes {
			running := false
			if i < len(l.agents) {
				_, err := process.Identify(l.agents[i].PID())
				running = err == nil
			}
			out.Nodes = append(out.Nodes, &linktrialv1.LabNode{Name: string(n.Role), Role: string(n.Role), Address: n.RadioAddress, ControlLink: !l.cut[n.Role], Agent: running})
		}
	}
	l.mu.Unlock()
	if lab == nil {
		return out, nil
	}
	if down := lab.EmulatorDown(); down != nil {
		out.EmulatorError = down.String()
		return out, nil
	}
	radios, err := radiosOf(ctx, lab.State.ControlSocket)
	if err != nil {
		out.EmulatorError = err.Error()
	}
	out.Radios = radios
	return out, nil
}

func radiosOf(ctx context.Context, socket string) ([]*linktrialv1.LabRadio, error) {
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	c, err := client.Dial(socket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // nothing was changed through it
	st, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	var out []*linktrialv1.LabRadio
	for _, r := range st.Radios {
		out = append(out, &linktrialv1.LabRadio{From: string(r.From), To: string(r.To), RateBps: r.RateBitsPerSecond, DelayMs: r.Delay.Seconds() * 1e3,
			Loss: r.Loss, SnrDb: r.SNR, QueuePackets: int32(r.QueuePackets)})
	}
	return out, nil
}
