package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/driver"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/emulator/tun"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/internal/wallclock"
	"linktrial/lab/netns"
	"linktrial/orchestrator/catalog"
)

func newLab(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "lab",
		GroupID: setting.GroupLab,
		Short:   "Bring up and remove nodes and emulated radios on this machine",
	}
	cmd.AddCommand(newLabUp(s), newLabDown(), newLabStatus(), newLabLink(), newLabRadios(s), newLabHold(s), newLabEmulate(s), newLabKernel(), newLabGuest(), newLabGuestAgent(s), newLabGuestQuery())
	return cmd
}

// labFlags are the flags of every lab.
type labFlags struct{ name, radio, topology string }

func (l *labFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.name, "name", "lab", "name of the lab")
	f.StringVar(&l.radio, "radio", "prc-117g-anw2c", "radio profile to emulate (see 'linktrial profiles')")
	f.StringVar(&l.topology, "topology", "vip-lot", "topology (see 'linktrial profiles')")
}

// labConfig returns the configuration of a lab with a radio at a topology.
func labConfig(s *setting.Settings, cat *catalog.Catalog, l labFlags) (netns.Config, error) {
	p, t := cat.Profile(l.radio), cat.Topology(l.topology)
	if p == nil {
		return netns.Config{}, fmt.Errorf("no radio %q; there are %v", l.radio, cat.Profiles())
	}
	if t == nil {
		return netns.Config{}, fmt.Errorf("no topology %q; there are %v", l.topology, cat.Topologies())
	}
	n, err := radio.Resolve(p, t)
	if err != nil {
		return netns.Config{}, err
	}
	u, err := url.Parse(s.Orchestrator)
	if err != nil || u.Host == "" {
		return netns.Config{}, fmt.Errorf("--orchestrator %q, expected a URL such as %s", s.Orchestrator, setting.DefaultOrchestrator)
	}
	self, err := s.Executable()
	if err != nil {
		return netns.Config{}, err
	}
	return netns.Config{
		Name: l.name, Radio: l.radio, Topology: l.topology, Network: n,
		Forward: u.Host, Emulator: []string{self, "lab", "emulate"}, Log: s.Logger(),
	}, nil
}

func newLabUp(s *setting.Settings) *cobra.Command {
	var l labFlags
	var agents bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring up nodes and emulated radios, and leave them running",
		Example: `  linktrial lab up --agents
  linktrial lab up --radio prc-117g-anw2c --topology vip-lot --name meadow`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := netns.Possible(); err != nil {
				return err
			}
			cat, err := s.LoadCatalog()
			if err != nil {
				return err
			}
			if _, err := labConfig(s, cat, l); err != nil { // here, where the user sees the error
				return err
			}
			if _, err := sweepLabs(ctx, os.Stderr, netns.DefaultStateDir, l.name); err != nil {
				return err
			}
			if err := holdInBackground(ctx, s, l, agents); err != nil {
				return err
			}
			st, err := netns.Load(netns.DefaultStateDir, l.name)
			if err != nil {
				return err
			}
			return describeLab(st, agents)
		},
	}
	l.register(cmd)
	cmd.Flags().BoolVar(&agents, "agents", false, "also start an agent in each node, and keep it running")
	return cmd
}

// labNice is the nice value of a lab's session: ten times the share of another one.
const labNice = -10

