package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"linktrial/emulator/tun"
	"linktrial/internal/backoff"
	"linktrial/internal/faultlog"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
	"linktrial/lab/faults"
	"linktrial/lab/netns"
)

// Faults are the faults of the apparatus that are injected into one run, by its own
// clock: times count from the moment at which the client's agent is started.
type Faults struct {
	Listed []faults.Injection `json:"listed,omitempty"`
	// Every is the mean interval of those that are drawn from Seed; 0: none are.
	Every   time.Duration   `json:"every_ns,omitempty"`
	Seed    uint64          `json:"seed,omitempty"`
	Choices []faults.Choice `json:"choices,omitempty"`
	Nodes   faults.Nodes    `json:"nodes"`
}

func (f *Faults) schedule() *faults.Schedule {
	s := &faults.Schedule{Faults: f.Listed}
	if f.Every > 0 {
		s.Random = faults.NewRandom(f.Seed, f.Every, f.Choices, f.Nodes)
	}
	return s
}

// FaultsFile is where the list of the faults injected into a run is, seen from the
// shared folder.
func (s Sheet) FaultsFile() string { return filepath.Join(s.Run, faultlog.FileName) }

// Bounds of a run with faults, by the guest's clock.
const (
	// maxEnds is how often a process may end within a minute before it is not started
	// again: more than faults end it, and reached by one that ends at once for ever.
	maxEnds = 100
	// againLimit is how long an agent that has to end may take to be started again first.
	againLimit = 2 * time.Minute
)

