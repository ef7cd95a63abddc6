package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/agents/preflight"
	"linktrial/agents/trust"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/driverfolder"
	"linktrial/internal/identity"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
	"linktrial/internal/watchdog"
)

// Config of an agent.
type Config struct {
	Name         string     // of the node
	Role         radio.Role // in every run; can be empty where no radio is set up: the node takes part in none
	Orchestrator string     // URL; not used by [RunSheet]
	TokenFile    string     // with a one-time token to enrol with, where the node has no certificate; can be empty
	StateDir     string
	DriversDir   string // can be a list of folders, as PATH has it
	Drivers      DriversConfig

	RadioAddress string // of this node on the radio network; empty: from the run sheet
	Device       string // the radio's interface, "radio0"
	// More are further interfaces that lead to radios, as a relay between two radios has.
	More         []preflight.Radio
	Radio        string // profile attached; empty where the radio is emulated, or real and not named
	RadioControl string // the emulator's control socket; empty with a real radio
	// RadioHost is the address at which this node reaches its own radio, for its
	// telemetry; empty: from the radio's profile, and an emulated radio is not
	// read.
	RadioHost string
	setUp     bool // a person set up the radio with the node connected: no flag names it
	// PowerSupplies is where the kernel lists the node's batteries; empty: its own folder.
	PowerSupplies string
	// Place overrides the place of the trials in provenance. Empty: [journal.PlaceEmulated]
	// with RadioControl, for which the lab has to vouch, [journal.PlaceReal] with Radio, and
	// [journal.PlaceUnnamed] with neither.
	Place string
	// Peers are radio addresses of other nodes by role, for a radio whose
	// addresses are not in the run sheet.
	Peers map[radio.Role]string

	// SparePorts are for listeners whose own port another program of the node holds.
	SparePorts executor.PortRange

	// Faults means that faults of the apparatus are injected in virtual time: the agent
	// watches itself and the radio as it does in real time. Elsewhere it always does.
	Faults bool

	// Clock is the node's; nil: the kernel's, and in a lab that clock with the offset that
	// the lab gives this node ([wallclock.Path]).
	Clock *wallclock.Clock

	// FloorBytes is the free disk space below which no further trial starts;
	// 0 is [DefaultFloor], negative none.
	FloorBytes int64
	// Window is how long the leading agent may call the orchestrator between two
	// trials with in-band control; 0 is 200 ms. Windows in which no answer arrives
	// are followed by longer ones, of up to 3 s.
	Window time.Duration

	// JudgementWait is how long the leading agent keeps a run open after its last trial, for
	// a trial that has to be repeated; 0: long enough for the other nodes' journals.
	JudgementWait time.Duration

	// Service is what the service manager is told; nil: none has started this process.
	Service *watchdog.Service

	// Trust is whose run sheets are executed; its Dir is the state folder.
	Trust trust.Config

	Version string // of linktrial
	Logger  *slog.Logger
}

// DefaultFloor is the free disk space that is left to others.
const DefaultFloor = 64 << 20

// DriversConfig is how drivers are run.
type DriversConfig struct {
	Runner string // [RunnerExec], the default, or [RunnerDocker]
	// Engine is the address of the container engine, as "unix:///run/docker.sock";
	// empty: DOCKER_HOST, else the engine's usual socket.
	Engine string
	// Images are the images to use by protocol; for the others, those of the engine
	// that are labelled as a driver's.
	Images map[string]string
	// HoldNetwork are the arguments with which this very program calls [docker.Hold].
	HoldNetwork []string
	// Unconfined drivers, as processes, may do all that the agent may. Reads are
	// files and folders that confined ones read beyond the system's and their own.
	Unconfined bool
	Reads      []string
	// User is the number of the user that confined ones run as; 0: the machine's choice.
	User uint32
}

// Kinds of runner.
const (
	// RunnerExec runs drivers as plain processes; as containers only those of
	// which the folder has a manifest that names an image, and no program.
	RunnerExec = "exec"
	// RunnerDocker runs the images of a container engine.
	RunnerDocker = "docker"
)

