package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

// orderer is what one order on the command line needs.
type orderer struct {
	control  linktrialv1connect.ControlServiceClient
	operator linktrialv1connect.OperatorServiceClient
	by       string
}

// newOrder makes a subcommand that gives one order to one run.
func newOrder(s *setting.Settings, use, short, long string, give func(ctx context.Context, o *orderer, run string) (said string, err error)) *cobra.Command {
	o := &orderer{}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  strings.TrimSpace(short+".\n\n"+long) + "\n\nA prefix of the run's identity will do, where no other begins so.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.operator = client.New(s.Orchestrator)
			o.control = linktrialv1connect.NewControlServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
			said, err := give(cmd.Context(), o, args[0])
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), said)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.by, "by", client.UserName(), "who says so, for the record")
	return cmd
}

func newPause(s *setting.Settings) *cobra.Command {
	return newOrder(s, "pause RUN", "Hold a run at its next trial boundary",
		"The trial that runs goes on to its end; in the pause nothing runs on the radio. Where\nthe control link is down, the order waits for it.",
		func(ctx context.Context, o *orderer, run string) (string, error) {
			_, err := o.control.PauseRun(ctx, connect.NewRequest(&linktrialv1.PauseRunRequest{RunId: run, By: o.by}))
			return "it holds at its next trial boundary, and goes on with: linktrial resume " + run, err
		})
}

func newResume(s *setting.Settings) *cobra.Command {
	return newOrder(s, "resume RUN", "Let a paused run go on", "",
		func(ctx context.Context, o *orderer, run string) (string, error) {
			_, err := o.control.ResumeRun(ctx, connect.NewRequest(&linktrialv1.ResumeRunRequest{RunId: run, By: o.by}))
			return "it goes on", err
		})
}

func newContinue(s *setting.Settings) *cobra.Command {
	return newOrder(s, "continue RUN", "Say that the nodes stand where the run's topology has them", "A run that waits for its nodes to be moved goes on.",
		func(ctx context.Context, o *orderer, run string) (string, error) {
			_, err := o.control.ReleaseRun(ctx, connect.NewRequest(&linktrialv1.ReleaseRunRequest{RunId: run, By: o.by}))
			return "it goes on", err
		})
}

func newAbort(s *setting.Settings) *cobra.Command {
	var reason string
	cmd := newOrder(s, "abort RUN|CAMPAIGN", "End a run, or all runs of a campaign", "What was measured stays.",
		func(ctx context.Context, o *orderer, name string) (string, error) {
			if strings.Contains(name, "-") {
				_, err := o.control.AbortRun(ctx, connect.NewRequest(&linktrialv1.AbortRunRequest{RunId: name, Reason: reason, By: o.by}))
				return "run " + name + " is being aborted", err
			}
			campaign, err := o.campaign(ctx, name)
			if err != nil {
				return "", err
			}
			_, err = o.operator.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: campaign, Reason: reason}))
			return "campaign " + campaign + " is being aborted", err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

// campaign resolves a unique prefix of a campaign's identity.
func (o *orderer) campaign(ctx context.Context, prefix string) (string, error) {
	res, err := o.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 10_000}))
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
			return "", fmt.Errorf("campaign %q: more than one begin so, give more of its name", prefix)
		default:
			found = r.CampaignId
		}
	}
	if found == "" {
		return "", fmt.Errorf("run or campaign %q: not found", prefix)
	}
	return found, nil
}

func newSkip(s *setting.Settings) *cobra.Command {
	var trial int32
	cmd := newOrder(s, "skip RUN", "End a trial without a further attempt: one that runs is aborted",
		"Without --trial it is the one that runs. With in-band control the order waits for the\ntrial's end, and for the attempts that follow.",
		func(ctx context.Context, o *orderer, run string) (string, error) {
			trial := trial
			if trial < 0 {
				var err error
				if trial, err = o.running(ctx, run); err != nil {
					return "", err
				}
			}
			_, err := o.control.SkipTrial(ctx, connect.NewRequest(&linktrialv1.SkipTrialRequest{RunId: run, Trial: trial, By: o.by}))
			return fmt.Sprintf("trial %d ends without a further attempt", trial), err
		})
	cmd.Flags().Int32Var(&trial, "trial", -1, "number of the trial in the sheet, from 0 (default: the one that runs)")
	cmd.Flags().Lookup("trial").DefValue = "0" // as nothing: the text says what holds
	return cmd
}

// running is the trial that runs now.
func (o *orderer) running(ctx context.Context, run string) (int32, error) {
	res, err := o.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run}))
	if err != nil {
		return 0, err
	}
	for _, t := range res.Msg.Trials {
		if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Verdict == "" {
			return t.Trial, nil
		}
	}
	return 0, errors.New("no trial of the run is on the air now; name one with --trial")
}

