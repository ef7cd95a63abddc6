package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"linktrial/internal/atomicfile"
	"linktrial/internal/filelock"
	"linktrial/internal/inputfile"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
)

// DefaultStateDir is where labs write what must be removed after a crash. It
// lies on a file system that a reboot empties, as a reboot empties the kernel
// of namespaces.
const DefaultStateDir = "/run/linktrial/labs"

// prefix of every namespace a lab makes; nothing without it is ever touched.
const prefix = "lt-"

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,20}$`)

// namespaceForm is what [Start] calls namespaces; nothing else is ever removed.
var namespaceForm = regexp.MustCompile(`^` + prefix + `[a-z0-9][a-z0-9-]{0,60}$`)

// State is a lab as written to its folder: enough to use it and to remove it.
type State struct {
	Name     string             `json:"name"`
	Owner    process.Identity   `json:"owner"`    // the process that holds the lab
	Children []process.Identity `json:"children"` // what it started
	Radio    string             `json:"radio"`
	Topology string             `json:"topology"`
	Nodes    []NodeState        `json:"nodes"`
	Control  string             `json:"control"`       // namespace of the control network
	Air      string             `json:"air,omitempty"` // namespace of plain radios' air; empty: the radios are emulated
	// Orchestrator is the URL under which agents in the nodes reach the orchestrator.
	Orchestrator  string `json:"orchestrator"`
	ControlSocket string `json:"control_socket,omitempty"` // of the emulator; empty with plain radios
	Emulator      int    `json:"emulator"`                 // its PID, while it runs
	// EmulatorDown is since when and why the emulator does not run; nil: it runs.
	EmulatorDown *Down `json:"emulator_down,omitempty"`
}

// Down is a process of a lab that does not run.
type Down struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
	Final  bool      `json:"final,omitempty"` // it is not started again
}

// For people.
func (d *Down) String() string {
	text := fmt.Sprintf("the emulated radios ended at %s (%s)", unit.Clock(d.Since), d.Reason)
	if d.Final {
		return text + "; remove the lab and bring it up again: linktrial lab down, linktrial lab up"
	}
	return text + "; they are being started again, nodes and agents stay up"
}

// NodeState is one node of a lab.
type NodeState struct {
	Role           radio.Role `json:"role"`
	Namespace      string     `json:"namespace"`
	RadioAddress   string     `json:"radio_address"`
	ControlAddress string     `json:"control_address"`
}

// Running reports whether the process that holds the lab is alive.
func (s *State) Running() bool { return s.Owner.Alive() }

// NamespacePath is the file of a namespace.
func NamespacePath(name string) string { return namespace.Path(name) }

func statePath(dir, name string) string { return filepath.Join(dir, name, "lab.json") }

func (s *State) save(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	path := statePath(dir, s.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("lab state: %w", err)
	}
	if err := atomicfile.Write(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("lab state: %w", err)
	}
	return nil
}

// maxState bounds the file of a lab, in bytes: some hundred for each node and process.
const maxState = 1 << 20

// Damaged is the error of a lab whose state cannot be read.
type Damaged struct {
	Name  string
	dir   string // of all labs
	cause error
}

func (d *Damaged) Error() string {
	remedy := "remove the lab with 'linktrial lab down --name " + d.Name + "'"
	if !nameForm.MatchString(d.Name) {
		remedy = "no lab has such a name: remove " + filepath.Join(d.dir, d.Name)
	}
	return fmt.Sprintf("the state of lab %q cannot be read: %v; %s", d.Name, d.cause, remedy)
}

func (d *Damaged) Unwrap() error { return d.cause }

// Remove removes what the lab has by its name alone: the namespaces of all roles, the
// processes inside them, and its folder. It cannot end a process that still holds the
// lab: only the state names that.
func (d *Damaged) Remove(ctx context.Context) error {
	if !nameForm.MatchString(d.Name) {
		return d
	}
	s := State{Name: d.Name, Control: controlNamespace(d.Name), Air: airNamespace(d.Name)}
	for _, role := range radio.Roles {
		s.Nodes = append(s.Nodes, NodeState{Role: role, Namespace: nodeNamespace(d.Name, role)})
	}
	return s.remove(ctx, d.dir)
}

func nodeNamespace(lab string, role radio.Role) string { return prefix + lab + "-" + string(role) }

func controlNamespace(lab string) string { return prefix + lab + "-control" }

// Load reads the state of a lab. It fails with os.ErrNotExist where there is none, and
// with [Damaged] where it cannot be read.
func Load(dir, name string) (*State, error) {
	path := statePath(dir, name)
	b, err := inputfile.Read(path, maxState)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, &Damaged{name, dir, err}
	}
	s, err := parseState(b, name)
	if err != nil {
		return nil, &Damaged{name, dir, fmt.Errorf("%s: %w", path, err)}
	}
	return s, nil
}

// parseState decodes the state of the lab of a name. What it names is removed with the
// lab, so nothing of it may be other than a lab's.
func parseState(b []byte, name string) (*State, error) {
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	if s.Name != name || !nameForm.MatchString(s.Name) {
		return nil, fmt.Errorf("it is of lab %.60q, expected lower-case letters, digits and hyphens as its folder has them", s.Name)
	}
	for _, n := range s.Nodes {
		if !namespaceForm.MatchString(n.Namespace) {
			return nil, fmt.Errorf("namespace %.60q is not one of a lab", n.Namespace)
		}
	}
	for _, name := range []string{s.Control, s.Air} {
		if name != "" && !namespaceForm.MatchString(name) {
			return nil, fmt.Errorf("namespace %.60q is not one of a lab", name)
		}
	}
	return &s, nil
}

// lock keeps other processes from making and sweeping labs until unlock: they
// would take a lab that is being made for one that was left behind. It waits for
// them, seconds at most. The kernel drops the lock with the process.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("lock of labs: %w", err)
	}
	f, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock of labs: %w", err)
	}
	if err := filelock.Lock(f, filelock.Exclusive); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock of labs: %w", err)
	}
	return func() { filelock.Release(f) }, nil
}

// List reads the states of all labs, running or left behind, and returns those that
// cannot be read beside them.
func List(dir string) (labs []*State, damaged []*Damaged, err error) {
	unlock, err := lock(dir)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	return list(dir)
}

// list is [List] under the lock.
func list(dir string) (labs []*State, damaged []*Damaged, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list labs: %w", err)
	}
	for _, e := range entries {
		s, err := Load(dir, e.Name())
		var d *Damaged
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// Killed between making the folder and writing the state: nothing else exists yet.
			os.RemoveAll(filepath.Join(dir, e.Name()))
		case errors.As(err, &d):
			damaged = append(damaged, d)
		case err != nil:
			return nil, nil, err
		default:
			labs = append(labs, s)
		}
	}
	return labs, damaged, nil
}

// Sweep removes every lab whose holder has died: its processes, namespaces and
// folders. It returns the names of those it removed, and the labs whose state cannot
// be read, of which it removes nothing. What keeps one lab from being removed does not
// keep the others.
func Sweep(ctx context.Context, dir string) (removed []string, damaged []*Damaged, err error) {
	unlock, err := lock(dir)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	states, damaged, err := list(dir)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, s := range states {
		if s.Running() {
			continue
		}
		if err := s.remove(ctx, dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the lab %q that an earlier process left behind: %w", s.Name, err))
			continue
		}
		removed = append(removed, s.Name)
	}
	return removed, damaged, errors.Join(errs...)
}

// remove deletes everything of a lab that no process holds. Devices go with
// their namespaces.
func (s *State) remove(ctx context.Context, dir string) error {
	var errs []error
	for _, c := range s.Children {
		errs = append(errs, c.End(ctx, 2*time.Second))
	}
	for _, n := range s.Nodes {
		errs = append(errs, deleteNamespace(ctx, n.Namespace))
	}
	for _, name := range []string{s.Control, s.Air} {
		if name != "" {
			errs = append(errs, deleteNamespace(ctx, name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, s.Name))
}

// deleteNamespace ends the processes that still run inside a namespace of a lab
// and removes it.
func deleteNamespace(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, prefix) {
		return fmt.Errorf("namespace %q is not one of a lab", name)
	}
	if err := endInside(ctx, name); err != nil {
		return err
	}
	return RemoveNamespace(name)
}

// endInside ends the processes whose network namespace is the named one.
func endInside(ctx context.Context, name string) error {
	all, err := processesIn(name)
	if err != nil {
		return err
	}
	for _, id := range all {
		if err := id.End(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return nil
}