func (c *Config) complete() error {
	var wrong []string
	if c.Name == "" {
		wrong = append(wrong, "a name")
	}
	if !slices.Contains(radio.Roles, c.Role) && (c.Role != "" || !c.withoutRadio()) {
		wrong = append(wrong, fmt.Sprintf("a role (client, relay or server, not %q)", c.Role))
	}
	if c.StateDir == "" {
		wrong = append(wrong, "a state folder")
	}
	if c.DriversDir == "" {
		wrong = append(wrong, "a folder of drivers")
	}
	if len(wrong) > 0 {
		return errors.New("the agent needs " + strings.Join(wrong, ", "))
	}
	// Before anything is made: the name becomes part of paths.
	if err := c.check(); err != nil {
		return err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.FloorBytes == 0 {
		c.FloorBytes = DefaultFloor
	}
	if c.Window == 0 {
		c.Window = 200 * time.Millisecond
	}
	if c.Place == "" {
		switch {
		case c.RadioControl != "":
			c.Place = journal.PlaceEmulated
		case c.Radio != "":
			c.Place = journal.PlaceReal
		default:
			c.Place = journal.PlaceUnnamed
		}
	}
	state, err := filepath.Abs(c.StateDir)
	if err != nil {
		return fmt.Errorf("folder %s: %w", c.StateDir, err)
	}
	c.StateDir = state
	if c.DriversDir, err = driverfolder.Abs(c.DriversDir); err != nil {
		return err
	}
	clock := os.Getenv(wallclock.Variable)
	if c.RadioControl != "" {
		clock = wallclock.Path(c.RadioControl, string(c.Role))
	}
	if c.Clock == nil && clock != "" {
		if c.Clock, err = wallclock.Of(clock); err != nil {
			return err
		}
	}
	c.Trust.Dir, c.Trust.Logger = c.StateDir, c.Logger
	for _, dir := range []string{c.StateDir, c.runsDir(), c.pidDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("state folder: %w", err)
		}
	}
	return nil
}

// check refuses values that cannot be right whatever the state of the node.
func (c *Config) check() error {
	if err := identity.CheckName(c.Name); err != nil {
		return err
	}
	if a := c.RadioAddress; a != "" {
		if _, err := netip.ParseAddr(a); err != nil {
			return fmt.Errorf("radio address %.100q (--radio-address), expected an IP address such as 10.78.0.1", a)
		}
	}
	for role, a := range c.Peers {
		if _, err := netip.ParseAddr(a); err != nil {
			return fmt.Errorf("radio address %.100q of the %s, expected an IP address such as 10.78.0.1", a, role)
		}
	}
	if err := checkDevice(c.Device); err != nil {
		return err
	}
	for i, m := range c.More {
		same := func(o preflight.Radio) bool { return o.Device == m.Device }
		if m.Device == c.Device || slices.ContainsFunc(c.More[:i], same) {
			return fmt.Errorf("further radio %s (--more-radio) is given twice, or is that of --device", m.Device)
		}
	}
	return nil
}

// withoutRadio reports whether nobody has set a radio up: the node is connected, and takes
// part in no run.
func (c *Config) withoutRadio() bool {
	return c.Orchestrator != "" && c.Device == "" && c.RadioAddress == "" && c.Radio == "" && c.RadioControl == "" && len(c.More) == 0
}

// interfaces are those that lead to radios.
func (c *Config) interfaces() []string {
	out := []string{c.Device}
	for _, m := range c.More {
		out = append(out, m.Device)
	}
	return out
}

func checkDevice(name string) error {
	if strings.ContainsAny(name, "/ \t\n\x00") || len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("interface %.100q (--device), expected the name of a network interface of at most %d characters, such as radio0", name, unix.IFNAMSIZ-1)
	}
	return nil
}

// ParseMoreRadios reads further interfaces of a node that lead to radios, each as
// DEVICE=ADDRESS.
func ParseMoreRadios(all []string) (out []preflight.Radio, err error) {
	for _, s := range all {
		device, address, _ := strings.Cut(s, "=")
		a, err := netip.ParseAddr(address)
		if err != nil || checkDevice(device) != nil || device == "" {
			return nil, fmt.Errorf("further radio %.100q, expected an interface and its IP address such as eth2=10.78.0.2", s)
		}
		out = append(out, preflight.Radio{Device: device, Address: a.String()})
	}
	return out, nil
}

// faultsPossible reports whether processes, nodes, radios and clocks can fail. In virtual
// time they do only where faults are injected.
func (c *Config) faultsPossible() bool { return c.Place != journal.PlaceVirtual || c.Faults }

// emulated reports whether the node's radio is emulated, as far as the agent was told:
// results have it where the lab's emulator proves it.
func (c *Config) emulated() bool {
	return c.Place == journal.PlaceEmulated || c.Place == journal.PlaceVirtual
}

// inLab reports whether a lab has to vouch for the node. The guests of the virtual-time
// lab have no other radio, and their lab speaks for them.
func (c *Config) inLab() bool { return c.Place == journal.PlaceEmulated }

// boot is the identity of this start of the node. In virtual time it is the same for all
// guests: a run has one.
func (c *Config) boot() string {
	if c.Place == journal.PlaceVirtual {
		return "guest"
	}
	return wallclock.Boot()
}

func (c *Config) runsDir() string { return filepath.Join(c.StateDir, "runs") }
func (c *Config) pidDir() string  { return filepath.Join(c.StateDir, "pids") }