func newRepeat(s *setting.Settings) *cobra.Command {
	var trial int32
	cmd := newOrder(s, "repeat RUN --trial N", "Run a trial that has ended once more",
		"The trial gets one more attempt, in its own iteration, at the next trial boundary; the\nlast attempt counts. It is a single one, whatever the plan's limit of attempts and\nhowever it ends.",
		func(ctx context.Context, o *orderer, run string) (string, error) {
			_, err := o.control.RepeatTrial(ctx, connect.NewRequest(&linktrialv1.RepeatTrialRequest{RunId: run, Trial: trial, By: o.by}))
			return fmt.Sprintf("trial %d runs once more at the next trial boundary", trial), err
		})
	trialFlag(cmd, &trial)
	return cmd
}

func newMark(s *setting.Settings) *cobra.Command {
	var trial, attempt int32
	var reason string
	cmd := newOrder(s, "mark RUN --trial N --reason TEXT", "Say that an attempt's figure must not count",
		"What was measured stays, and stays visible: the attempt is shown as invalid, with the\nreason and what the journal says of it.",
		func(ctx context.Context, o *orderer, run string) (string, error) {
			n, err := o.mark(ctx, &linktrialv1.MarkAttemptRequest{RunId: run, Trial: trial, Attempt: attempt, Invalid: true, Reason: reason, By: o.by})
			return fmt.Sprintf("attempt %d of trial %d does not count; it counts again with: linktrial unmark %s --trial %d --attempt %d", n, trial, run, trial, n), err
		})
	trialFlag(cmd, &trial)
	cmd.Flags().Int32Var(&attempt, "attempt", 0, "which attempt, from 1 (default: the last)")
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	setting.Require(cmd, "reason")
	return cmd
}

func newUnmark(s *setting.Settings) *cobra.Command {
	var trial, attempt int32
	cmd := newOrder(s, "unmark RUN --trial N", "Take back that an attempt's figure must not count", "",
		func(ctx context.Context, o *orderer, run string) (string, error) {
			n, err := o.mark(ctx, &linktrialv1.MarkAttemptRequest{RunId: run, Trial: trial, Attempt: attempt, By: o.by})
			return fmt.Sprintf("attempt %d of trial %d counts as the journal has it", n, trial), err
		})
	trialFlag(cmd, &trial)
	cmd.Flags().Int32Var(&attempt, "attempt", 0, "which attempt, from 1 (default: the last)")
	return cmd
}

func trialFlag(cmd *cobra.Command, trial *int32) {
	cmd.Flags().Int32Var(trial, "trial", 0, "number of the trial in the sheet, from 0 (required)")
	setting.Require(cmd, "trial")
}

// mark gives a mark, of the last attempt where none is named, and returns its number.
func (o *orderer) mark(ctx context.Context, m *linktrialv1.MarkAttemptRequest) (int32, error) {
	if m.Attempt == 0 {
		res, err := o.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: m.RunId}))
		if err != nil {
			return 0, err
		}
		for _, t := range res.Msg.Trials {
			if t.Trial == m.Trial && len(t.Attempts) > 0 {
				m.Attempt = t.Attempts[len(t.Attempts)-1].Attempt
			}
		}
		if m.Attempt == 0 {
			return 0, fmt.Errorf("run %s has no attempt of trial %d", m.RunId, m.Trial)
		}
	}
	_, err := o.control.MarkAttempt(ctx, connect.NewRequest(m))
	return m.Attempt, err
}

func newOrders(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "orders RUN",
		Short: "List the orders to a run and the marks on its attempts",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := linktrialv1connect.NewControlServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
			res, err := c.ListCommands(cmd.Context(), connect.NewRequest(&linktrialv1.ListCommandsRequest{RunId: args[0]}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if len(res.Msg.Commands) == 0 {
				fmt.Println("Nobody has ordered anything of this run.")
				return nil
			}
			return terminal.Columns("GIVEN\tCOMMAND\tTRIAL\tATTEMPT\tBY\tAPPLIED\tREASON", func(w *tabwriter.Writer) {
				for _, o := range res.Msg.Commands {
					trial, attempt, applied := "–", "–", "not yet"
					if o.Trial != nil {
						trial = strconv.Itoa(int(*o.Trial))
					}
					if o.Attempt > 0 {
						attempt = strconv.Itoa(int(o.Attempt))
					}
					if o.Applied != nil {
						applied = terminal.LocalTime(o.Applied)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", terminal.LocalTime(o.Given), o.Kind, trial, attempt, cmp.Or(o.By, "–"), applied, cmp.Or(o.Reason, "–"))
				}
			})
		},
	}
}
