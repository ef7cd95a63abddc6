package laptop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	nodeidentity "linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/installation"
	"linktrial/internal/identity"
	"linktrial/internal/portholder"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
)

// wanted is what the flags of a start say; what they do not say stays as it is.
type wanted struct{ name, role, device, address, profile string }

func newStart(s *setting.Settings) *cobra.Command {
	var w wanted
	cmd := &cobra.Command{
		Use:     "start",
		GroupID: setting.GroupLaptop,
		Short:   "Start orchestrator, pages and agent on this laptop, now and after every boot",
		Long: `Start starts the orchestrator with its pages and this laptop's agent, which the
package has installed, and has them started after every boot. It prints where the pages
are and what to do next. Where a step fails, what it began is taken back; where the power
was lost in one, start again.

Without --radio-address no radio is set up: the laptop is a node and takes part in no run.`,
		Example: `  sudo linktrial start
  sudo linktrial start --role client --radio enx00e04c680001 --radio-address 10.77.0.1
  sudo linktrial start --role server --radio eth1 --radio-address 10.77.0.2 --profile mpu5`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return own().start(cmd.Context(), w, s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.name, "name", "", "name of this laptop's node (default: the host's name)")
	f.StringVar(&w.role, "role", "", "client, relay or server (default: client)")
	f.StringVar(&w.device, "radio", "", "interface that leads to the radio")
	f.StringVar(&w.address, "radio-address", "", "this laptop's IP address on the radio network")
	f.StringVar(&w.profile, "profile", "", "profile of the radio (default: it has no name, and results say so)")
	cmd.MarkFlagsRequiredTogether("radio", "radio-address")
	return cmd
}

// errNotRoot says that a command changes services.
func errNotRoot(command string) error {
	return fmt.Errorf("this changes services and takes root: sudo linktrial %s", command)
}

// byHand is what to do without systemd.
const byHand = "run 'linktrial serve --listen 0.0.0.0:7700' by hand, and beside it 'linktrial agent --name NAME --orchestrator https://127.0.0.1:7700 --token-file FILE' with the token of 'linktrial node token --name NAME'"

// start brings the machine up, with what is wanted of its node.
func (l *laptop) start(ctx context.Context, w wanted, s *setting.Settings) error {
	if l.euid != 0 {
		return errNotRoot("start")
	}
	here := *s
	here.Data = l.machine.OrchestratorData() // where people's own profiles are
	if err := w.check(&here); err != nil {
		return err
	}
	switch err := l.machine.Check(ctx, time.Now()); {
	case errors.Is(err, installation.ErrNoSystemd):
		return fmt.Errorf("%w: %s", err, byHand)
	case err != nil:
		return err
	}
	before, err := l.machine.State(ctx)
	if err != nil {
		return err
	}
	base, err := l.machine.LocalURL()
	if err != nil {
		return err
	}
	little, err := l.littleFree(base, &before)
	if err != nil {
		return err
	}
	agent, err := l.agent(w, base, &before)
	if err != nil {
		return err
	}
	if err := portFree(base, &before.Orchestrator); err != nil {
		return err
	}
	if before.Orchestrator.Running() && before.Agent.Running() {
		l.printf("Linktrial runs on this laptop already%s.\n", since(&before.Orchestrator))
	}
	if err := l.machine.StartOrchestrator(ctx, installation.OrchestratorSettings{}, l.orchestratorReady(base, &before.Orchestrator)); err != nil {
		return err
	}
	c := l.calls(base)
	if agent.Token, err = l.token(ctx, c, agent); err != nil {
		return err
	}
	if err := l.machine.StartAgent(ctx, agent, l.agentReady(c, agent, &before.Agent)); err != nil {
		return err
	}
	if agent, err = c.withSetUp(ctx, agent); err != nil {
		return err
	}
	if err := l.say(ctx, c, agent); err != nil {
		return err
	}
	if little != nil {
		l.printf("\nWarning: %s. Make room, or mount a larger disk there: on a full disk no trial starts.\n", little.Text())
	}
	return nil
}

// withSetUp returns what the node is with the radio that a person set up on it, where the
// settings name none.
func (c *calls) withSetUp(ctx context.Context, a installation.AgentSettings) (installation.AgentSettings, error) {
	n, err := c.node(ctx, a.Name)
	if err != nil || a.RadioAddress != "" || len(n.GetRadios().GetRadios()) == 0 {
		return a, err
	}
	a.Role, a.RadioAddress, a.Radio, a.Device = n.Role, n.RadioAddress, n.Radio, n.Radios.Radios[0].Interface
	return a, nil
}

// check refuses what cannot be right whatever the state of the machine.
func (w *wanted) check(s *setting.Settings) error {
	if w.name != "" {
		if err := identity.CheckName(w.name); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
	}
	if w.role != "" && !slices.Contains(radio.Roles, radio.Role(w.role)) {
		return fmt.Errorf("--role %q, expected client, relay or server", w.role)
	}
	if w.address != "" {
		if _, err := netip.ParseAddr(w.address); err != nil {
			return fmt.Errorf("--radio-address %.60q, expected an IP address such as 10.77.0.1", w.address)
		}
	}
	if w.device != "" {
		if _, err := net.InterfaceByName(w.device); err != nil {
			var names []string
			all, _ := net.Interfaces() // none are named then
			for _, i := range all {
				names = append(names, i.Name)
			}
			return fmt.Errorf("--radio %.40q, expected an interface of this laptop: %s", w.device, strings.Join(names, ", "))
		}
	}
	if w.profile == "" {
		return nil
	}
	cat, err := s.LoadCatalog()
	if err != nil {
		return err
	}
	if cat.Profile(w.profile) == nil {
		return fmt.Errorf("--profile %.60q, expected one of 'linktrial profiles': %s", w.profile, strings.Join(cat.Profiles(), ", "))
	}
	return nil
}

// agent is what this laptop's node is to be: what it is, and what the flags say.
func (l *laptop) agent(w wanted, base string, before *installation.State) (installation.AgentSettings, error) {
	a, is, err := l.machine.Agent()
	if err != nil {
		return a, err
	}
	if is && !sameOrchestrator(a.Orchestrator, base) {
		if before.Agent.Running() {
			return a, fmt.Errorf("this laptop is node %s of the orchestrator %s: to leave that one and start one here, run 'sudo linktrial stop' first", a.Name, a.Orchestrator)
		}
		a.Orchestrator = base
	}
	host, _ := os.Hostname() // a machine without a name has a node "laptop"
	a.Orchestrator = cmp.Or(a.Orchestrator, base)
	a.Name = cmp.Or(w.name, a.Name, identity.NameOfHost(host))
	a.Role = cmp.Or(w.role, a.Role, string(radio.RoleClient))
	if w.device != "" {
		a.Device, a.RadioAddress = w.device, w.address
	}
	a.Radio = cmp.Or(w.profile, a.Radio)
	if a.Radio != "" && a.RadioAddress == "" {
		return a, errors.New("--profile names a radio, and none is set up: name its interface and this laptop's address there with --radio and --radio-address")
	}
	return a, nil
}

// sameOrchestrator reports whether a URL is that of this machine's orchestrator, under
// whichever address of the machine.
func sameOrchestrator(one, base string) bool {
	a, aerr := url.Parse(one)
	b, berr := url.Parse(base)
	return aerr == nil && berr == nil && a.Port() == b.Port() && client.AtThisMachine(a)
}

// portFree refuses a port that another program has.
func portFree(base string, orchestrator *installation.Unit) error {
	if orchestrator.Running() {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return fmt.Errorf("port %q of LINKTRIAL_LISTEN in /etc/linktrial/orchestrator.env: expected a number", u.Port())
	}
	if who := portholder.Find("tcp", port); who != "" {
		return fmt.Errorf("port %d, at which the orchestrator listens, is taken by %s: end that, or set another port with LINKTRIAL_LISTEN=0.0.0.0:PORT in /etc/linktrial/orchestrator.env, and start again", port, who)
	}
	return nil
}

// token makes a token for a node that has to enrol; empty: it has a certificate, or needs
// none.
func (l *laptop) token(ctx context.Context, c *calls, a installation.AgentSettings) (string, error) {
	if !strings.HasPrefix(a.Orchestrator, "https://") {
		return "", nil
	}
	res, err := c.nodes.ListNodeIdentities(ctx, connect.NewRequest(&linktrialv1.ListNodeIdentitiesRequest{}))
	if err != nil {
		return "", client.Error(c.base, err)
	}
	enrolled := slices.ContainsFunc(res.Msg.Nodes, func(n *linktrialv1.NodeIdentity) bool {
		return n.Name == a.Name && n.State == linktrialv1.NodeIdentity_STATE_ENROLLED
	})
	folder := l.machine.NodeState(a.Name)
	id, err := nodeidentity.Load(folder, time.Now)
	switch {
	case err != nil && !errors.Is(err, nodeidentity.ErrNone):
		return "", err
	case err == nil && !id.Expired() && enrolled:
		return "", nil
	case err == nil && !id.Expired():
		return "", fmt.Errorf("this laptop has a certificate for node %s that its orchestrator does not know: choose another name with --name, or remove %s", a.Name, folder)
	case err != nil && enrolled:
		return "", fmt.Errorf("there is a node %s already, and its certificate is on another machine: choose another name with --name, or revoke that node with 'sudo linktrial node revoke %[1]s' and start again", a.Name)
	}
	made, err := c.nodes.CreateNodeToken(ctx, connect.NewRequest(&linktrialv1.CreateNodeTokenRequest{Name: a.Name, ValidSeconds: int64(time.Hour / time.Second)}))
	if err != nil {
		return "", client.Error(c.base, err)
	}
	return made.Msg.Token, nil
}

// say prints where things are and what to do next.
func (l *laptop) say(ctx context.Context, c *calls, a installation.AgentSettings) error {
	pages, err := addresses(c.base, a.Device)
	if err != nil {
		return err
	}
	print, err := l.fingerprint()
	if err != nil {
		return err
	}
	link, err := l.welcome(pages[0])
	if err != nil {
		return err
	}
	l.printf("\nLinktrial runs on this laptop, and starts again with it.\n\n")
	for _, p := range pages {
		l.printf("  pages        %s\n", p)
	}
	if print != "" {
		l.printf("  fingerprint  %s\n", print)
	}
	l.printf("  node         %s\n\n", describe(a))
	if link != "" {
		l.printf("Next: open this link, which makes the first admin, in a browser:\n  %s\nThe browser asks whether to trust the certificate: compare the fingerprint of its authority with the one above.\n", link)
	} else {
		l.printf("Next: open the pages in a browser and log in.\n")
	}
	if a.RadioAddress == "" {
		l.printf("Then attach the radio and open the page Set up (or: sudo linktrial nodes --interfaces %s).\n", a.Name)
	}
	return l.sayCode(ctx, c)
}

// sayCode opens a code by which other laptops join, and prints it. Where only this machine
// reaches the orchestrator none can.
func (l *laptop) sayCode(ctx context.Context, c *calls) error {
	if !strings.HasPrefix(c.base, "https://") {
		return nil
	}
	res, err := c.join.OpenJoining(ctx, connect.NewRequest(&linktrialv1.OpenJoiningRequest{}))
	if err != nil {
		return client.Error(c.base, err)
	}
	l.printf("\nOther laptops join until %s, or until %d wrong tries, with:\n  sudo linktrial join %s\nSpoken: %s. Another code: sudo linktrial node code\n",
		unit.Moment(res.Msg.Expires.AsTime()), res.Msg.Tries, res.Msg.Code, res.Msg.Spoken)
	return nil
}

// describe says what a node is.
func describe(a installation.AgentSettings) string {
	out := a.Name + ", " + cmp.Or(a.Role, "no role")
	if a.RadioAddress == "" {
		return out + ", no radio set up"
	}
	return out + ", " + cmp.Or(a.Radio, "unnamed radio") + " at " + a.Device + " with " + a.RadioAddress
}
