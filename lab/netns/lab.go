package netns

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"linktrial/emulator/tun"
	"linktrial/internal/process"
	"linktrial/internal/radio"
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
	Log      *slog.Logger
}

// Lab is a running lab, held by this process.
type Lab struct {
	State State

	dir      string
	log      *slog.Logger
	forward  *forwarder
	emulator *exec.Cmd
	ended    chan struct{} // closed when the emulator has ended
	endedErr error

	mu sync.Mutex // guards State.Children and the state file
}

// ErrRunning reports a lab of that name that another process holds.
var ErrRunning = errors.New("is already up")

const device = "radio0"

// Up makes the namespaces, the control network and the emulated radios, and
// returns when packets can flow. It needs root and /dev/net/tun. On failure
// nothing is left behind.
func Up(ctx context.Context, cfg Config) (*Lab, error) {
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
	l := &Lab{dir: cfg.StateDir, log: cfg.Log, ended: make(chan struct{})}
	l.State = State{
		Name: cfg.Name, Owner: self, Radio: cfg.Radio, Topology: cfg.Topology,
		Control:       controlNamespace(cfg.Name),
		Orchestrator:  fmt.Sprintf("http://%s:%d", controlGateway, controlPort),
		ControlSocket: filepath.Join(cfg.StateDir, cfg.Name, "emulator.sock"),
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
	tc := tun.Config{Device: device, Network: cfg.Network, ControlSocket: l.State.ControlSocket, Telemetry: true}
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
	return l.startEmulator(ctx, cfg.Emulator, tc)
}

func (l *Lab) startEmulator(ctx context.Context, command []string, tc tun.Config) error {
	doc, err := json.Marshal(tc)
	if err != nil {
		return err
	}
	logFile, err := os.Create(filepath.Join(l.dir, l.State.Name, "emulator.log"))
	if err != nil {
		return err
	}
	defer logFile.Close() // the child has its own
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(doc)
	cmd.Stderr = logFile
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(cmd); err != nil {
		return fmt.Errorf("start the emulator: %w", err)
	}
	l.emulator = cmd
	l.State.Emulator = cmd.Process.Pid
	if err := l.adopt(cmd.Process.Pid); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go func() {
		sc := bufio.NewScanner(out)
		ready <- sc.Scan() && sc.Text() == "ready"
		for sc.Scan() {
		}
		l.endedErr = cmd.Wait()
		close(l.ended)
	}()
	select {
	case ok := <-ready:
		if !ok {
			<-l.ended
			return fmt.Errorf("the emulator did not start: %s", l.lastLog())
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Lab) lastLog() string {
	b, err := os.ReadFile(filepath.Join(l.dir, l.State.Name, "emulator.log"))
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return fmt.Sprintf("no log (%v)", l.endedErr)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// adopt adds a child to the state file, so that Sweep ends it if this process dies.
func (l *Lab) adopt(pid int) error {
	id, err := process.Identify(pid)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.State.Children[:0]
	for _, c := range l.State.Children {
		if c.Alive() {
			kept = append(kept, c)
		}
	}
	l.State.Children = append(kept, id)
	return l.State.save(l.dir)
}

// Ended returns a channel that is closed when the emulator has ended by itself;
// Failure then returns how.
func (l *Lab) Ended() <-chan struct{} { return l.ended }

// Failure returns the end of the emulator's log; call it after [Lab.Ended] was closed.
func (l *Lab) Failure() error {
	return fmt.Errorf("the emulated radio network has ended: %s", l.lastLog())
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

// Folder returns the lab's own folder, which is removed with it.
func (l *Lab) Folder() string { return filepath.Join(l.dir, l.State.Name) }

// Down removes the lab. What was started in its nodes and still runs is ended.
func (l *Lab) Down(ctx context.Context) error {
	if l.forward != nil {
		l.forward.close()
	}
	if l.emulator != nil {
		l.emulator.Process.Signal(syscall.SIGTERM)
		select {
		case <-l.ended:
		case <-time.After(2 * time.Second):
			l.emulator.Process.Kill()
			<-l.ended
		}
	}
	return l.State.remove(ctx, l.dir)
}

// SetControlLink cuts or restores a node's control link, as when a vehicle
// drives out of reach.
func (l *Lab) SetControlLink(role radio.Role, up bool) error {
	return SetControlLink(&l.State, role, up)
}
