package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	nodeidentity "linktrial/agents/identity"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/installation"
	"linktrial/internal/discovery"
	"linktrial/internal/identity"
	"linktrial/internal/joincode"
	"linktrial/internal/radio"
	"linktrial/internal/radiomark"
)

// defaultPort is the orchestrator's, where --address has none.
const defaultPort = "7700"

// searchLimit is how long the orchestrator is searched for.
const searchLimit = 5 * time.Second

// joinCommand is the flags of the command.
type joinCommand struct {
	code     joincode.Code
	address  string
	name     string
	state    string
	version  string
	role     string
	replace  bool
	setClock bool
	services *services // nil: a person starts the agent
	// interfaces are those that are searched on; empty: all.
	interfaces []string
}

func newJoin(s *setting.Settings) *cobra.Command {
	var j joinCommand
	cmd := &cobra.Command{
		Use:     "join CODE",
		GroupID: setting.GroupNodes,
		Short:   "Make this laptop a node of an orchestrator, by a code that was spoken",
		Long: `Join finds the orchestrator on the networks of this laptop, shows it that both have the
same code, and enrols this laptop as a node. Capitals, blanks and hyphens of the code do
not matter. Who opens the code: 'linktrial start', 'linktrial node code', or the page Fleet.

On a laptop with the package it then starts the agent, now and after every boot. Nothing is
kept where a step fails.`,
		Example: `  linktrial join 4821-tango-river
  linktrial join 4821 tango river --address 10.20.0.10 --name relay --role relay`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("expected the code: linktrial join 4821-tango-river")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if j.code, err = joincode.Parse(strings.Join(args, " ")); err != nil {
				return err
			}
			j.version = s.Version
			if j.services, err = installed(cmd.Context()); err != nil {
				return err
			}
			if err := j.complete(s.Data, cmd.Flags().Changed("name"), os.Hostname); err != nil {
				return err
			}
			return j.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&j.address, "address", "", "address of the orchestrator, HOST or HOST:PORT (default: search for it, 5 s)")
	f.StringSliceVar(&j.interfaces, "interface", nil, "interface on which the orchestrator is searched for, such as eth0, so that nothing is sent on the radio's; can be given several times (default: all but this machine's radios)")
	f.StringVar(&j.name, "name", "", "name of this node (default: the name of this machine)")
	f.StringVar(&j.role, "role", "", "client, relay or server, for the agent of a package (default: it gets one with its radio)")
	f.BoolVar(&j.replace, "replace", false, "take the place of the node that has the name; its certificate ends")
	f.StringVar(&j.state, "state", "", "the node's state folder (default: in the data folder, by the node's name)")
	f.BoolVar(&j.setClock, "set-clock", false, "set this machine's clock by the orchestrator's where they differ by 10 minutes or more; needs root")
	cmd.MarkFlagsMutuallyExclusive("address", "interface")
	return cmd
}

