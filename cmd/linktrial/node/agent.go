package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"linktrial/agents/agent"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/identity"
	"linktrial/internal/loopback"
	"linktrial/internal/radio"
	"linktrial/internal/watchdog"
)

func newAgent(s *setting.Settings) *cobra.Command {
	var cfg agent.Config
	var role, join, spare string
	var more []string
	var pin bool
	cmd := &cobra.Command{
		Use:     "agent",
		GroupID: setting.GroupNodes,
		Short:   "Run this node's agent, which connects to the orchestrator",
		Long: `Agent runs this node's agent until a signal ends it.

Without --radio-address no radio is set up: the node is connected, shows its clock,
disk and drivers, and takes part in no run. It may have no --role then.`,
		Example: `  linktrial agent --name client --role client --radio prc-117g-anw2c --device eth1 \
    --radio-address 10.78.0.1 --orchestrator https://10.20.0.10:7700`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Role = radio.Role(role)
			if err := checkRadioFlags(cmd.Flags(), &cfg); err != nil {
				return err
			}
			if cfg.Name == "" {
				cfg.Name = role
			}
			if err := identity.CheckName(cfg.Name); err != nil { // before it is part of a path
				return fmt.Errorf("--name: %w", err)
			}
			if cfg.StateDir == "" {
				cfg.StateDir = filepath.Join(s.Data, "agents", cfg.Name)
			}
			cfg.Orchestrator, cfg.DriversDir = s.Orchestrator, s.Drivers
			cfg.Version, cfg.Logger = s.Version, s.Logger()
			cfg.Drivers.HoldNetwork = []string{"agent", holdNetwork}
			cfg.Trust.Pin = pin || pins(cmd.Context(), s.Orchestrator, cfg.RadioControl)
			var err error
			if cfg.SparePorts, err = agent.ParseSparePorts(spare); err != nil {
				return fmt.Errorf("--spare-ports: %w", err)
			}
			if cfg.More, err = agent.ParseMoreRadios(more); err != nil {
				return fmt.Errorf("--more-radio: %w", err)
			}
			if cfg.Service, err = watchdog.Open(func(err error) { cfg.Logger.Warn("the service manager could not be notified", "error", err) }); err != nil {
				return err
			}
			defer cfg.Service.Close()
			if join == "" {
				return agent.Run(cmd.Context(), cfg)
			}
			return runJoined(cmd.Context(), join, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Name, "name", "", "name of the node (default: its role)")
	f.StringVar(&role, "role", "", "client, relay or server; can be left out where no radio is set up and --name is given")
	f.StringVar(&cfg.StateDir, "state", "", "folder for journals (default: in the data folder)")
	f.StringVar(&cfg.TokenFile, "token-file", "", "file with a one-time token to enrol with at the first start; it may appear later than the agent")
	f.StringVar(&cfg.Trust.File, "trust", "", "file with the keys whose run sheets this node follows (default: those of its enrolment)")
	f.BoolVar(&pin, "pin", false, "without keys of --trust or of an enrolment, trust the first that the orchestrator shows, and no other after that (always so where the orchestrator is on this machine)")
	f.StringVar(&cfg.RadioAddress, "radio-address", "", "this node's IP address on the radio network (default: no radio is set up)")
	f.StringVar(&cfg.Device, "device", "radio0", "the radio's network interface")
	f.StringArrayVar(&more, "more-radio", nil, "DEVICE=ADDRESS, a further interface that leads to a radio, with this node's IP address there, as a relay between two radios has; can be given several times")
	f.StringVar(&cfg.Drivers.Runner, "runner", agent.RunnerExec, "how drivers run: exec, as processes (those that have only an image, as containers), or docker, as containers")
	f.StringVar(&cfg.Drivers.Engine, "engine", "", "address of the container engine (default: DOCKER_HOST, else its usual socket)")
	f.StringToStringVar(&cfg.Drivers.Images, "image", nil, "PROTOCOL=IMAGE, the image that carries a protocol (default: the engine's image with its label)")
	f.BoolVar(&cfg.Drivers.Unconfined, "unconfined", false, "let drivers that run as processes do all that the agent may (docs/security-drivers.md: what a driver reaches)")
	f.StringArrayVar(&cfg.Drivers.Reads, "driver-reads", setting.DriverReads(), "file or folder that confined drivers read and execute, beyond the system's and their own, such as an interpreter's; can be given several times (or LINKTRIAL_DRIVER_READS)")
	f.StringVar(&cfg.Radio, "radio", "", "profile of the attached radio (a real one)")
	f.StringVar(&cfg.RadioControl, "radio-control", "", "control socket of the emulated radio network (instead of --radio)")
	f.StringVar(&cfg.RadioHost, "radio-host", "", "address at which this node reaches its own radio, for its telemetry (default: as the radio's profile says)")
	f.StringVar(&spare, "spare-ports", agent.DefaultSparePorts, "ports for listeners whose own one another program holds, or none")
	f.StringVar(&join, "radio-join", "", "socket of 'linktrial lab radios', to which this node brings its network; with --radio-control")
	cmd.MarkFlagsMutuallyExclusive("radio", "radio-control")
	cmd.MarkFlagsMutuallyExclusive("radio", "radio-join")
	cmd.AddCommand(newHoldNetwork())
	return cmd
}

// checkRadioFlags refuses flags of a radio without its address, and a role that does not go
// with them. Without an address it leaves no interface.
func checkRadioFlags(f *pflag.FlagSet, cfg *agent.Config) error {
	if cfg.RadioAddress == "" && cfg.RadioControl == "" {
		for _, name := range []string{"device", "radio", "more-radio", "radio-host"} {
			if v := f.Lookup(name); v.Changed && v.Value.String() != "" {
				return fmt.Errorf("--%s is given, and --radio-address is missing: name this node's IP address on the radio network, or leave both out where no radio is set up", name)
			}
		}
		cfg.Device = ""
		if cfg.Role == "" && cfg.Name != "" {
			return nil
		}
	}
	if cfg.RadioAddress == "" && cfg.RadioControl != "" {
		return errors.New("--radio-address is missing: name this node's IP address on the emulated radio network")
	}
	if !slices.Contains(radio.Roles, cfg.Role) {
		return fmt.Errorf("--role %q, expected client, relay or server", cfg.Role)
	}
	return nil
}

// pins reports whether the node may trust the first key that it is shown: its
// orchestrator is on this machine, or it is a node of a lab, whose control
// network does not leave the machine.
func pins(ctx context.Context, orchestrator, radioControl string) bool {
	u, err := url.Parse(orchestrator)
	if err != nil || u.Scheme != "http" {
		return false
	}
	if radioControl != "" {
		return true
	}
	return loopback.Only(ctx, u.Hostname())
}
