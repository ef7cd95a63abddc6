package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/runcommand"
)

// commander holds what one command to a run needs.
type commander struct {
	control  linktrialv1connect.ControlServiceClient
	operator linktrialv1connect.OperatorServiceClient
	by       string
}

// newRunCommand makes a subcommand that gives one command to one run. Send returns
// the line to print.
func newRunCommand(s *setting.Settings, name, args, long, example string, send func(ctx context.Context, c *commander, run string) (string, error)) *cobra.Command {
	c := &commander{}
	short := runcommand.Of(name).Short
	cmd := &cobra.Command{
		Use:     name + " " + args,
		Short:   short,
		Long:    strings.TrimSpace(short+".\n\n"+long) + "\n\nRUN can be the beginning of the run's identity, where no other run has the same.",
		Example: example,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.by = cmp.Or(c.by, client.UserName())
			c.operator = client.New(s.Orchestrator)
			c.control = linktrialv1connect.NewControlServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
			done, err := send(cmd.Context(), c, args[0])
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), done)
			return nil
		},
	}
	cmd.Flags().StringVar(&c.by, "by", "", "who gives the command, which is recorded (default: the user of this machine)")
	return cmd
}

func newRunPause(s *setting.Settings) *cobra.Command {
	return newRunCommand(s, runcommand.Pause, "RUN",
		"The trial that is running continues to its end; during the pause nothing is sent over\nthe radio. Where the control link is down, the command takes effect when it is back.",
		`  linktrial run pause m4t7xk2p-1`,
		func(ctx context.Context, c *commander, run string) (string, error) {
			_, err := c.control.PauseRun(ctx, connect.NewRequest(&linktrialv1.PauseRunRequest{RunId: run, By: c.by}))
			return "the run pauses at its next trial boundary; to resume it: linktrial run resume " + run, err
		})
}

func newRunResume(s *setting.Settings) *cobra.Command {
	return newRunCommand(s, runcommand.Resume, "RUN", "", `  linktrial run resume m4t7xk2p-1`,
		func(ctx context.Context, c *commander, run string) (string, error) {
			_, err := c.control.ResumeRun(ctx, connect.NewRequest(&linktrialv1.ResumeRunRequest{RunId: run, By: c.by}))
			return "the run resumes", err
		})
}

func newRunContinue(s *setting.Settings) *cobra.Command {
	return newRunCommand(s, runcommand.Continue, "RUN", "A run that waits for its nodes to be moved then starts.",
		`  linktrial run continue m4t7xk2p-2 --by ada`,
		func(ctx context.Context, c *commander, run string) (string, error) {
			_, err := c.control.ContinueRun(ctx, connect.NewRequest(&linktrialv1.ContinueRunRequest{RunId: run, By: c.by}))
			return "the run continues", err
		})
}

func newRunAbort(s *setting.Settings) *cobra.Command {
	var reason string
	cmd := newRunCommand(s, runcommand.Abort, "RUN|CAMPAIGN", "What was measured is kept.",
		`  linktrial run abort m4t7xk2p-1 --reason rain
  linktrial run abort m4t7xk2p                     # all runs of the campaign`,
		func(ctx context.Context, c *commander, name string) (string, error) {
			if strings.Contains(name, "-") {
				_, err := c.control.AbortRun(ctx, connect.NewRequest(&linktrialv1.AbortRunRequest{RunId: name, Reason: reason, By: c.by}))
				return "run " + name + " is being aborted", err
			}
			campaign, err := c.campaign(ctx, name)
			if err != nil {
				return "", err
			}
			_, err = c.operator.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: campaign, Reason: reason}))
			return "campaign " + campaign + " is being aborted", err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which is recorded")
	return cmd
}

// campaign resolves a unique prefix of a campaign's identity.
func (c *commander) campaign(ctx context.Context, prefix string) (string, error) {
	res, err := c.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 10_000}))
	if err != nil {
		return "", err
	}
	found := ""
	for _, r := range res.Msg.Runs {
		switch {
		case r.CampaignId == prefix:
			return prefix, nil
		case !strings.HasPrefix(r.CampaignId, prefix) || r.CampaignId == found:
		case found != "":
			return "", fmt.Errorf("campaign %q: several identities begin with it, give more characters", prefix)
		default:
			found = r.CampaignId
		}
	}
	if found == "" {
		return "", fmt.Errorf("run or campaign %q: not found", prefix)
	}
	return found, nil
}