// complete fills in what was not given, and checks what was.
func (j *joinCommand) complete(data string, named bool, hostname func() (string, error)) error {
	if j.address != "" {
		var err error
		if j.address, err = withPort(j.address); err != nil {
			return err
		}
	}
	if !named {
		host, err := hostname()
		if err != nil {
			return fmt.Errorf("name of this machine: %w; give one with --name", err)
		}
		j.name = identity.NameOfHost(host)
	}
	if err := identity.CheckName(j.name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	if j.role != "" && !slices.Contains(radio.Roles, radio.Role(j.role)) {
		return fmt.Errorf("--role %q, expected client, relay or server", j.role)
	}
	switch {
	case j.services == nil && j.role != "":
		return errors.New("--role is for the agent that a package has installed: give it to 'linktrial agent'")
	case j.services != nil && j.state != "":
		return errors.New("--state is for an agent that a person starts, and here a package has installed one")
	case j.services != nil:
		j.state = j.services.machine.NodeState(j.name)
	}
	j.state = cmp.Or(j.state, filepath.Join(data, "agents", j.name))
	return nil
}

// withPort is an address with the port, which may be missing.
func withPort(address string) (string, error) {
	wrong := fmt.Errorf("--address %q, expected HOST or HOST:PORT, as 10.20.0.10 or laptop-a:7700", address)
	bare := strings.TrimSuffix(strings.TrimPrefix(address, "https://"), "/")
	inside := bare
	if strings.HasPrefix(bare, "[") && strings.HasSuffix(bare, "]") {
		inside = bare[1 : len(bare)-1]
	}
	if ip, err := netip.ParseAddr(inside); err == nil {
		return net.JoinHostPort(ip.String(), defaultPort), nil
	}
	if !strings.Contains(bare, ":") {
		bare = net.JoinHostPort(bare, defaultPort)
	}
	host, port, err := net.SplitHostPort(bare)
	if err != nil || host == "" || strings.ContainsAny(host, "/?#@ ") {
		return "", wrong
	}
	if _, err := netip.ParseAddrPort("127.0.0.1:" + port); err != nil || port == "0" {
		return "", wrong
	}
	return bare, nil
}

// run joins. What fails leaves the state folder as it was.
func (j *joinCommand) run(ctx context.Context) error {
	if err := free(j.state); err != nil {
		return err
	}
	// Before the code is shown: with a full disk its enrolment could not be kept.
	if err := installation.CheckFree(j.state, installation.MinNodeFreeBytes); err != nil {
		return err
	}
	if j.address == "" {
		found, err := j.search(ctx)
		if err == nil {
			j.address, err = choose(found, onTerminal(), os.Stdin, os.Stdout)
		}
		if err != nil {
			return err
		}
	}
	w := terminal.NewWaiting(os.Stderr)
	w.Step("showing the code to the orchestrator at " + j.address)
	got, err := nodeidentity.Join{Address: j.address, Code: j.code, Name: j.name, Replace: j.replace, Version: j.version}.Exchange(ctx)
	w.Stop()
	if err != nil {
		return err
	}
	if got.Token.Node != j.name {
		return fmt.Errorf("the orchestrator's answer: a token for %s, expected one for %s", got.Token.Node, j.name)
	}
	if err := j.checkClock(got); err != nil {
		return err
	}
	if err := enrolInto(ctx, j.state, got); err != nil {
		return err
	}
	if j.services != nil {
		return j.services.start(ctx, installation.AgentSettings{Orchestrator: got.Orchestrator, Name: j.name, Role: j.role})
	}
	fmt.Printf("This laptop has joined %s as %s. Start its agent:\n  linktrial agent --name %s --orchestrator %s --state %s --role … --radio-address …\n", got.Orchestrator, j.name, j.name, got.Orchestrator, j.state)
	return nil
}

func onTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// search finds orchestrators whose codes are open.
func (j *joinCommand) search(ctx context.Context) ([]discovery.Found, error) {
	for _, name := range j.interfaces {
		if _, err := net.InterfaceByName(name); err != nil {
			return nil, fmt.Errorf("--interface %q, expected an interface of this machine, as 'ip link' lists them", name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, searchLimit)
	defer cancel()
	fmt.Fprintf(os.Stderr, "Searching for the orchestrator on the networks of this laptop, up to %.0f s …\n", searchLimit.Seconds())
	found, err := discovery.Find(ctx, func() ([]net.Interface, error) { return discovery.Interfaces(j.unused) })
	if errors.Is(err, discovery.ErrNoInterface) {
		return nil, fmt.Errorf("%w: connect the control network, or name the orchestrator with --address HOST", err)
	}
	return found, err
}

// unused reports whether an interface is not searched on: a radio is only
// where it is named.
func (j *joinCommand) unused(i net.Interface) bool {
	if len(j.interfaces) > 0 {
		return !slices.Contains(j.interfaces, i.Name)
	}
	return radiomark.On(i)
}
