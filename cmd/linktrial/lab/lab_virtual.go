package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"linktrial/agents/agent"
	"linktrial/agents/runner"
	agenttrust "linktrial/agents/trust"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/unit"
	"linktrial/lab/uml"
	"linktrial/lab/uml/guest"
)

func newLabKernel() *cobra.Command {
	var cfg uml.BuildConfig
	cmd := &cobra.Command{
		Use:   "kernel",
		Short: "Build the guest kernel of the virtual-time lab, once",
		Long: `Build the guest kernel of the virtual-time lab from Debian's kernel source
package and keep it in a cache outside the checkout (docs/virtual-time.md). It
takes about five minutes on two cores, and no time where the kernel is already
built.`,
		Example: `  linktrial lab kernel`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if k, err := uml.CachedKernel(cfg.CacheDir); err == nil {
				fmt.Printf("The guest kernel is already built: %s, at %s\n%s\n", k.Version, unit.Moment(k.Built), k.Path)
				return nil
			}
			show := terminal.NewStages(os.Stdout)
			cfg.Progress = show.Stage
			k, err := uml.BuildKernel(cmd.Context(), cfg)
			show.Finish()
			if err != nil {
				return err
			}
			if k.Note != "" {
				fmt.Println("note:", k.Note)
			}
			fmt.Printf("The guest kernel is ready: %s\n%s\n", k.Version, k.Path)
			return nil
		},
	}
	cmd.Flags().IntVar(&cfg.Jobs, "jobs", 0, "compilers at a time (default: one for each processor)")
	return cmd
}

// newLabGuest returns the command that runs as the first process of a guest.
func newLabGuest() *cobra.Command {
	return &cobra.Command{
		Use:    "guest DIR JOB",
		Short:  "Run as the first process of a guest of the virtual-time lab",
		Args:   cobra.ExactArgs(2),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return guest.Main(cmd.Context(), guest.Config{Dir: args[0], Job: args[1], Agent: []string{"lab", "guest-agent"}, Emulator: []string{"lab", "emulate"}, Query: []string{"lab", "guest-query"}})
		},
	}
}

// newLabGuestQuery returns the command that queries drivers inside a guest.
func newLabGuestQuery() *cobra.Command {
	return &cobra.Command{
		Use:    "guest-query",
		Short:  "Query drivers inside a guest of the virtual-time lab",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var p guest.Query
			if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
				return fmt.Errorf("standard input of the query: %w", err)
			}
			if err := p.View.Enter(); err != nil {
				return err
			}
			r := runner.New(runner.Config{Dir: p.View.DriverFolders(), Confined: true, DriverUser: p.View.User})
			var list []guest.Driver
			for _, name := range p.Names {
				s := r.Query(cmd.Context(), name)
				list = append(list, guest.Driver{Name: name, Unsupported: s.Driver.Unsupported, Choices: s.Choices, Remarks: s.Remarks()})
			}
			return json.NewEncoder(os.Stdout).Encode(list)
		},
	}
}

// newLabGuestAgent returns the command of an agent inside a guest. It is the ordinary
// agent, except that its run sheet comes from standard input, not from an orchestrator.
func newLabGuestAgent(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:    "guest-agent",
		Short:  "Execute one run sheet inside a guest of the virtual-time lab",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := bufio.NewReader(os.Stdin)
			line, err := in.ReadBytes('\n')
			if err != nil {
				return fmt.Errorf("standard input of the agent: %w", err)
			}
			a, err := guest.ParseAgent(line)
			if err != nil {
				return err
			}
			if err := a.View.Enter(); err != nil {
				return err
			}
			finish := make(chan struct{})
			go func() {
				io.Copy(io.Discard, in) // the end of the input is the signal to finish
				close(finish)
			}()
			return agent.RunSheet(cmd.Context(), agent.Config{
				Name: a.Name, Role: a.Role, StateDir: a.StateDir, DriversDir: a.View.DriverFolders(), Device: a.Device,
				RadioAddress: a.RadioAddress, RadioControl: a.RadioControl, Place: a.Place, Faults: a.Faults, Trust: agenttrust.Config{File: a.Trust},
				Drivers:    agent.DriversConfig{User: a.View.User},
				FloorBytes: -1, // the folder is on the host, whose free space the guest cannot see
				Version:    s.Version, Logger: s.Logger(),
			}, a.Run, a.Sheet, finish)
		},
	}
}