func newRunSkip(s *setting.Settings) *cobra.Command {
	var trial int32
	cmd := newRunCommand(s, runcommand.Skip, "RUN",
		"A trial that is running is aborted. Without --trial it is the one that is running. With\nin-band control the command takes effect when the trial has ended: it then prevents\nfurther attempts.",
		`  linktrial run skip m4t7xk2p-1                    # the trial that is running
  linktrial run skip m4t7xk2p-1 --trial 17`,
		func(ctx context.Context, c *commander, run string) (string, error) {
			trial := trial
			if trial < 0 {
				var err error
				if trial, err = c.runningTrial(ctx, run); err != nil {
					return "", err
				}
			}
			_, err := c.control.SkipTrial(ctx, connect.NewRequest(&linktrialv1.SkipTrialRequest{RunId: run, Trial: trial, By: c.by}))
			return fmt.Sprintf("trial %d ends without a further attempt", trial), err
		})
	cmd.Flags().Int32Var(&trial, "trial", -1, "number of the trial, from 0 as in 'linktrial plan explain' (default: the one that is running)")
	cmd.Flags().Lookup("trial").DefValue = "0" // the help prints no zero; the text names the default
	return cmd
}

// runningTrial returns the number of the trial that is running.
func (c *commander) runningTrial(ctx context.Context, run string) (int32, error) {
	res, err := c.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run}))
	if err != nil {
		return 0, err
	}
	for _, t := range res.Msg.Trials {
		if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Verdict == "" {
			return t.Trial, nil
		}
	}
	return 0, errors.New("no trial of the run is running now; name one with --trial")
}

func newRunRepeat(s *setting.Settings) *cobra.Command {
	var trial int32
	cmd := newRunCommand(s, runcommand.Repeat, "RUN --trial N",
		"The trial gets one more attempt, in its own iteration, at the next trial boundary; the\nlast attempt counts. It is exactly one, whatever the plan's limit of attempts is and\nhowever it ends.",
		`  linktrial run repeat m4t7xk2p-1 --trial 17`,
		func(ctx context.Context, c *commander, run string) (string, error) {
			_, err := c.control.RepeatTrial(ctx, connect.NewRequest(&linktrialv1.RepeatTrialRequest{RunId: run, Trial: trial, By: c.by}))
			return fmt.Sprintf("trial %d is repeated at the next trial boundary", trial), err
		})
	trialFlag(cmd, &trial)
	return cmd
}

func newRunExclude(s *setting.Settings) *cobra.Command {
	var trial, attempt int32
	var reason string
	cmd := newRunCommand(s, runcommand.Exclude, "RUN --trial N --reason TEXT",
		"What was measured is kept and stays visible: the attempt is shown as invalid, with the\nreason and with its verdict in the journal.",
		`  linktrial run exclude m4t7xk2p-1 --trial 17 --reason "a truck in front of the antenna"
  linktrial run exclude m4t7xk2p-1 --trial 17 --attempt 2 --reason "battery changed"`,
		func(ctx context.Context, c *commander, run string) (string, error) {
			n, err := c.exclude(ctx, &linktrialv1.ExcludeAttemptRequest{RunId: run, Trial: trial, Attempt: attempt, Reason: reason, By: c.by})
			return fmt.Sprintf("attempt %d of trial %d is excluded; to take this back: linktrial run include %s --trial %d --attempt %d", n, trial, run, trial, n), err
		})
	trialFlag(cmd, &trial)
	cmd.Flags().Int32Var(&attempt, "attempt", 0, "number of the attempt, from 1 (default: the last)")
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	setting.Require(cmd, "reason")
	return cmd
}

