package netns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"linktrial/emulator/tun"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol/client"
)

// Config of a lab.
type Config struct {
	Name     string // lower-case, at most 21 letters, digits and hyphens
	StateDir string // empty: DefaultStateDir
	Radio    string // names, for people
	Topology string
	Network  *radio.Network
	// Forward is where the orchestrator listens: host:port on the loopback.
	Forward string
	// Emulator is the command that runs the device loop; it reads a
	// tun.Config as JSON from standard input and writes the line "ready".
	Emulator []string
	// Plain has the nodes' radios be plain interfaces instead; nil: they are emulated.
	Plain *Plain
	Log   *slog.Logger
}

// Lab is a running lab, held by this process.
type Lab struct {
	State State

	dir      string
	log      *slog.Logger
	forward  *forwarder
	emulator *process.Supervisor // nil with plain radios
	maxEnds  int                 // of the emulator within a minute; 0: as usual
	plain    *Plain              // nil: the radios are emulated
	indexes  atomic.Int64        // of plain radios that came back with another index

	mu    sync.Mutex                   // guards State.Children, State.Emulator, State.Radios, the state file and power
	power map[radio.Role]chan struct{} // of nodes without power; closed when it is back

	downMu sync.Mutex // guards down, and the interfaces that are kept down
	down   map[nodeInterface]int
}

// nodeInterface is an interface of a node: that of its radio or of its control link.
type nodeInterface struct {
	role    radio.Role
	control bool
}

// ErrRunning reports a lab of that name that another process holds.
var ErrRunning = errors.New("is already up")

const device = "radio0"

// Up makes the namespaces, the control network and the emulated or plain radios, and
// returns when packets can flow. It needs root and /dev/net/tun. On failure
// nothing is left behind.
func Up(ctx context.Context, cfg Config) (*Lab, error) { return up(ctx, cfg, 0) }

