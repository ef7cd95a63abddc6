package lab

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
	"linktrial/emulator/tun"
	"linktrial/internal/radiocontrol/client"
	"linktrial/lab/join"
)

func newLabRadios(s *setting.Settings) *cobra.Command {
	var l labFlags
	var socket, control string
	cmd := &cobra.Command{
		Use:     "radios",
		Short:   "Emulate radios for nodes in networks of another program, such as a container engine",
		Example: `  linktrial lab radios --radio prc-117g-anw2c --topology vip-lot`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cat, err := s.LoadCatalog()
			if err != nil {
				return err
			}
			cfg, err := labConfig(s, cat, l)
			if err != nil {
				return err
			}
			key, err := client.NewLabKey(control)
			if err != nil {
				return err
			}
			return join.Serve(cmd.Context(), join.Config{
				Socket: socket, Logger: s.Logger(),
				Radios: tun.Config{Network: cfg.Network, ControlSocket: control, Telemetry: true, LabKey: key},
			})
		},
	}
	l.register(cmd)
	cmd.Flags().StringVar(&socket, "join", "/run/linktrial/join.sock", "Unix socket to which nodes connect (agent --radio-join)")
	cmd.Flags().StringVar(&control, "radio-control", "/run/linktrial/emulator.sock", "control socket of the emulated radios (agent --radio-control)")
	return cmd
}