func newRunInclude(s *setting.Settings) *cobra.Command {
	var trial, attempt int32
	cmd := newRunCommand(s, runcommand.Include, "RUN --trial N", "",
		`  linktrial run include m4t7xk2p-1 --trial 17 --attempt 2`,
		func(ctx context.Context, c *commander, run string) (string, error) {
			n, err := c.include(ctx, &linktrialv1.IncludeAttemptRequest{RunId: run, Trial: trial, Attempt: attempt, By: c.by})
			return fmt.Sprintf("attempt %d of trial %d counts with its verdict in the journal", n, trial), err
		})
	trialFlag(cmd, &trial)
	cmd.Flags().Int32Var(&attempt, "attempt", 0, "number of the attempt, from 1 (default: the last)")
	return cmd
}

func trialFlag(cmd *cobra.Command, trial *int32) {
	cmd.Flags().Int32Var(trial, "trial", 0, "number of the trial, from 0 as in 'linktrial plan explain' (required)")
	setting.Require(cmd, "trial")
}

// exclude and include send m, for the trial's last attempt where m names none, and return
// the attempt's number.
func (c *commander) exclude(ctx context.Context, m *linktrialv1.ExcludeAttemptRequest) (n int32, err error) {
	if m.Attempt, err = c.attempt(ctx, m.RunId, m.Trial, m.Attempt); err == nil {
		_, err = c.control.ExcludeAttempt(ctx, connect.NewRequest(m))
	}
	return m.Attempt, err
}

func (c *commander) include(ctx context.Context, m *linktrialv1.IncludeAttemptRequest) (n int32, err error) {
	if m.Attempt, err = c.attempt(ctx, m.RunId, m.Trial, m.Attempt); err == nil {
		_, err = c.control.IncludeAttempt(ctx, connect.NewRequest(m))
	}
	return m.Attempt, err
}

// attempt is n, or the trial's last attempt where n is 0.
func (c *commander) attempt(ctx context.Context, run string, trial, n int32) (int32, error) {
	if n != 0 {
		return n, nil
	}
	res, err := c.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run}))
	if err != nil {
		return 0, err
	}
	for _, t := range res.Msg.Trials {
		if t.Trial == trial && len(t.Attempts) > 0 {
			return t.Attempts[len(t.Attempts)-1].Attempt, nil
		}
	}
	return 0, fmt.Errorf("run %s has no attempt of trial %d", run, trial)
}

func newRunCommands(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "commands RUN",
		Short: "List the commands that were given to a run, and the marks on its attempts",
		Long: `List the commands that were given to a run, and the marks on its attempts, oldest
first.

  GIVEN     when the command was given, by this machine's clock
  COMMAND   pause, resume, continue, skip, repeat, exclude, include or abort
  TRIAL     number of the trial, from 0; – for a command to the whole run
  ATTEMPT   number of the attempt, from 1, that is excluded or included
  BY        who gave it
  APPLIED   when the leading agent applied it, or "not yet"
  REASON    as it was given, or why the command was rejected`,
		Example: `  linktrial run commands m4t7xk2p-1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := linktrialv1connect.NewControlServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
			res, err := c.ListCommands(cmd.Context(), connect.NewRequest(&linktrialv1.ListCommandsRequest{RunId: args[0]}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if len(res.Msg.Commands) == 0 {
				fmt.Println("No command has been given to this run.")
				return nil
			}
			return printCommands(res.Msg.Commands)
		},
	}
}

func printCommands(list []*linktrialv1.Command) error {
	return terminal.Columns("GIVEN\tCOMMAND\tTRIAL\tATTEMPT\tBY\tAPPLIED\tREASON", func(w io.Writer) {
		for _, c := range list {
			trial, attempt, applied := "–", "–", "not yet"
			if c.Trial != nil {
				trial = strconv.Itoa(int(*c.Trial))
			}
			if c.Attempt > 0 {
				attempt = strconv.Itoa(int(c.Attempt))
			}
			if c.Applied != nil {
				applied = terminal.Moment(c.Applied)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", terminal.Moment(c.Given), c.Kind, trial, attempt, cmp.Or(c.By, "–"), applied, cmp.Or(c.Reason, "–"))
		}
	})
}
