package laptop

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/installation"
)

// callLimit bounds the questions to an orchestrator that may hang.
const callLimit = 10 * time.Second

func newStatus(*setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		GroupID: setting.GroupLaptop,
		Short:   "Show what of Linktrial runs on this laptop: services, pages, nodes, runs under way",
		Example: `  sudo linktrial status`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := own().status(cmd.Context())
			if errors.Is(err, fs.ErrPermission) {
				return errors.New("only root can read the rest: sudo linktrial status")
			}
			return err
		},
	}
}

// status prints what runs.
func (l *laptop) status(ctx context.Context) error {
	now, err := l.machine.State(ctx)
	if err != nil {
		return err
	}
	a, is, err := l.machine.Agent()
	if err != nil {
		return err
	}
	l.printf("orchestrator  %s\n", unitWord(&now.Orchestrator))
	l.printf("agent         %s\n", unitWord(&now.Agent))
	if is {
		l.printf("node          %s, of %s\n", describe(a), a.Orchestrator)
	}
	if !now.Orchestrator.Running() {
		switch {
		case !now.Orchestrator.Loaded:
			l.printf("\nInstall Linktrial's package: dpkg -i linktrial_….deb\n")
		case !now.Agent.Running():
			l.printf("\nTo start both: sudo linktrial start\n")
		}
		return nil
	}
	return l.atOrchestrator(ctx, &now, a)
}

// atOrchestrator prints what the orchestrator knows.
func (l *laptop) atOrchestrator(ctx context.Context, now *installation.State, a installation.AgentSettings) error {
	base, err := l.machine.LocalURL()
	if err != nil {
		return err
	}
	pages, err := addresses(base, a.Device)
	if err != nil {
		return err
	}
	for _, p := range pages {
		l.printf("pages         %s\n", p)
	}
	if now.Orchestrator.Active == "activating" {
		return nil
	}
	if l.euid != 0 {
		l.printf("\nNodes and runs: sudo linktrial status, or log in with 'linktrial login'\n")
		return nil
	}
	if print, err := l.fingerprint(); err != nil {
		return err
	} else if print != "" {
		l.printf("fingerprint   %s\n", print)
	}
	if link, err := l.welcome(pages[0]); err != nil {
		return err
	} else if link != "" {
		l.printf("first admin   %s\n", link)
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	c := l.calls(base)
	res, err := c.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	if err != nil {
		return client.Error(base, err)
	}
	for _, n := range res.Msg.Nodes {
		contact := "last contact " + terminal.Moment(n.LastContact)
		if n.Connected {
			contact = "connected"
		}
		l.printf("joined        %s, %s\n", n.Name, contact)
	}
	runs, err := c.underWay(ctx)
	if err != nil {
		return err
	}
	for _, r := range runs {
		l.printf("run           %s of %s: %s%s\n", r.Id, r.Plan, terminal.RunWord(r), trials(r))
	}
	if len(runs) == 0 {
		l.printf("run           none under way\n")
	}
	return nil
}
