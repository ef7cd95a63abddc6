package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linktrial/agents/agent"
	agenttrust "linktrial/agents/trust"
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
takes about five minutes on two cores; where it is built already, it is said
at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if k, err := uml.CachedKernel(cfg.CacheDir); err == nil {
				fmt.Printf("The guest kernel is there already: %s, built %s\n%s\n", k.Version, k.Built.Local().Format("2006-01-02 15:04"), k.Path)
				return nil
			}
			show := stageProgress(os.Stdout)
			cfg.Progress = show.stage
			k, err := uml.BuildKernel(cmd.Context(), cfg)
			show.finish()
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

// stages shows what a long command does now, and for how long it still will.
type stages struct {
	out      *os.File
	terminal bool
	name     string
	began    time.Time // of the stage
	said     time.Time
}

func stageProgress(out *os.File) *stages {
	return &stages{out: out, terminal: term.IsTerminal(int(out.Fd()))}
}

func (s *stages) stage(name string, share float64) {
	now := time.Now()
	if name != s.name {
		s.finish()
		s.name, s.began = name, now
		if !s.terminal {
			fmt.Fprintln(s.out, name)
		}
	}
	// A terminal follows closely; a log gets a line every half minute.
	every := 30 * time.Second
	if s.terminal {
		every = 200 * time.Millisecond
	}
	if now.Sub(s.said) < every {
		return
	}
	s.said = now
	left := ""
	if spent := now.Sub(s.began); share > 0.02 && share < 1 && spent > 2*time.Second {
		left = fmt.Sprintf("  about %s left", forPeople(spent.Seconds()*(1-share)/share))
	}
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K%s  %3.0f %%%s", name, 100*share, left)
	} else if left != "" {
		fmt.Fprintf(s.out, "%s  %3.0f %%%s\n", name, 100*share, left)
	}
}

func (s *stages) finish() {
	if s.terminal && s.name != "" {
		fmt.Fprintf(s.out, "\r\x1b[K%s: %s\n", s.name, time.Since(s.began).Round(time.Second))
	}
	s.name = ""
}

// newLabGuest is the first process of a guest.
func newLabGuest() *cobra.Command {
	return &cobra.Command{
		Use:    "guest DIR ORDERS",
		Short:  "Be the first process of a guest of the virtual-time lab",
		Args:   cobra.ExactArgs(2),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return guest.Main(cmd.Context(), guest.Config{Dir: args[0], Orders: args[1], Agent: []string{"lab", "guest-agent"}})
		},
	}
}

// newLabGuestAgent is an agent inside a guest. It is the ordinary agent: only
// its orders come from standard input instead of an orchestrator.
func newLabGuestAgent(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:    "guest-agent",
		Short:  "Execute one run sheet inside a guest of the virtual-time lab",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := bufio.NewReader(os.Stdin)
			line, err := in.ReadBytes('\n')
			if err != nil {
				return fmt.Errorf("orders of the agent: %w", err)
			}
			var a guest.Agent
			if err := json.Unmarshal(line, &a); err != nil {
				return fmt.Errorf("orders of the agent: %w", err)
			}
			finish := make(chan struct{})
			go func() {
				io.Copy(io.Discard, in) // its end is the word to finish
				close(finish)
			}()
			return agent.RunSheet(cmd.Context(), agent.Config{
				Name: a.Name, Role: a.Role, StateDir: a.StateDir, DriversDir: a.DriversDir, Device: a.Device,
				RadioAddress: a.RadioAddress, RadioControl: a.RadioControl, Place: a.Place, Trust: agenttrust.Config{File: a.Trust},
				FloorBytes: -1, // the folder is the host's, and its free space is not the guest's to know
				Version:    buildVersion(), Logger: s.logger(),
			}, a.Run, a.Sheet, finish)
		},
	}
}