// holdInBackground starts the process that runs the lab, and blocks until the lab is
// up, has failed, or ctx ends.
func holdInBackground(ctx context.Context, s *setting.Settings, l labFlags, agents bool) error {
	if err := os.MkdirAll(filepath.Dir(netns.DefaultStateDir), 0o755); err != nil {
		return fmt.Errorf("%w (the lab needs root)", err)
	}
	logPath := filepath.Join(filepath.Dir(netns.DefaultStateDir), "lab-"+filepath.Base(l.name)+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := s.Executable()
	if err != nil {
		return err
	}
	args := []string{"lab", "hold", "--name", l.name, "--radio", l.radio, "--topology", l.topology,
		"--orchestrator", s.Orchestrator, "--data", s.Data}
	args = append(args, s.Folders()...)
	if agents {
		args = append(args, "--agents")
	}
	hold := exec.Command(self, args...)
	hold.Stderr = log
	hold.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := hold.StdoutPipe()
	if err != nil {
		return err
	}
	if err := hold.Start(); err != nil {
		return err
	}
	up := make(chan error, 1)
	go func() {
		var word string
		if _, err := fmt.Fscanln(out, &word); err != nil || word != "up" {
			hold.Wait()
			b, _ := os.ReadFile(logPath)
			up <- fmt.Errorf("the lab did not start: %s", cmp.Or(string(b), "no log"))
			return
		}
		up <- nil
	}()
	select {
	case err := <-up:
		return err
	case <-ctx.Done():
		hold.Process.Signal(syscall.SIGTERM)
		return errors.Join(ctx.Err(), <-up)
	}
}

func describeLab(st *netns.State, agents bool) error {
	fmt.Printf("Lab %s is up: radio %s, topology %s, emulator process %d.\n\n", st.Name, st.Radio, st.Topology, st.Emulator)
	if err := terminal.Columns("NODE\tNAMESPACE\tRADIO ADDRESS\tCONTROL ADDRESS", func(w io.Writer) {
		for _, n := range st.Nodes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", n.Role, n.Namespace, n.RadioAddress, n.ControlAddress)
		}
	}); err != nil {
		return err
	}
	if agents {
		fmt.Printf("\nAn agent runs in each node. Next: linktrial run plans/quickstart.yaml\n")
	} else {
		n := st.Nodes[0]
		fmt.Printf("\nNext, an agent in each node, for example:\n  ip netns exec %s linktrial agent --name %s --role %s --orchestrator %s \\\n    --radio-address %s --radio-control %s\nor all at once: linktrial lab up --agents\n",
			n.Namespace, n.Role, n.Role, st.Orchestrator, n.RadioAddress, st.ControlSocket)
	}
	fmt.Printf("Look inside: ip netns exec %s ping %s\nRemove it:   linktrial lab down --name %s\n",
		st.Nodes[0].Namespace, st.Nodes[len(st.Nodes)-1].RadioAddress, st.Name)
	return nil
}

func newLabHold(s *setting.Settings) *cobra.Command {
	var l labFlags
	var agents bool
	cmd := &cobra.Command{
		Use:    "hold",
		Short:  "Run a lab until a signal ends it (started by 'lab up')",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cat, err := s.LoadCatalog()
			if err != nil {
				return err
			}
			cfg, err := labConfig(s, cat, l)
			if err != nil {
				return err
			}
			// The radios run in real time, whatever else the machine computes. Where
			// that is not allowed they are only later, and their status says so.
			if err := process.PreferSession(labNice); err != nil {
				cfg.Log.Debug("the lab has no priority", "error", err)
			}
			lab, err := netns.Up(ctx, cfg)
			if err != nil {
				return err
			}
			defer func() {
				down, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				if err := lab.Down(down); err != nil {
					cfg.Log.Error("lab could not be removed", "error", err)
				}
			}()
			if agents {
				keys, err := driver.SigningKeys(ctx, s.Orchestrator)
				if err != nil {
					cfg.Log.Info("the agents will trust the first signing key that their orchestrator shows", "reason", err)
				}
				as, err := startAgents(s, lab, filepath.Join(s.Data, "agents", lab.State.Name), keys, cfg.Log)
				defer as.stop()
				if err != nil {
					return err
				}
			}
			fmt.Println("up")
			os.Stdout.Close() // the process that started this one reads no further
			// An emulator that ends again and again leaves nodes and agents up: their run
			// pauses and says why, and 'lab status' does.
			<-ctx.Done()
			return nil
		},
	}
	l.register(cmd)
	cmd.Flags().BoolVar(&agents, "agents", false, "also run agents")
	return cmd
}

// labAgents is one supervised agent in each node of a lab.
type labAgents []*process.Supervisor

// startAgents starts an agent in every node, with a state folder of its own within
// state. The agents trust the keys, which it writes into a file, or without keys the first that their orchestrator presents.
// More are further arguments of each agent. With an error it returns the agents that
// it has started before.
func startAgents(s *setting.Settings, lab *netns.Lab, state string, keys []signature.PublicKey, logger *slog.Logger, more ...string) (labAgents, error) {
	self, err := s.Executable()
	if err != nil {
		return nil, err
	}
	trusted, err := driver.WriteTrusted(state, keys)
	if err != nil {
		return nil, err
	}
	var out labAgents
	for _, n := range lab.State.Nodes {
		name := string(n.Role)
		args := agentArgs(s, lab, &n, filepath.Join(state, name), trusted, more)
		logPath := filepath.Join(lab.Folder(), name+".log")
		sup, err := process.Supervision{Name: "agent " + name, Log: logger, LastWords: func() string { return lastLine(logPath) }, Start: func(ctx context.Context) (*exec.Cmd, error) {
			if err := lab.AwaitPower(ctx, n.Role); err != nil {
				return nil, err
			}
			log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				return nil, err
			}
			defer log.Close()
			cmd := agentCommand(self, lab, &n, args)
			cmd.Stderr = log
			return cmd, lab.Start(n.Role, cmd)
		}}.Run(context.Background())
		if err != nil {
			return out, err
		}
		out = append(out, sup)
	}
	return out, nil
}

