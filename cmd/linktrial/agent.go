package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"linktrial/agents/agent"
	"linktrial/internal/radio"
)

func newAgent(s *settings) *cobra.Command {
	var cfg agent.Config
	var role string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run this node's agent; it connects out to the orchestrator",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch cfg.Role = radio.Role(role); cfg.Role {
			case radio.RoleClient, radio.RoleRelay, radio.RoleServer:
			default:
				return fmt.Errorf("--role %q, expected client, relay or server", role)
			}
			if cfg.Name == "" {
				cfg.Name = role
			}
			if cfg.StateDir == "" {
				cfg.StateDir = filepath.Join(s.data, "agents", cfg.Name)
			}
			cfg.Orchestrator, cfg.DriversDir = s.orchestrator, s.drivers
			cfg.Version, cfg.Logger = buildVersion(), s.logger()
			cfg.Drivers.HoldNetwork = []string{"agent", holdNetwork}
			return agent.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Name, "name", "", "name of the node (default: its role)")
	f.StringVar(&role, "role", "", "client, relay or server")
	f.StringVar(&cfg.StateDir, "state", "", "folder for journals (default: in the data folder)")
	f.StringVar(&cfg.TokenFile, "token-file", "", "file with a one-time token to enrol with at the first start; it may appear later than the agent")
	f.StringVar(&cfg.RadioAddress, "radio-address", "", "this node's IP address on the radio network")
	f.StringVar(&cfg.Device, "device", "radio0", "the radio's network interface")
	f.StringVar(&cfg.Drivers.Runner, "runner", agent.RunnerExec, "how drivers run: exec, as processes (those that have only an image, as containers), or docker, as containers")
	f.StringVar(&cfg.Drivers.Engine, "engine", "", "address of the container engine (default: DOCKER_HOST, else its usual socket)")
	f.StringToStringVar(&cfg.Drivers.Images, "image", nil, "PROTOCOL=IMAGE, the image that carries a protocol (default: the engine's image with its label)")
	f.StringVar(&cfg.Radio, "radio", "", "profile of the attached radio (a real one)")
	f.StringVar(&cfg.RadioControl, "radio-control", "", "control socket of the emulated radio network (instead of --radio)")
	f.StringVar(&cfg.RadioHost, "radio-host", "", "address at which this node reaches its own radio, for its telemetry (default: as the radio's profile says)")
	cmd.MarkFlagsMutuallyExclusive("radio", "radio-control")
	for _, name := range []string{"role", "radio-address"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // there is no such flag
		}
	}
	cmd.AddCommand(newHoldNetwork())
	return cmd
}