// up is [Up] with the bound on restarts of the emulator, 0: the usual one.
func up(ctx context.Context, cfg Config, maxEnds int) (*Lab, error) {
	if err := Possible(); err != nil {
		return nil, err
	}
	if !nameForm.MatchString(cfg.Name) {
		return nil, fmt.Errorf("lab name %q, expected at most 21 lower-case letters, digits and hyphens", cfg.Name)
	}
	if cfg.StateDir == "" {
		cfg.StateDir = DefaultStateDir
	}
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	l := &Lab{dir: cfg.StateDir, log: cfg.Log, maxEnds: maxEnds, plain: cfg.Plain}
	l.State = State{
		Name: cfg.Name, Owner: self, Radio: cfg.Radio, Topology: cfg.Topology,
		Control:       controlNamespace(cfg.Name),
		Orchestrator:  fmt.Sprintf("http://%s:%d", controlGateway, controlPort),
		ControlSocket: filepath.Join(cfg.StateDir, cfg.Name, "emulator.sock"),
	}
	if cfg.Plain != nil {
		l.State.Air, l.State.ControlSocket = airNamespace(cfg.Name), ""
	}
	for _, n := range cfg.Network.Nodes {
		l.State.Nodes = append(l.State.Nodes, NodeState{
			Role: n.Role, Namespace: nodeNamespace(cfg.Name, n.Role),
			RadioAddress: n.Address, ControlAddress: controlAddresses[n.Role],
		})
	}
	if err := l.claim(ctx); err != nil {
		return nil, err
	}
	if err := l.build(ctx, cfg); err != nil {
		return nil, errors.Join(err, l.Down(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// claim takes the lab's name: it writes the state, and removes what an earlier lab
// of that name has left behind. The state is on disk before anything exists, so that
// a crash at any moment leaves nothing that [Sweep] does not know of.
func (l *Lab) claim(ctx context.Context) error {
	unlock, err := lock(l.dir)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := Load(l.dir, l.State.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case old.Running():
		return fmt.Errorf("lab %q %w (held by process %d); remove it first: linktrial lab down --name %s", l.State.Name, ErrRunning, old.Owner.PID, l.State.Name)
	default:
		if err := old.remove(ctx, l.dir); err != nil {
			return err
		}
	}
	return l.State.save(l.dir)
}

// Possible returns what this machine lacks for a lab, for people, or nil.
func Possible() error {
	if os.Geteuid() != 0 {
		return errors.New("the lab makes network namespaces, which needs root: run the command with sudo")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return errors.New("the lab needs /dev/net/tun, which this machine does not have: load it with 'modprobe tun'")
	}
	return nil
}

func (l *Lab) build(ctx context.Context, cfg Config) error {
	if err := MakeNamespace(l.State.Control); err != nil {
		return err
	}
	if err := makeBridge(l.State.Control); err != nil {
		return err
	}
	tc := tun.Config{Device: device, Network: cfg.Network, ControlSocket: l.State.ControlSocket, Telemetry: true, Keep: true}
	for i, n := range l.State.Nodes {
		if err := MakeNamespace(n.Namespace); err != nil {
			return err
		}
		if err := joinControl(l.State.Control, n.Namespace, n.ControlAddress, i); err != nil {
			return err
		}
		tc.Nodes = append(tc.Nodes, tun.NodeConfig{Role: n.Role, NetNS: n.Namespace, Address: n.RadioAddress})
	}
	var err error
	if l.forward, err = startForwarder(l.State.Control, cfg.Forward, l.log); err != nil {
		return err
	}
	if l.plain != nil {
		return l.makeAir()
	}
	if tc.LabKey, err = client.NewLabKey(l.State.ControlSocket); err != nil {
		return err
	}
	return l.startEmulator(ctx, cfg.Emulator, tc)
}

// adopt adds a child to the state file, so that Sweep ends it if this process dies.
func (l *Lab) adopt(pid int) error {
	id, err := process.Identify(pid)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Not in place: others may be reading the present list.
	kept := make([]process.Identity, 0, len(l.State.Children)+1)
	for _, c := range l.State.Children {
		if c.Alive() {
			kept = append(kept, c)
		}
	}
	l.State.Children = append(kept, id)
	return l.State.save(l.dir)
}

// Start starts a command in a node's namespace; it dies with this process.
func (l *Lab) Start(role radio.Role, cmd *exec.Cmd) error {
	for _, n := range l.State.Nodes {
		if n.Role == role {
			if err := process.StartIn(cmd, NamespacePath(n.Namespace)); err != nil {
				return fmt.Errorf("start in node %s: %w", role, err)
			}
			return l.adopt(cmd.Process.Pid)
		}
	}
	return fmt.Errorf("the lab has no node %s", role)
}

// Clocks is what the paths of its nodes' clocks begin with ([wallclock.Path]): the control
// socket of its emulated radios, beside which agents look for them, or with plain radios a
// name in the lab's folder.
func (l *Lab) Clocks() string {
	return cmp.Or(l.State.ControlSocket, filepath.Join(l.Folder(), "clocks"))
}

// Folder returns the lab's own folder, which is removed with it.
func (l *Lab) Folder() string { return filepath.Join(l.dir, l.State.Name) }

// Down removes the lab. What was started in its nodes and still runs is ended.
func (l *Lab) Down(ctx context.Context) error {
	if l.forward != nil {
		l.forward.close()
	}
	if l.emulator != nil {
		l.emulator.Stop(ctx, 2*time.Second)
	}
	return l.State.remove(ctx, l.dir)
}

// RadioDown takes a node's radio interface down until up is called. Of several that keep
// it down, [Lab.PowerCut] among them, the last one lets it up again.
func (l *Lab) RadioDown(role radio.Role) (up func() error, err error) {
	return l.keepDown(nodeInterface{role: role}, func(up bool) error {
		err := SetRadio(&l.State, role, up)
		// A plain radio may be gone just now; it comes back as it is to be then.
		if errors.As(err, &netlink.LinkNotFoundError{}) && l.plain != nil {
			return nil
		}
		return err
	})
}

// ControlDown is [Lab.RadioDown] of a node's control link.
func (l *Lab) ControlDown(role radio.Role) (up func() error, err error) {
	return l.keepDown(nodeInterface{role, true}, func(up bool) error { return l.SetControlLink(role, up) })
}

func (l *Lab) keepDown(i nodeInterface, set func(up bool) error) (func() error, error) {
	l.downMu.Lock()
	defer l.downMu.Unlock()
	if l.down[i] == 0 {
		if err := set(false); err != nil {
			return nil, err
		}
	}
	if l.down == nil {
		l.down = map[nodeInterface]int{}
	}
	l.down[i]++
	return func() error {
		l.downMu.Lock()
		defer l.downMu.Unlock()
		if l.down[i]--; l.down[i] > 0 {
			return nil
		}
		return set(true)
	}, nil
}

// SetControlLink cuts or restores a node's control link, as when a vehicle
// drives out of reach.
func (l *Lab) SetControlLink(role radio.Role, up bool) error {
	if l.State.Control == "" {
		return nil // see Held
	}
	return SetControlLink(&l.State, role, up)
}
