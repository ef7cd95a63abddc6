package trial

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/orchestrator/measure"
)

func newCompare(s *setting.Settings) *cobra.Command {
	req := &linktrialv1.ProposeComparisonRequest{}
	budget := measure.DefaultBudget
	var dryRun, first, without, detach bool
	cmd := &cobra.Command{
		Use:     "compare",
		GroupID: setting.GroupTrial,
		Short:   "Compare protocols over a link that was measured, in a stated time",
		Long: `Compare composes a plan from what 'linktrial measure' found: a size that every transfer
takes some seconds for, limits from the slower way, and as many iterations as fit into the
budget. It says beforehand how long that takes and which difference it can decide, and where
that is not enough, which budget is (docs/measure.md). It then starts the plan, shows every
trial as it ends, and prints the results, as 'linktrial run start' does. Interrupting it ends
only the view: the run continues.`,
		Example: `  linktrial compare
  linktrial compare --preflight                  # after a small transfer of each protocol
  linktrial compare --budget 40m --protocols tcp-cubic,haul
  linktrial compare --from m4t7xk2p --dry-run    # what it would do, and the plan
  linktrial compare --dry-run > compare.yaml     # the plan alone, to change it`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if budget < measure.LeastBudget || budget > measure.MostBudget {
				return fmt.Errorf("--budget %s: expected 1m to 24h", budget)
			}
			req.BudgetSeconds = budget.Seconds()
			ctx, base := cmd.Context(), s.Orchestrator
			service := linktrialv1connect.NewMeasureServiceClient(client.HTTP(), base, client.Options())
			res, err := service.ProposeComparison(ctx, connect.NewRequest(req))
			if err != nil {
				return client.Error(base, err)
			}
			p := res.Msg
			said := terminal.Escaped(cmd.ErrOrStderr())
			fmt.Fprintf(said, "By the measurement %s:\n", p.CampaignId)
			for _, line := range p.Sentences {
				fmt.Fprintln(said, line)
			}
			if dryRun {
				fmt.Fprint(terminal.Escaped(cmd.OutOrStdout()), p.Text)
				return nil
			}
			start := startRequest(p.Plan+".yaml", []byte(p.Text), "", false)
			if !without {
				start.Preflight = askedPreflight()
			}
			if first {
				failed, err := showPreflight(ctx, base, &linktrialv1.StartPreflightRequest{PlanFile: start.File, PlanText: start.Text})
				if err != nil {
					return err
				}
				if failed {
					return errors.New("a check has failed, and nothing was started: do what it says, or leave --preflight out")
				}
			}
			return startAndFollow(ctx, base, client.New(base), start, "linktrial compare --preflight", detach)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&budget, "budget", budget, "how long the comparison may take, 1m to 24h")
	f.StringVar(&req.CampaignId, "from", "", "the campaign of the measurement, or the beginning of it (default: the newest one that is complete)")
	f.StringSliceVar(&req.Protocols, "protocols", nil, "protocols to compare, separated by commas, the reference first (default: tcp-cubic,quic,haul)")
	f.BoolVar(&dryRun, "dry-run", false, "print what it would do and the plan, and start nothing")
	f.BoolVar(&first, "preflight", false, "first carry a small transfer of each protocol, and start where no check fails")
	f.BoolVar(&without, "without-preflight", false, "do not ask where no preflight of the last hours has carried a transfer of each treatment on these nodes; every result says so (default: ask, on a terminal)")
	f.BoolVar(&detach, "detach", false, "print the campaign's identity and return at once")
	return cmd
}