// agentCommand is an agent's command. One with a plain radio knows nothing of the lab, and
// gets the clock that a fault may step from its environment.
func agentCommand(self string, lab *netns.Lab, n *netns.NodeState, args []string) *exec.Cmd {
	cmd := exec.Command(self, args...)
	if lab.Plain() {
		cmd.Env = append(cmd.Environ(), wallclock.Variable+"="+wallclock.Path(lab.Clocks(), string(n.Role)))
	}
	return cmd
}

// agentArgs are the arguments of an agent with a state folder, which trusts the keys in
// a file, "" for none.
func agentArgs(s *setting.Settings, lab *netns.Lab, n *netns.NodeState, state, trusted string, more []string) []string {
	name := string(n.Role)
	args := []string{"agent", "--name", name, "--role", name, "--orchestrator", lab.State.Orchestrator, "--drivers", s.Drivers,
		"--data", s.Data, "--state", state, "--radio-address", n.RadioAddress}
	if lab.Plain() {
		args = append(args, "--radio", lab.State.Radio, "--device", netns.Device)
	} else {
		args = append(args, "--radio-control", lab.State.ControlSocket, "--radio-host", n.RadioAddress)
	}
	if trusted != "" {
		args = append(args, "--trust", trusted)
	}
	return append(args, more...)
}

// failed returns a channel that gets why an agent is not started again, if one is not
// before ctx ends.
func (as labAgents) failed(ctx context.Context) <-chan error {
	out := make(chan error, len(as))
	for _, a := range as {
		go func() {
			select {
			case <-a.Failed():
				out <- a.Failure()
			case <-ctx.Done():
			}
		}()
	}
	return out
}

func (as labAgents) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, a := range as {
		a.Stop(ctx, 5*time.Second)
	}
}

func newLabDown() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "Remove a lab, also one that a killed process has left behind",
		Example: `  linktrial lab down`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return removeLab(cmd.Context(), os.Stdout, netns.DefaultStateDir, name)
		},
	}
	cmd.Flags().StringVar(&name, "name", "lab", "name of the lab")
	return cmd
}

func newLabStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List labs: running ones, and those that a killed process has left behind",
		Long: `List labs.

  STATE      up, or left behind by a killed process
  HELD BY    identity of the process that removes the lab when it ends
  EMULATOR   identity of the process of the emulated radios`,
		Example: `  linktrial lab status`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return listLabs(netns.DefaultStateDir)
		},
	}
}

func newLabLink() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:       "control-link ROLE up|down",
		Short:     "Cut or restore a node's control link, as when a vehicle drives out of range",
		Example:   `  linktrial lab control-link client down`,
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"client", "relay", "server"},
		RunE: func(_ *cobra.Command, args []string) error {
			if args[1] != "up" && args[1] != "down" {
				return fmt.Errorf("%q, expected up or down", args[1])
			}
			st, err := netns.Load(netns.DefaultStateDir, name)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("no lab %q is up", name)
			}
			if err != nil {
				return err
			}
			return netns.SetControlLink(st, radio.Role(args[0]), args[1] == "up")
		},
	}
	cmd.Flags().StringVar(&name, "name", "lab", "name of the lab")
	return cmd
}

func newLabEmulate(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:    "emulate",
		Short:  "Run the emulated radios; configuration as JSON on standard input (started by the lab)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg tun.Config
			dec := json.NewDecoder(os.Stdin)
			dec.DisallowUnknownFields()
			if err := dec.Decode(&cfg); err != nil {
				return fmt.Errorf("configuration of the emulator: %w", err)
			}
			cfg.Logger = s.Logger()
			cfg.Ready = func() { fmt.Println("ready") }
			return tun.Run(cmd.Context(), cfg)
		},
	}
}