// faultySheet executes one run while faults are injected. Emulator and agents are
// processes that are started again when they end, as in a lab in real time.
func (g *guest) faultySheet(ctx context.Context, index int, s Sheet) (err error) {
	l := &faultyLab{guest: g, index: index, sheet: s, agents: map[radio.Role]*faultyAgent{}}
	var nodes []netns.NodeState
	cfg := tun.Config{Device: device, Network: s.Network, ControlSocket: controlSocket, Shared: true, Stoppable: true, Keep: true}
	for _, n := range s.Network.Nodes {
		name := string(n.Role)
		if err := netns.MakeNamespace(name); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, netns.RemoveNamespace(name)) }()
		nodes = append(nodes, netns.NodeState{Role: n.Role, Namespace: name, RadioAddress: n.Address})
		cfg.Nodes = append(cfg.Nodes, tun.NodeConfig{Role: n.Role, NetNS: name, Address: n.Address})
	}
	l.net = netns.Held(nodes)
	if s.Faults.schedule().Injects(faultlog.ClockStep) {
		if l.clocks, err = faults.Clocks(controlSocket, nodes); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, faults.RemoveClocks(controlSocket, l.clocks)) }()
	}
	log, err := os.Create(filepath.Join(ShareDir, s.Run, "processes.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	l.log = slog.New(slog.NewTextHandler(log, nil))
	defer l.stop(context.WithoutCancel(ctx))
	if err := l.startEmulator(ctx, cfg); err != nil {
		return err
	}
	return l.run(ctx)
}

// faultyLab is the nodes and radios of one run with faults.
type faultyLab struct {
	*guest
	index    int
	sheet    Sheet
	net      *netns.Lab
	log      *slog.Logger
	emulator *process.Supervisor
	agents   map[radio.Role]*faultyAgent
	clocks   map[radio.Role]*wallclock.Offset // of the nodes; empty: no fault steps one
}

func (l *faultyLab) startEmulator(ctx context.Context, cfg tun.Config) error {
	doc, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	path := filepath.Join(ShareDir, l.sheet.Run, "emulator.log")
	command := append([]string{program}, l.cfg.Emulator...)
	l.emulator, err = process.Supervision{
		Name: "the emulated radio network", Log: l.log, MaxEnds: maxEnds,
		Start: func(ctx context.Context) (*exec.Cmd, error) {
			return netns.LaunchEmulator(ctx, command, doc, path)
		},
		LastWords: func() string { return process.LastLine(path) },
		Changed: func(st process.State) {
			if !st.Since.IsZero() {
				st.PID = 0
			}
			l.net.SetEmulator(st.PID)
		},
	}.Run(ctx)
	if err == nil {
		l.net.SetEmulator(l.emulator.PID())
	}
	return err
}

// run executes the run with agents and faults.
func (l *faultyLab) run(ctx context.Context) error {
	var client *radio.Node
	for i, n := range l.sheet.Network.Nodes {
		if n.Role == radio.RoleClient {
			client = &l.sheet.Network.Nodes[i]
			continue
		}
		if err := l.startAgent(ctx, n); err != nil {
			return err
		}
	}
	if client == nil {
		return errors.New("the network of this run has no client")
	}
	if !backoff.Sleep(ctx, listenTime) {
		return ctx.Err()
	}
	if err := l.startAgent(ctx, *client); err != nil {
		return err
	}
	lead := l.agents[radio.RoleClient]
	end, err := l.inject(ctx)
	if err != nil {
		return err
	}
	select {
	case <-lead.ended:
	case <-lead.supervisor.Failed():
		err = lead.supervisor.Failure()
	case <-l.emulator.Failed():
		err = l.emulator.Failure()
	case <-ctx.Done():
		err = ctx.Err()
	}
	err = errors.Join(err, end())
	if err != nil {
		return err
	}
	for _, n := range l.sheet.Network.Nodes {
		if a := l.agents[n.Role]; a != lead {
			err = errors.Join(err, a.finish(ctx))
		}
	}
	return err
}

// stop ends all processes.
func (l *faultyLab) stop(ctx context.Context) {
	for _, n := range l.sheet.Network.Nodes {
		if a := l.agents[n.Role]; a != nil {
			a.supervisor.Stop(ctx, endGrace)
		}
	}
	if l.emulator != nil {
		l.emulator.Stop(ctx, endGrace)
	}
}

// inject begins to inject faults; end stops that, and returns when what they hit is as
// it was.
func (l *faultyLab) inject(ctx context.Context) (end func() error, err error) {
	list, err := os.Create(filepath.Join(ShareDir, l.sheet.FaultsFile()))
	if err != nil {
		return nil, err
	}
	c := &faults.Campaign{Schedule: l.sheet.Faults.schedule(), Log: list, Injector: l.injector(), Show: func(f faultlog.Fault) {
		if b, err := json.Marshal(f); err == nil {
			l.say(Line{Kind: LineFault, Sheet: l.index, Text: string(b)})
		}
	}}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() error {
		cancel()
		return errors.Join(<-done, list.Close())
	}, nil
}

func (l *faultyLab) injector() *faults.Lab {
	return &faults.Lab{
		Net: l.net,
		Agent: func(node radio.Role) int {
			if a := l.agents[node]; a != nil {
				return a.supervisor.PID()
			}
			return 0
		},
		Clock: func(node radio.Role) *wallclock.Offset { return l.clocks[node] },
		Idle:  func(node radio.Role) bool { return !l.sheet.Faults.Nodes.Has(faultlog.Driver, node) },
	}
}

// faultyAgent is the agent of a node, which is started again whenever it ends before
// its part in the run is over.
type faultyAgent struct {
	role       radio.Role
	supervisor *process.Supervisor
	ended      chan struct{} // closed when it has ended well

	mu        sync.Mutex
	stdin     io.Closer // of the one that was started last
	cmd       *exec.Cmd
	finishing bool
	over      sync.Once
}

func (l *faultyLab) startAgent(ctx context.Context, n radio.Node) error {
	a := &faultyAgent{role: n.Role, ended: make(chan struct{})}
	var err error
	a.supervisor, err = process.Supervision{
		Name: fmt.Sprintf("the agent of the %s", n.Role), Log: l.log, MaxEnds: maxEnds,
		Start: func(ctx context.Context) (*exec.Cmd, error) {
			if err := l.net.AwaitPower(ctx, n.Role); err != nil {
				return nil, err
			}
			r, err := l.start(l.sheet, n)
			if r == nil {
				return nil, err
			}
			a.started(r)
			return r.cmd, nil // one that was killed at once ends like any other
		},
		LastWords: func() string { return process.LastLine(filepath.Join(ShareDir, l.sheet.Run, string(n.Role)+".log")) },
		Changed:   a.changed,
	}.Run(ctx)
	if err == nil {
		l.agents[n.Role] = a
	}
	return err
}

func (a *faultyAgent) started(r *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stdin, a.cmd = r.stdin, r.cmd
	if a.finishing {
		_ = a.stdin.Close() // an error means that it has gone already
	}
}

// changed takes note of each end.
func (a *faultyAgent) changed(st process.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !st.Since.IsZero() && a.cmd.ProcessState != nil && a.cmd.ProcessState.Success() {
		a.over.Do(func() { close(a.ended) })
	}
}

// finish has the agent end its part in the run, also where it is just being started
// again.
func (a *faultyAgent) finish(ctx context.Context) error {
	a.mu.Lock()
	a.finishing = true
	_ = a.stdin.Close() // an error means that it has gone already
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, againLimit)
	defer cancel()
	select {
	case <-a.ended:
		return nil
	case <-a.supervisor.Failed():
		return a.supervisor.Failure()
	case <-ctx.Done():
		return fmt.Errorf("agent of the %s did not end within %s of its clock: %w", a.role, againLimit, ctx.Err())
	}
}
