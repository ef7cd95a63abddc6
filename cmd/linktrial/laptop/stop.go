package laptop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/setting"
	"linktrial/installation"
)

func newStop(*setting.Settings) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "stop",
		GroupID: setting.GroupLaptop,
		Short:   "Stop orchestrator, pages and agent on this laptop; their data stays",
		Long: `Stop stops the agent and the orchestrator of this laptop, and has them not started
after a boot. Plans, results, users and certificates stay. While a run is under way it asks
first; a run that was stopped goes on after 'linktrial start'.`,
		Example: `  sudo linktrial stop
  sudo linktrial stop --force`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ask io.Reader
			if term.IsTerminal(int(os.Stdin.Fd())) {
				ask = os.Stdin
			}
			return own().stop(cmd.Context(), force, ask)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "stop also while a run is under way")
	return cmd
}

// stop stops both services. Where a run is under way, it asks the person at ask; nil: there
// is none.
func (l *laptop) stop(ctx context.Context, force bool, ask io.Reader) error {
	if l.euid != 0 {
		return errNotRoot("stop")
	}
	before, err := l.machine.State(ctx)
	if err != nil {
		return err
	}
	if !before.Orchestrator.Running() && !before.Agent.Running() && !before.Orchestrator.Enabled && !before.Agent.Enabled {
		l.printf("Nothing of Linktrial runs on this laptop.\n")
		return nil
	}
	if before.Orchestrator.Running() && !force {
		if err := l.mayStop(ctx, ask); err != nil {
			return err
		}
	}
	if err := l.machine.Stop(ctx); err != nil {
		return err
	}
	l.printf("Linktrial is stopped on this laptop, and its data is kept: sudo linktrial start\n")
	return nil
}

// mayStop reports why runs under way keep the orchestrator from being stopped, or nil.
func (l *laptop) mayStop(ctx context.Context, ask io.Reader) error {
	base, err := l.machine.LocalURL()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	runs, err := l.calls(base).underWay(ctx)
	if err != nil {
		return fmt.Errorf("whether a run is under way is not known (%w): to stop all the same, sudo linktrial stop --force", err)
	}
	if len(runs) == 0 {
		return nil
	}
	if ask == nil {
		return fmt.Errorf("run %s is under way: wait for its end, abort it with 'linktrial run abort %[1]s', or stop all the same with 'sudo linktrial stop --force'", runs[0].Id)
	}
	l.printf("Run %s is under way%s. Stop all the same? [y/N] ", runs[0].Id, trials(runs[0]))
	answer, err := bufio.NewReader(ask).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was stopped")
	}
	return nil
}

// trials says how far a run is.
func trials(r *linktrialv1.Run) string {
	return fmt.Sprintf(" with %d of %d trials ended", r.TrialsEnded, r.Trials)
}

// unitWord says what a service does.
func unitWord(u *installation.Unit) string {
	switch {
	case !u.Loaded:
		return "not installed"
	case u.Active == "activating":
		return "starting"
	case u.Running():
		return "running" + since(u)
	case u.Active == "failed":
		return "failed"
	}
	return "stopped"
}
